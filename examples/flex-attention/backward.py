"""Compiles flex_attention and its gradient as PyTorch does, records their launches, runs them, and compares the gradients with what a GPU gave.

    python backward.py problem.safetensors … --to recorded [--architecture sm_90]

Problems have dout, and triton_flex.out, .dq, .dk and .dv. The row sums are a reduction of which PyTorch times several configurations on the GPU: each is
recorded and run, and the gradients are made from each that gives other bits. The exit status is 1 where a bit differs or the machine finds something.
"""

import math, os, re, subprocess, sys

import device, flex, programs, recording
from flashproof import safetensors

FLASHPROOF = os.environ.get("FLASHPROOF", "npx flashproof").split()
#: Names of the gradients' kernel, by what it writes.
GRADIENTS = {"dq": "arg_DQ", "dk": "out_ptr0", "dv": "arg_DV"}


def run(folder, **replaced):
    """What a recorded launch wrote, with other tensors in the place of those named, and how many findings it had."""
    before, after = folder / "before.safetensors", folder / "after.safetensors"
    safetensors.write(before, safetensors.read(folder / "tensors.safetensors")[0] | replaced)
    done = subprocess.run([*FLASHPROOF, "run", folder / "launch.json", "--tensors", before, "--save", after], capture_output=True, text=True)
    findings = re.search(r"^([\d,]+) findings?", done.stdout, re.M)
    if findings is None:
        sys.exit(f"{folder}: {done.stderr.strip()}")
    return safetensors.read(after)[0], int(findings[1].replace(",", ""))


def differing(left, right):
    size = safetensors.ELEMENT_BITS[left.dtype] // 8
    return sum(left.data[i : i + size] != right.data[i : i + size] for i in range(0, len(left.data), size))


def record(path, options, target, given, scale, metadata, made):
    """Writes the backward's launches behind the forward's; folders of the row sums, one a configuration, and of the gradients."""
    inputs = [recording.loaded(one) for one in (given["q"], given["k"], given["v"], made["out_ptr0"], made["arg_LSE"], given["dout"])]
    program, blocks = programs.backward([one.shape for one in inputs[:3]], inputs[0].dtype, scale, metadata)
    folders = {}

    def folder_of(name):
        role = "gradients" if name.startswith("triton_tem") else "sums"
        if role in folders:
            sys.exit(f"{path.stem}: the program has more than one kernel for the {role}")
        return folders.setdefault(role, options.to / f"{path.stem}-{role}")

    outputs = {"gradients": list(GRADIENTS.values()), "sums": ["out_ptr1"]}
    recording.run_program(program, [*inputs, *blocks], folder_of, target, sum(outputs.values(), []), {})
    sums = sorted(one.parent for one in folders["sums"].glob("*/launch.json"))
    for folder in [*sums, folders["gradients"]]:
        recording.keep_hash(options.hashes, f"{options.architecture} {folder.relative_to(options.to)}", folder)
    return sums, folders["gradients"]


def main():
    options = flex.arguments(__doc__)
    device.with_runtime()
    target = device.install(options.architecture)
    failed = False
    for path in options.problem:
        forward, given, scale, metadata = flex.record(path, options, target)
        made, findings = run(forward)
        sums, gradients = record(path, options, target, given, scale, metadata, made)
        by_bits = {}
        for folder in sums:
            delta, more = run(folder)
            findings += more
            by_bits.setdefault(delta["out_ptr1"].data, (delta["out_ptr1"], []))[1].append(folder.name)
        for delta, names in by_bits.values():
            written, more = run(gradients, arg_DELTA=delta)
            findings += more
            pairs = {"out": (made["out_ptr0"], given["triton_flex.out"])}
            pairs |= {name: (written[kernel], given[f"triton_flex.{name}"]) for name, kernel in GRADIENTS.items()}
            wrong = {name: differing(*pair) for name, pair in pairs.items()}
            counts = ", ".join(f"{name} {count} of {math.prod(pairs[name][0].shape):,}" for name, count in wrong.items())
            print(f"{path.stem}: {counts} differ (sums of {', '.join(names)}); {findings} findings", flush=True)
            failed |= any(wrong.values()) or findings > 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
