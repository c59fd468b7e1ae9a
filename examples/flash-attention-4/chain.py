"""Runs the launches of a folder one after the other: each gets what those before it wrote."""

import pathlib, subprocess, sys

from flashproof import safetensors


def main(folder, save, *options):
    """Saves every tensor that a launch may have written; returns the exit status of the first run that failed, else 0."""
    tensors, _ = safetensors.read(folder / "tensors.safetensors")
    state, step, written = folder / "state.safetensors", folder / "step.safetensors", {}
    for launch in sorted(folder.glob("*launch.json")):
        safetensors.write(state, tensors)
        command = ["npx", "flashproof", "run", launch, "--tensors", state, "--save", step, *options]
        status = subprocess.call(command)
        if status > 1:
            return status
        results, _ = safetensors.read(step)
        tensors.update(results)
        written.update(results)
    safetensors.write(save, written)
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("python3 chain.py FOLDER FILE [option of flashproof run]...")
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], *sys.argv[3:]))
