"""Compiles FlashAttention-2's backward kernels with nvcc as PyTorch does, records their launches behind those of the forward, and compares the
gradients with what a GPU gave, bit for bit.

    python backward.py problem.safetensors … --sources flash_attn-2.8.3 --to recorded
    python backward.py problem.safetensors … --sources flash_attn-2.8.3 --to recorded --deterministic

Problems have dout, and torch_flash.out, .dq, .dk and .dv, or torch_flash_deterministic.dq and so on. dQ is summed by atomic adds: with more
than two blocks of keys its bits depend on their order, and are counted but do not fail; deterministic CTAs have a buffer of dQ each, which
are added in order. What a GPU did not give is compared with the model. The exit status is 1 where another bit differs or the machine finds something.
"""

import argparse, math, struct, sys

from flashproof import safetensors
from flashproof.launches import Launch, write_launch, write_tensors

import compiled, forward, problem as problems
from parameters import BACKWARD, parameter, size_of
from problem import MULTIPROCESSORS, up

# Queries and keys of a tile, how warps share the products, and whether V stays in registers
TILES = {
    32: (128, 128, 4, 4, 4, "true"), 64: (128, 128, 4, 4, 4, "false"), 96: (64, 128, 2, 4, 4, "true"),
    128: (64, 128, 2, 4, 2, "false"), 192: (64, 64, 4, 2, 2, "false"), 256: (64, 64, 4, 2, 2, "false"),
}


def record(problem, options, made):
    """Writes the three launches of a backward: the row sums D, the gradients, and dQ in its format."""
    batch, heads, dim = problem.batch, problem.heads, problem.kernel_dim
    block_m, block_n, sdp, dkv, dq, keeps_v = TILES[dim]
    macros = {**problem.macros(block_m, block_n), "LAYOUT_SDP": sdp, "LAYOUT_DKV": dkv, "LAYOUT_DQ": dq, "V_IN_REGISTERS": keeps_v}
    ptx = compiled.ptx_of("backward", options, macros, size_of(BACKWARD))
    rows, columns = up(problem.queries, block_m) // block_m, up(problem.keys, block_n) // block_n
    is_deterministic = options.deterministic
    # Deterministic: as many CTAs as the GPU has room for, and a buffer of dQ for each.
    parts = -(-MULTIPROCESSORS // (batch * heads)) if is_deterministic else 1
    sums = (problem.total_queries + 128 * batch, heads) if problem.is_packed else (batch, up(problem.queries, 128), heads)
    delta = (heads, sums[0]) if problem.is_packed else (batch, heads, sums[1])
    part = math.prod(sums) * dim
    values = {
        **problem.values(), **{name: name for name in ("q", "k", "v", "out", "lse", "dout", "dq", "dk", "dv", "dq_sums", "delta")},
        # dK and dV of every head of Q; those of a group are added afterwards, by PyTorch.
        **problem.strides(["dout", "dq"], heads, problem.queries), **problem.strides(["dk", "dv"], heads, problem.keys),
        "is_deterministic": int(is_deterministic), "dq_sums_part": part if is_deterministic else 0,
    }
    given = problem.tensors
    empty = safetensors.Array.filled
    shape_of = lambda name: tuple(heads if name != "q" and i == len(given[name].shape) - (2 if problem.is_rows_first else 3) else size for i, size in enumerate(given[name].shape))
    tensors = {
        **{name: tensor for name, tensor in given.items() if "." not in name}, "out": made["out"], "lse": made["lse"],
        "dq_sums": empty("F32", ((parts,) if is_deterministic else ()) + (*sums, dim), 0 if is_deterministic else 0xFF),
        "delta": empty("F32", delta, 0xFF), **{f"d{name}": empty(problem.dtype, shape_of(name), 0xFF) for name in "qkv"},
    }
    folder = options.to / options.build / f"{problem.name}-backward{'-deterministic' * is_deterministic}"
    whole = parameter(BACKWARD, values)
    launch = lambda entry, blocks, parameters, written, shared: Launch(entry, [blocks, batch, heads], [256, 1, 1], parameters, written, shared)
    launches = [
        launch("sums_alone", rows, [whole], ["delta"], 0) if is_deterministic else launch("sums", rows, [whole], ["delta", "dq_sums"], 0),
        launch("gradients", parts if is_deterministic else columns, [whole], ["dq_sums", "dk", "dv"], compiled.number_in(ptx, "gradients_shared_bytes")),
        launch("convert", rows, [whole, {"s32": parts}], ["dq"], compiled.number_in(ptx, "convert_shared_bytes")),
    ]
    files = [write_launch(folder, ptx, one, f"{i}-") for i, one in enumerate(launches, 1)]
    write_tensors(folder, tensors)
    return files, columns


def numbers(array):
    """Elements of 16 bits as numbers."""
    if array.dtype == "F16":
        return [x for (x,) in struct.iter_unpack("<e", array.data)]
    return [struct.unpack("<f", b"\0\0" + array.data[i : i + 2])[0] for i in range(0, len(array.data), 2)]


def rounded(number, dtype):
    """A number in 16 bits, to nearest even."""
    if dtype == "F16":
        return struct.pack("<e", number)
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def summed(array, problem, like):
    """dK or dV of the heads of K: as PyTorch adds those of a group, in fp32, one after the other, and rounds."""
    group, dim = problem.heads // problem.kv_heads, problem.dim
    if group == 1:
        return array
    fp32 = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
    elements, stride = numbers(array), dim if problem.is_rows_first else problem.keys * dim
    data = bytearray()
    for i in range(math.prod(like.shape)):
        head, inside = divmod(i, stride)
        total = 0.0
        for member in range(group):
            total = fp32(total + elements[(head * group + member) * stride + inside])
        data += rounded(total, array.dtype)
    return safetensors.Array(array.dtype, like.shape, bytes(data))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    compiled.add_arguments(parser)
    parser.add_argument("--deterministic", action="store_true", help="as torch.use_deterministic_algorithms has it")
    options = parser.parse_args()
    failed = False
    for path in options.problem:
        problem = problems.read(path)
        if problem.softcap or problem.has_slopes:
            sys.exit(f"{path}: gradients with a softcap or ALiBi are compared with nothing here, neither a model nor what a GPU gave")
        launches, _ = forward.record(problem, options)
        made, found = compiled.run(launches, options.build)
        gpu = forward.captured(problem)
        wanted = forward.captured(problem, "_deterministic") if options.deterministic else gpu
        launches, columns = record(problem, options, made)
        gradients, more = compiled.run(launches, options.build)
        made |= {"dq": gradients["dq"], **{f"d{name}": summed(gradients[f"d{name}"], problem, problem.tensors[name]) for name in "kv"}}
        kind = "deterministic backward" if options.deterministic else "backward"
        compiled.keep_hashes(options, f"{options.build} {kind} {problem.name}", launches, {name: made[name] for name in ("dq", "dk", "dv")})
        names = ("out", "lse", "dq", "dk", "dv")
        expected = {name: (gpu | wanted)[name] for name in names if name in gpu | wanted}
        source = ""
        if "dq" not in wanted or options.build != "pytorch":
            words = ["--backward", "--set", f"deterministic={str(options.deterministic).lower()}"]
            model = forward.modelled(path, problem, launches[0].parent, options.build, *words)
            source, expected = " from the model", {name: model[name] for name in names}
        text, wrong = forward.counts(made, expected, expected)
        depends = columns > 2 and not options.deterministic
        order = f" (dQ of {columns} blocks, in any order)" if depends else ""
        print(f"{problem.name}: {text} differ{source}{order}; {found + more} findings", flush=True)
        failed |= found + more > 0 or any(count for name, count in wrong.items() if name != "dq" or not depends)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
