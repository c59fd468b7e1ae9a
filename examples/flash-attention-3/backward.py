"""Compiles FlashAttention-3's backward kernels with nvcc, records their launches behind those of the forward, and compares the gradients with what
a GPU gave where that is known, or with `flashproof emulate fa3 --backward`, bit for bit.

    python backward.py problem.safetensors … --sources flash-attention --to recorded
    python backward.py problem.safetensors … --sources flash-attention --to recorded --deterministic

Problems have dout. Without --deterministic tiles of dQ, and dK and dV of the heads of a group, are added in any order: what three or more tiles add to is
counted, but does not fail. The exit status is 1 where another bit differs or the machine finds something.
"""

import argparse, math, sys

from flashproof import safetensors

import compiled, forward
from configuration import backward_configuration, up
from recording import record

GRADIENTS = ("dq", "dk", "dv")


def recorded(problem, name, options, out, lse):
    """The launch files of a backward, in order, and the macros with which it is compiled."""
    given, metadata = problem
    q, k, v = (given[one] for one in "qkv")
    macros, numbers = backward_configuration(q, k, v, metadata, options.deterministic, options.multiprocessors)
    ptx, program = compiled.compiled(options.sources, "backward.cu", macros, options.to / "compiled")
    heads, kv_heads = q.shape[:-2], k.shape[:-2]
    rows, keys = up(numbers["queries"], macros["BLOCK_M"]), up(numbers["keys"], macros["BLOCK_N"])
    dim, row_blocks, key_blocks = macros["DIM"], rows // macros["BLOCK_M"], keys // macros["BLOCK_N"]
    shapes = {
        **{f"d{one}": (q.dtype, given[one].shape) for one in "qkv"},
        "row_sums": ("F32", (*heads, rows)), "lse_base_2": ("F32", (*heads, rows)), "dq_sums": ("F32", (*heads, rows, dim)),
        "dq_turns": ("I32", (row_blocks, *heads)), "dk_sums": ("F32", (*kv_heads, keys, dim)), "dv_sums": ("F32", (*kv_heads, keys, dim)),
        "dk_turns": ("I32", (key_blocks, *kv_heads)), "dv_turns": ("I32", (key_blocks, *kv_heads)),
    }
    tensors = {"q": q, "k": k, "v": v, "out": out, "lse": lse, "dout": given["dout"]}
    launches = record(program, ptx, options.to / name, tensors, shapes, numbers)
    compiled.keep_hash(options, name, ptx)
    return launches, macros


def in_any_order(problem, macros):
    """Gradients that three or more tiles add to, in any order; of two, added to zeros, the order does not matter."""
    if macros["DETERMINISTIC"] == "true":
        return []
    heads, (kv_heads, keys, _) = problem["q"].shape[-3], problem["k"].shape[-3:]
    return [*(["dq"] if keys > 2 * macros["BLOCK_N"] else []), *(["dk", "dv"] if heads > 2 * kv_heads else [])]


def expected(path, problem, options):
    """dQ, dK and dV of a problem, and whose they are."""
    given, metadata = problem
    kernel = "fa3_deterministic" if options.deterministic else "fa3"
    if f"{kernel}.dq" in given:
        return {name: given[f"{kernel}.{name}"] for name in GRADIENTS}, metadata["gpu"]
    emulated = options.to / f"{path.stem}-emulated.safetensors"
    words = ["--backward", "--set", f"deterministic={str(options.deterministic).lower()}"]
    compiled.flashproof("emulate", "fa3", path, "--save", emulated, "--quiet", *words)
    return safetensors.read(emulated)[0], "emulate fa3"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    compiled.add_arguments(parser)
    parser.add_argument("--deterministic", action="store_true", help="tiles are added in an order")
    options = parser.parse_args()
    failed = False
    for path in options.problem:
        problem = safetensors.read(path)
        launches, _ = forward.recorded(problem, path.stem, options, 1)
        made, found = compiled.run(launches)
        name = f"{path.stem}-backward{'-deterministic' * options.deterministic}"
        launches, macros = recorded(problem, name, options, made["out"], made["lse"])
        made, more = compiled.run(launches)
        wanted, whose = expected(path, problem, options)
        wrong = {one: compiled.differing(made[one], wanted[one]) for one in GRADIENTS}
        unordered = in_any_order(problem[0], macros)
        counts = ", ".join(f"{one} {count} of {math.prod(made[one].shape):,}{' (in any order)' * (one in unordered)}" for one, count in wrong.items())
        print(f"{name}: {counts} differ from {whose}; {found + more} findings", flush=True)
        failed |= found + more > 0 or any(count for one, count in wrong.items() if one not in unordered)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
