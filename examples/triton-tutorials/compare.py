"""Records the attention kernels of Triton's tutorials (record.py), runs them on the emulated machine, and has what they wrote judged by `flashproof audit`.

    python compare.py CASE … --triton path/of/triton --to recorded [--architecture sm_100]

The exit status is 1 where the machine finds something or the audit does not pass.
"""

import os, re, subprocess, sys

import numpy as np

from flashproof import safetensors

import record

FLASHPROOF = os.environ.get("FLASHPROOF", "npx flashproof").split()
OUTPUTS = {"desc_o": "out", "M": "lse", "DQ": "dq", "DK": "dk", "DV": "dv"}


def flashproof(*arguments):
    done = subprocess.run([*FLASHPROOF, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"flashproof {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def run(folder):
    """What a recorded launch wrote, and how many findings it had."""
    after = folder / "after.safetensors"
    printed = flashproof("run", folder / "launch.json", "--save", after)
    return safetensors.read(after)[0], int(re.search(r"^([\d,]+) findings?", printed, re.M)[1].replace(",", ""))


def numbers(array):
    return np.frombuffer(array.data, {"F16": np.float16, "F32": np.float32}[array.dtype]).reshape(array.shape)


def judged(folder, given, written, case, options):
    """The audit's first sentence of what the kernels wrote, whose LSE is of base 2."""
    tensors = {**given, **{OUTPUTS[name]: one for name, one in written.items() if name in OUTPUTS}}
    if not case.backward:
        del tensors["dout"]
    if "lse" in tensors:
        lse = tensors["lse"]
        tensors["lse"] = safetensors.Array(lse.dtype, (1, *lse.shape[-2:]), lse.data)
    path = folder / "problem.safetensors"
    safetensors.write(path, {name: record.stored(one) for name, one in tensors.items()}, {"scale": str(options.scale), "causal": str(case.causal).lower()})
    printed = flashproof("audit", path, "--lse-base", 2)
    return " ".join(printed.split("\n\n")[0].split())


def main():
    options = record.arguments(__doc__)
    failed = False
    for name in options.case:
        case = record.CASES[name]
        folder = options.to / f"{name}-{options.architecture}"
        module, given = record.record_forward(folder, case, options)
        written, findings = run(folder)
        if case.backward:
            folders = [folder / "sums", folder / "gradients"]
            out, lse = numbers(written["desc_o"]), numbers(written["M"])
            record.record_sums(folders[0], module, case, options, given, out)
            delta, more = run(folders[0])
            findings += more
            record.record_gradients(folders[1], module, case, options, given, lse, numbers(delta["Delta"]))
            gradients, more = run(folders[1])
            written, findings = written | gradients, findings + more
        verdict = judged(folder, given, written, case, options)
        print(f"{name} ({options.architecture}): {findings} findings; {verdict}", flush=True)
        failed |= findings > 0 or not verdict.startswith("PASS")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
