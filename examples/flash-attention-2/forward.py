"""Compiles FlashAttention-2's forward kernels with nvcc, records their launches for `flashproof run`, and compares what they give with what
a GPU gave, or with `flashproof emulate fa2`, bit for bit.

    python forward.py problem.safetensors … --sources flash_attn-2.8.3 --to recorded
    python forward.py problem.safetensors … --sources flash_attn-2.8.3 --to recorded --build flash-attn

`--build pytorch` (default) compiles as PyTorch does, and compares with its outputs (`torch_flash.out`, `.lse`) where a file has them; `--build
flash-attn` compiles as FlashAttention's own package does. What a GPU did not give is compared with the model, or audited where there is none: of
a softcap and of ALiBi. The exit status is 1 where a bit differs, an audit fails, or the machine finds something.
"""

import argparse, math, sys

from flashproof import safetensors
from flashproof.launches import Launch, write_launch, write_tensors

import compiled, problem as problems
from parameters import FORWARD, parameter, size_of
from problem import MULTIPROCESSORS, up

TILES = {32: (128, 128, 4), 64: (128, 128, 4), 96: (128, 64, 4), 128: (128, 64, 4), 192: (128, 64, 8), 256: (64, 64, 4)}  # queries, keys, warps


def split_count(tiles, key_blocks):
    """In how many parts FlashAttention-2 splits the keys: the fewest with which the last wave of CTAs is nearly as full as it can be."""
    sms = 2 * MULTIPROCESSORS
    if tiles >= 0.8 * sms:
        return 1
    most = min(128, sms, key_blocks)
    blocks = lambda splits: -(-key_blocks // splits)
    eligible = [n for n in range(1, most + 1) if n == 1 or blocks(n) != blocks(n - 1)]
    share = {n: tiles * n / sms / math.ceil(tiles * n / sms) for n in eligible}
    return next(n for n in eligible if share[n] >= 0.85 * max(share.values()))


def record(problem, options):
    """Writes the launches of a problem; their files in order, and in how many parts the keys are."""
    batch, heads, queries, dim = problem.batch, problem.heads, problem.queries, problem.kernel_dim
    key_block = 256 if dim <= 64 else 128 if dim <= 128 else 64
    # Packed sequences are not split.
    splits = 1 if problem.is_packed else split_count(batch * heads * up(queries, 64) // 64, up(problem.keys, key_block) // key_block)
    block_m, block_n, warps = (64, key_block, 4) if splits > 1 else TILES[dim]
    macros = {
        **problem.macros(block_m, block_n), "WARPS": warps, "SPLITS": min(splits, 2), "LOG_SPLITS": max(1, math.ceil(math.log2(splits))),
        "WHOLE_DIM": str(problem.dim == dim).lower(),
    }
    ptx = compiled.ptx_of("forward", options, macros, size_of(FORWARD))
    values = {**problem.values(), **{name: name for name in ("q", "k", "v", "out", "lse")}, "splits": splits if splits > 1 else 0}
    empty = safetensors.Array.filled
    inputs = {name: tensor for name, tensor in problem.tensors.items() if "." not in name and name != "dout"}
    rows = (heads, problem.total_queries) if problem.is_packed else (batch, heads, queries)
    tensors = {**inputs, "out": empty(problem.dtype, problem.tensors["q"].shape, 0xFF), "lse": empty("F32", rows, 0xFF)}
    written = ["out", "lse"]
    if splits > 1:
        values |= {"out_parts": "out_parts", "lse_parts": "lse_parts"}
        tensors["out_parts"] = empty("F32", (splits, batch, heads, queries, dim), 0xFF)
        tensors["lse_parts"] = empty("F32", (splits, batch, heads, queries), 0xFF)
        written = ["out_parts", "lse_parts"]
    folder = options.to / options.build / problem.name
    tiles = up(queries, block_m) // block_m
    grid = [tiles, splits, batch * heads] if splits > 1 else [tiles, batch, heads]
    whole = [parameter(FORWARD, values)]
    shared = compiled.number_in(ptx, "shared_bytes")
    launches = [write_launch(folder, ptx, Launch("attend", grid, [32 * warps, 1, 1], whole, written, shared), "1-")]
    if splits > 1:
        rows = 4 if dim % 128 == 0 else 8 if dim % 64 == 0 else 16
        ctas = up(batch * heads * queries, rows) // rows
        launches.append(write_launch(folder, ptx, Launch("combine", [ctas, 1, 1], [128, 1, 1], whole, ["out", "lse"]), "2-"))
    write_tensors(folder, tensors)
    return launches, splits


def captured(problem, suffix=""):
    """What a GPU gave, by the name of the output: a kernel's part of the file."""
    for kernel in ("torch_flash", "torch_varlen"):
        prefix = f"{kernel}{suffix}."
        found = {name.removeprefix(prefix): tensor for name, tensor in problem.tensors.items() if name.startswith(prefix)}
        if found:
            return found
    return {}


def rows_before_heads(array):
    """A tensor [batch, heads, rows, dim] in the order of a file that has rows before heads."""
    heads, rows, dim = array.shape[-3:]
    row = dim * safetensors.ELEMENT_BITS[array.dtype] // 8
    pieces = [array.data[i : i + row] for i in range(0, len(array.data), row)]
    data = b"".join(pieces[first + head * rows + j] for first in range(0, len(pieces), heads * rows) for j in range(rows) for head in range(heads))
    return safetensors.Array(array.dtype, (*array.shape[:-3], rows, heads, dim), data)


def modelled(path, problem, folder, build, *settings):
    """What `flashproof emulate fa2` gives, in the order of the problem's file."""
    saved = folder / "emulated.safetensors"
    compiled.flashproof("emulate", "fa2", path, "--save", saved, "--quiet", "--set", f"build={build}", "--set", "splits=auto", *settings)
    made = safetensors.read(saved)[0]
    return {name: rows_before_heads(array) if problem.is_rows_first and name in ("out", "dq", "dk", "dv") else array for name, array in made.items()}


def audited(path, made, folder):
    """The verdict of `flashproof audit` on outputs, with what no correct kernel may exceed."""
    saved = folder / "made.safetensors"
    safetensors.write(saved, {name: made[name] for name in ("out", "lse")})
    return compiled.flashproof("audit", path, "--output", f"{saved}:out", "--lse", f"{saved}:lse").split()[0].rstrip(":")


def counts(made, expected, names):
    """How many elements differ, in words, and whether any does."""
    wrong = {name: compiled.differing(made[name], expected[name]) for name in names}
    return ", ".join(f"{name} {count} of {math.prod(made[name].shape):,}" for name, count in wrong.items()), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    compiled.add_arguments(parser)
    options = parser.parse_args()
    failed = False
    for path in options.problem:
        problem = problems.read(path)
        launches, splits = record(problem, options)
        made, findings = compiled.run(launches, options.build)
        compiled.keep_hashes(options, f"{options.build} {problem.name}", launches, {name: made[name] for name in ("out", "lse")})
        parts = "" if splits == 1 else f", {splits} splits"
        if problem.softcap or problem.has_slopes:
            verdict = audited(path, made, launches[0].parent)
            print(f"{problem.name}{parts}: audit {verdict}, no model; {findings} findings", flush=True)
            failed |= verdict != "PASS" or findings > 0
            continue
        gpu = captured(problem) if options.build == "pytorch" else {}
        source, expected = ("", gpu) if gpu else (" from the model", modelled(path, problem, launches[0].parent, options.build))
        text, wrong = counts(made, expected, [name for name in ("out", "lse") if name in expected])
        print(f"{problem.name}{parts}: {text} differ{source}; {findings} findings", flush=True)
        failed |= any(wrong.values()) or findings > 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
