"""Compiles FlashAttention-2's backward kernels with nvcc as PyTorch does, records their launches behind those of the forward, and compares the
gradients with what a GPU gave, bit for bit.

    python backward.py problem.safetensors … --sources flash_attn-2.8.3 --to recorded

Problems have dout, and torch_flash.out, .dq, .dk and .dv. dQ is summed by atomic adds: with more than two blocks of 128 keys its bits depend on their
order, and are counted but do not fail. The exit status is 1 where another bit differs or the machine finds something.
"""

import argparse, math, pathlib, re, sys

from flashproof import safetensors
from flashproof.launches import Launch, write_launch, write_tensors

import forward
from parameters import BACKWARD, parameter, size_of

KEY_BLOCK = 128
TILES = {64: (128, 4, 4, 4), 128: (64, 2, 4, 2)}  # queries of a tile, and how warps share the products


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="+", type=pathlib.Path)
    parser.add_argument("--sources", type=pathlib.Path, required=True, help="FlashAttention's source package, unpacked")
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--hashes", type=pathlib.Path, help="adds the SHA-256 of each PTX to this file")
    parser.set_defaults(build="pytorch")
    return parser.parse_args()


def record(path, options, made, values):
    """Writes the three launches of a backward: the row sums D, the gradients, and dQ in its format."""
    given, _ = safetensors.read(path)
    batch, heads, queries, keys, dim = (values[name] for name in ("batch", "heads", "queries", "keys", "dim"))
    if values["group"] != 1 or dim not in TILES:
        sys.exit(f"{path.stem}: groups of heads, and dimensions other than 64 and 128, are not recorded here")
    block_m, sdp, dkv, dq = TILES[dim]
    is_even = queries % block_m == 0 and keys % KEY_BLOCK == 0
    macros = {
        "DIM": dim, "BLOCK_M": block_m, "BLOCK_N": KEY_BLOCK, "LAYOUT_SDP": sdp, "LAYOUT_DKV": dkv, "LAYOUT_DQ": dq,
        "CAUSAL": "true" if values["is_causal"] else "false", "EVEN": str(is_even).lower(), "ELEMENT": forward.ELEMENTS[given["q"].dtype],
    }
    ptx = forward.compiled("backward", options.sources, options.build, macros, options.to / "ptx")
    declared = int(re.search(r"sums_param_0\[(\d+)\]", ptx)[1])
    if declared != size_of(BACKWARD):
        sys.exit(f"the kernel's struct has {declared} bytes, and {size_of(BACKWARD)} are known here; is this version 2.8.3?")
    values = {name: value for name, value in values.items() if name not in ("out_parts", "lse_parts")} | {
        "splits": 0, **{name: name for name in ("dout", "dq", "dk", "dv", "dq_sums", "delta")},
        **{f"{name}_batch": heads * rows * dim for name, rows in (("dout", queries), ("dq", queries), ("dk", keys), ("dv", keys))},
        **{f"{name}_row": dim for name in ("dout", "dq", "dk", "dv")},
        **{f"{name}_head": rows * dim for name, rows in (("dout", queries), ("dq", queries), ("dk", keys), ("dv", keys))},
    }
    empty = safetensors.Array.filled
    rounded = forward.up(queries, 128)
    tensors = {
        **{name: given[name] for name in ("q", "k", "v", "dout")}, "out": made["out"], "lse": made["lse"],
        "dq_sums": empty("F32", (batch, rounded, heads, dim), 0xFF), "delta": empty("F32", (batch, heads, rounded), 0xFF),
        **{f"d{name}": empty(given[name].dtype, given[name].shape, 0xFF) for name in "qkv"},
    }
    folder = options.to / options.build / f"{path.stem}-backward"
    shared = lambda kernel: int(re.search(rf"{kernel}_shared_bytes = (\d+)", ptx)[1])
    rows, columns = forward.up(queries, block_m) // block_m, forward.up(keys, KEY_BLOCK) // KEY_BLOCK
    whole = parameter(BACKWARD, values)
    launch = lambda entry, blocks, parameters, written, bytes: Launch(entry, [blocks, batch, heads], [256, 1, 1], parameters, written, bytes)
    launches = [
        launch("sums", rows, [whole], ["delta", "dq_sums"], 0),
        launch("gradients", columns, [whole], ["dq_sums", "dk", "dv"], shared("gradients")),
        launch("convert", rows, [whole, {"s32": 1}], ["dq"], shared("convert")),
    ]
    forward.keep_hash(options, f"{options.build} backward {path.stem}", ptx)
    files = [write_launch(folder, ptx, one, f"{i}-") for i, one in enumerate(launches, 1)]
    write_tensors(folder, tensors)
    return files, given, columns


def main():
    options = arguments()
    failed = False
    for path in options.problem:
        launches, given, _, values = forward.record(path, options)
        made, found = forward.run(launches)
        wrong = {"out": forward.differing(made["out"], given["torch_flash.out"])}
        launches, given, columns = record(path, options, made, values)
        gradients, more = forward.run(launches)
        for name in ("dq", "dk", "dv"):
            wrong[name] = forward.differing(gradients[name], given[f"torch_flash.{name}"])
        sizes = {"out": math.prod(made["out"].shape), **{name: math.prod(gradients[name].shape) for name in ("dq", "dk", "dv")}}
        counts = ", ".join(f"{name} {count} of {sizes[name]:,}" for name, count in wrong.items())
        any_order = f" (dQ of {columns} blocks, in any order)" if columns > 2 else ""
        print(f"{path.stem}: {counts} differ{any_order}; {found + more} findings", flush=True)
        failed |= found + more > 0 or any(count for name, count in wrong.items() if name != "dq" or columns <= 2)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
