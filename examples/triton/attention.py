"""An attention kernel in Triton, recorded for flashproof without a GPU: python attention.py --target sm_100 --to recorded/sm_100"""

import argparse, os, pathlib, re, sys

if "--lines" not in sys.argv:
    os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")  # the PTX is the same wherever this file lies

import numpy as np
import triton
import triton.language as tl

import flashproof.triton
from flashproof import Array


@triton.jit
def attend(q, k, v, o, lse, scale, sq, sk, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, D)
    places = (head * sq + rows[:, None]) * D + columns[None, :]
    queries = tl.load(q + places, mask=rows[:, None] < sq, other=0.0)
    maximum = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    output = tl.zeros((BM, D), tl.float32)
    for first in range(0, sk, BN):
        keys = first + tl.arange(0, BN)
        inside = keys[:, None] < sk
        here = (head * sk + keys[:, None]) * D + columns[None, :]
        scores = tl.dot(queries, tl.trans(tl.load(k + here, mask=inside, other=0.0))) * (scale * 1.4426950408889634)
        scores = tl.where(keys[None, :] < sk, scores, float("-inf"))
        larger = tl.maximum(maximum, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(maximum - larger)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + here, mask=inside, other=0.0)
        output = tl.dot(weights.to(values.dtype), values, output * shrink[:, None])
        maximum = larger
    tl.store(o + places, (output / total[:, None]).to(o.dtype.element_ty), mask=rows[:, None] < sq)
    tl.store(lse + head * sq + rows, (maximum + tl.log2(total)) * 0.6931471805599453, mask=rows < sq)


TEMPLATE = {
    "grid": ["ceil(sq / 64)", "heads * batch"],
    "numbers": {"scale": "scale", "sq": "sq", "sk": "sk"},
    "outputs": {"o": "out", "lse": "lse"},
    "formats": ["bf16"],
    "requires": [
        "d == 64 && dv == 64", "kvHeads == heads", "sk > 0",
        "causal == 0 && softcap == 0", "windowLeft < 0 && windowRight < 0",
    ],
}


CONTRACT = {
    "kind": "attention", "scale": 0.125, "causal": False,
    "q": "q", "k": "k", "v": "v", "out": "o", "lse": "lse",
}


def bfloat16(values):
    """Rounded to nearest, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return Array("BF16", values.shape, ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes())


def problem(heads=1, sq=70, sk=70, d=64):
    """Arguments of a launch: random Q, K and V, and outputs that nobody has written."""
    random = np.random.default_rng(1)
    normal = lambda rows: bfloat16(random.standard_normal((1, heads, rows, d)))
    empty = Array.filled("BF16", (1, heads, sq, d), 0xFF)
    lse = np.full((1, heads, sq), np.nan, np.float32)
    tensors = {"q": normal(sq), "k": normal(sk), "v": normal(sk), "o": empty, "lse": lse}
    return {**tensors, "scale": 0.125, "sq": sq, "sk": sk, "D": d, "BM": 64, "BN": 32}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="sm_100")
    parser.add_argument("--to", default="recorded")
    parser.add_argument("--lines", action="store_true", help="keep the lines of this file in the PTX, and say what the tensors are")
    chosen = parser.parse_args()
    arguments = problem()
    options = {"num_warps": 4, "num_stages": 2}
    to = pathlib.Path(chosen.to)
    if chosen.lines:
        flashproof.triton.record(
            to, attend, (2, 1), arguments, ["o", "lse"], target=chosen.target, contract=CONTRACT, **options
        )
        ptx = to / "kernel.ptx"  # names of files without their folders
        ptx.write_text(re.sub(r'(\.file\s+\d+ ")[^"]*/', r"\1", ptx.read_text()))
    else:
        flashproof.triton.record(
            to, attend, (2, 1), arguments, ["o", "lse"], target=chosen.target, template=TEMPLATE, **options
        )
