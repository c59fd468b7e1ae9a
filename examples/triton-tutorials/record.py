"""Compiles the attention kernels of Triton's tutorials for a GPU that need not be here, and records their launches for `flashproof run`.

    python record.py CASE … --triton path/of/triton --to recorded [--architecture sm_100] [--queries 256] [--heads 2]

`--triton` is a clone of github.com/triton-lang/triton; nothing of it is in this folder. Cases are named in CASES.
"""

import argparse, os, pathlib
from dataclasses import dataclass
from types import SimpleNamespace

os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")  # the PTX is the same wherever the clone lies
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # as Triton 3.9 has it where nobody says otherwise

import numpy as np

import flashproof.triton

import tutorial

FUSED, GLUON = "python/tutorials/06-fused-attention.py", "python/examples/gluon/01-attention-forward.py"
MULTIPROCESSORS = {"sm_90": 132, "sm_100": 148}


@dataclass(frozen=True)
class Case:
    """A configuration of a kernel. `specialised`: with warps of several roles."""

    file: str
    dim: int
    causal: bool
    specialised: bool = False
    backward: bool = False


CASES = {
    **{
        f"fused-d{dim}{'-causal' if causal else ''}{'-specialised' if specialised else ''}": Case(FUSED, dim, causal, specialised)
        for dim in (64, 128) for causal in (False, True) for specialised in (False, True)
    },
    **{f"fused-d{dim}{'-causal' if causal else ''}-backward": Case(FUSED, dim, causal, backward=True) for dim in (64, 128) for causal in (False, True)},
    **{f"gluon-d{dim}{'-causal' if causal else ''}": Case(GLUON, dim, causal, True) for dim in (64, 128) for causal in (False, True)},
}


def arguments(description=__doc__):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="+", choices=list(CASES), metavar="CASE")
    parser.add_argument("--triton", type=pathlib.Path, required=True, help="a clone of Triton's repository")
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--architecture", default="sm_100", choices=list(MULTIPROCESSORS))
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--scale", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=20)
    return parser.parse_args()


def problem(case, options):
    """Q, K, V and dO in fp16 as the tutorials draw them: normal numbers, of Q, K and V with a deviation of 0.5."""
    draw = np.random.default_rng(options.seed)
    shape = (1, options.heads, options.queries, case.dim)
    made = {name: (0.5 * draw.standard_normal(shape)).astype(np.float16) for name in "qkv"}
    return {**made, "dout": draw.standard_normal(shape).astype(np.float16)}


def descriptor(tensor, rows, layout=None):
    """A host's descriptor of [rows, dim] of all heads, one behind the other."""
    dim = tensor.shape[-1]
    made = SimpleNamespace(base=tensor, shape=[tensor.size // dim, dim], strides=[dim, 1], block_shape=[rows, dim], padding="zero")
    if layout is not None:
        made.layout = layout
    return made


def nothing(shape, dtype):
    return np.full(shape, np.nan, dtype)


def record_fused(folder, module, case, options, given):
    """The forward, in the configuration that its own tests run: tiles of 128 queries and 64 keys."""
    block_m, block_n = 128, 64
    out = nothing(given["q"].shape, np.float16)
    heads, queries = options.heads, options.queries
    # The tutorial gives Hopper's specialised kernel tensors, of which it makes descriptors itself.
    by_host = not (options.architecture == "sm_90" and case.specialised)
    held = {"q": (given["q"], block_m), "k": (given["k"], block_n), "v": (given["v"], block_n), "o": (out, block_m)}
    tensors = {f"desc_{name}": descriptor(one, rows) if by_host else one for name, (one, rows) in held.items()}
    registers = {"maxnreg": 168 if case.dim == 128 else 80} if case.specialised and options.architecture == "sm_100" else {}
    numbers = {"sm_scale": options.scale, "Z": 1, "H": heads, "N_CTX": queries, "HEAD_DIM": case.dim, "BLOCK_M": block_m, "BLOCK_N": block_n}
    switches = {"FP8_OUTPUT": False, "STAGE": 3 if case.causal else 1, "warp_specialize": case.specialised, "IS_HOPPER": options.architecture == "sm_90"}
    every = {**numbers, **switches, **tensors, "M": nothing((heads, queries), np.float32)}
    grid = (-(-queries // block_m), heads, 1)
    return flashproof.triton.record(
        folder, module._attn_fwd.fn, grid, every, ["desc_o", "M"], target=options.architecture, num_warps=4, num_stages=2, **registers
    )


def record_sums(folder, module, case, options, given, out):
    """The row sums of the backward, behind a forward that gave `out`."""
    heads, queries, dim = options.heads, options.queries, case.dim
    every = {"O": out, "DO": given["dout"], "Delta": nothing((heads, queries), np.float32), "Z": 1, "H": heads, "N_CTX": queries, "BLOCK_M": 128, "HEAD_DIM": dim}
    grid = (queries // 128, heads)
    return flashproof.triton.record(
        folder, module._attn_bwd_preprocess, grid, every, ["Delta"], target=options.architecture, num_warps=4, num_stages=3
    )


def record_gradients(folder, module, case, options, given, lse, sums):
    """The gradients, of the forward's LSE (of base 2) and the row sums."""
    heads, queries, dim = options.heads, options.queries, case.dim
    # As PyTorch multiplies fp16 by a number: in fp32, rounded once.
    scaled = (given["k"].astype(np.float32) * np.float32(options.scale * 1.4426950408889634)).astype(np.float16)
    gradients = {name: nothing(given["q"].shape, np.float16) for name in ("DQ", "DK", "DV")}
    every = {
        "Q": given["q"], "K": scaled, "V": given["v"], "sm_scale": options.scale, "DO": given["dout"], **gradients, "M": lse, "D": sums,
        "stride_z": heads * queries * dim, "stride_h": queries * dim, "stride_tok": dim, "stride_d": 1, "H": heads, "N_CTX": queries,
        "BLOCK_M1": 32, "BLOCK_N1": 128, "BLOCK_M2": 128, "BLOCK_N2": 32, "BLK_SLICE_FACTOR": 2, "HEAD_DIM": dim, "CAUSAL": case.causal,
    }
    grid = (queries // 128, 1, heads)
    return flashproof.triton.record(
        folder, module._attn_bwd, grid, every, list(gradients), target=options.architecture, num_warps=4, num_stages=5
    )


def stored(array):
    """An array of fp16 or fp32 as a file has it."""
    return array if isinstance(array, flashproof.Array) else flashproof.Array({"float16": "F16", "float32": "F32"}[str(array.dtype)], array.shape, array.tobytes())


def record_gluon(folder, module, case, options, given):
    """Gluon's forward for Blackwell, as its `attention_forward` starts it: a persistent CTA for each multiprocessor, warps of six roles."""
    gl = module.gl
    block_m, block_n, heads, queries = 256, 128, options.heads, options.queries
    out = nothing(given["q"].shape, np.float16)
    layout = lambda rows: gl.NVMMASharedLayout.get_default_for([rows, case.dim], gl.float16)
    held = {"q": (given["q"], block_m // 2), "k": (given["k"], block_n), "v": (given["v"], block_n), "o": (out, block_m // 2)}
    tensors = {f"desc_{name}": descriptor(one, rows, layout(rows)) for name, (one, rows) in held.items()}
    multiprocessors = MULTIPROCESSORS[options.architecture]
    numbers = {"sm_scale": options.scale, "Z": 1, "H": heads, "N_CTX": queries, "BLOCK_M": block_m, "BLOCK_N": block_n, "HEAD_DIM": case.dim}
    switches = {"GROUP_SIZE_N": 4 if case.causal else 1, "NUM_SMS": multiprocessors, "STAGE": 3 if case.causal else 1, "dtype": gl.float16, "num_warps": 4, "use_tmem_red": False}
    every = {**numbers, **switches, **tensors, "M": nothing((heads, queries), np.float32)}
    grid = (min(multiprocessors, -(-queries // block_m) * heads),)
    compiled = flashproof.triton.compile_for(module.attention_kernel, every, options.architecture, num_warps=4, maxnreg=128)
    flashproof.triton.record_compiled(folder, compiled, grid, every, ["desc_o", "M"])
    return compiled


def record_forward(folder, case, options):
    """The module and the problem of a case, whose forward is recorded."""
    tile = 256 if case.file == GLUON else 128
    if options.queries % tile != 0:
        raise SystemExit(f"--queries {options.queries} is no multiple of {tile}, which the tutorial needs")
    if case.file == GLUON and options.architecture != "sm_100":
        raise SystemExit("Gluon's attention is for Blackwell; give --architecture sm_100")
    path = options.triton / case.file
    if not path.exists():
        raise SystemExit(f"{path} is not there; give a clone of Triton's repository as --triton")
    module, given = tutorial.load(path, options.architecture), problem(case, options)
    (record_gluon if case.file == GLUON else record_fused)(folder, module, case, options, given)
    return module, given


def main():
    options = arguments()
    for name in options.case:
        folder = options.to / f"{name}-{options.architecture}"
        record_forward(folder, CASES[name], options)
        print(f"{name}: {folder}/launch.json", flush=True)


if __name__ == "__main__":
    main()
