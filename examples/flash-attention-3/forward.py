"""Compiles FlashAttention-3's forward kernels with nvcc, records their launches for `flashproof run`, and compares what they give with what
an H200 gave where that is known, or with `flashproof emulate fa3`, bit for bit.

    python forward.py problem.safetensors … --sources flash-attention --to recorded

The exit status is 1 where a bit differs or the machine finds something.
"""

import argparse, math, pathlib, sys, tempfile

from flashproof import safetensors

import compiled
from configuration import configuration
from recording import record

CAPTURED = compiled.HERE / "../../fixtures/flash-attention-3/bundled.safetensors"


def recorded(problem, name, options, splits=None):
    """The launch files of a forward, in order, and the numbers that its host code is given; `problem` is the tensors and metadata of a file."""
    given, metadata = problem
    q, k, v = (given[one] for one in "qkv")
    macros, numbers = configuration(q, k, v, metadata, splits, options.multiprocessors)
    ptx, program = compiled.compiled(options.sources, "forward.cu", macros, options.to / "compiled")
    parts, output = numbers["splits"], "BF16" if q.dtype == "F8_E4M3" else q.dtype
    out, lse = (*q.shape[:-1], v.shape[-1]), q.shape[:-1]
    shapes = {
        "out": (output, out), "lse": ("F32", lse), "next_tile": ("I32", (1,)),
        "out_partial": ("F32", (parts, *out)), "lse_partial": ("F32", (parts, *lse)),
    }
    launches = record(program, ptx, options.to / name, {"q": q, "k": k, "v": v}, shapes, numbers)
    compiled.keep_hash(options, name, ptx)
    return launches, numbers


def expected(path, given, splits):
    """O and LSE of a problem, and whose they are."""
    captured, _ = safetensors.read(CAPTURED)
    for prefix, tensors in (("fa3", given), (path.stem, captured)):
        if f"{prefix}.out" in tensors:
            return {name: tensors[f"{prefix}.{name}"] for name in ("out", "lse")}, "an H200"
    with tempfile.TemporaryDirectory() as folder:
        emulated = pathlib.Path(folder) / "emulated.safetensors"
        compiled.flashproof("emulate", "fa3", path, "--save", emulated, "--quiet", "--set", f"splits={splits}")
        return safetensors.read(emulated)[0], "emulate fa3"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    compiled.add_arguments(parser)
    parser.add_argument("--splits", type=int, help="parts of the keys, instead of FlashAttention-3's own choice")
    options = parser.parse_args()
    failed = False
    for path in options.problem:
        problem = safetensors.read(path)
        launches, numbers = recorded(problem, path.stem, options, options.splits)
        splits = numbers["splits"]
        made, findings = compiled.run(launches)
        wanted, whose = expected(path, problem[0], splits)
        wrong = {name: compiled.differing(made[name], wanted[name]) for name in ("out", "lse")}
        counts = ", ".join(f"{name} {count} of {math.prod(made[name].shape):,}" for name, count in wrong.items())
        print(f"{path.stem}{f', {splits} splits' if splits > 1 else ''}: {counts} differ from {whose}; {findings} findings", flush=True)
        failed |= any(wrong.values()) or findings > 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
