"""A backward of attention in Triton, recorded for `flashproof certify` without a GPU: python backward.py --target sm_90 --to recorded-backward/sm_90 [--atomics]"""

import argparse, os

os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")  # the PTX is the same wherever this file lies

import numpy as np
import triton
import triton.language as tl

import flashproof.triton
from flashproof import Array

from attention import bfloat16

LOG2E = 1.4426950408889634


@triton.jit
def tile(queries, douts, keys, values, lse, delta, rows, columns, scale, sq, sk, CAUSAL: tl.constexpr):
    """P and dS of a tile, both [rows, columns]."""
    scores = tl.dot(queries, tl.trans(keys)) * (scale * 1.4426950408889634)
    seen = (rows[:, None] < sq) & (columns[None, :] < sk)
    if CAUSAL:
        seen = seen & (columns[None, :] <= rows[:, None] + sk - sq)
    p = tl.where(seen, tl.exp2(scores - lse[:, None] * 1.4426950408889634), 0.0)
    return p, p * (tl.dot(douts, tl.trans(values)) - delta[:, None])


@triton.jit
def attend_backward(
    q, k, v, o, do, lse, dq, dk, dv, scale, sq, sk,
    GROUP: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, ATOMICS: tl.constexpr,
):
    """Programs of keys make dK and dV and, where ATOMICS, add to dQ; else programs behind them make dQ."""
    kv = tl.program_id(1)
    d = tl.arange(0, D)
    blocks = tl.cdiv(sk, BN)
    if tl.program_id(0) < blocks:
        columns = tl.program_id(0) * BN + tl.arange(0, BN)
        inside = columns[:, None] < sk
        here = (kv * sk + columns[:, None]) * D + d[None, :]
        keys = tl.load(k + here, mask=inside, other=0.0)
        values = tl.load(v + here, mask=inside, other=0.0)
        key_sum = tl.zeros((BN, D), tl.float32)
        value_sum = tl.zeros((BN, D), tl.float32)
        for head in range(kv * GROUP, kv * GROUP + GROUP):
            for first in range(0, sq, BM):
                rows = first + tl.arange(0, BM)
                places = (head * sq + rows[:, None]) * D + d[None, :]
                queries = tl.load(q + places, mask=rows[:, None] < sq, other=0.0)
                douts = tl.load(do + places, mask=rows[:, None] < sq, other=0.0)
                outs = tl.load(o + places, mask=rows[:, None] < sq, other=0.0)
                delta = tl.sum(outs.to(tl.float32) * douts.to(tl.float32), 1)
                own = tl.load(lse + head * sq + rows, mask=rows < sq, other=0.0)
                p, ds = tile(queries, douts, keys, values, own, delta, rows, columns, scale, sq, sk, CAUSAL)
                value_sum = tl.dot(tl.trans(p.to(douts.dtype)), douts, value_sum)
                key_sum = tl.dot(tl.trans(ds.to(queries.dtype)), queries, key_sum)
                if ATOMICS:
                    part = tl.dot(ds.to(keys.dtype), keys) * scale
                    tl.atomic_add(dq + places, part, mask=rows[:, None] < sq, sem="relaxed")
        tl.store(dk + here, (key_sum * scale).to(dk.dtype.element_ty), mask=inside)
        tl.store(dv + here, value_sum.to(dv.dtype.element_ty), mask=inside)
    elif not ATOMICS:
        for head in range(kv * GROUP, kv * GROUP + GROUP):
            rows = (tl.program_id(0) - blocks) * BM + tl.arange(0, BM)
            places = (head * sq + rows[:, None]) * D + d[None, :]
            queries = tl.load(q + places, mask=rows[:, None] < sq, other=0.0)
            douts = tl.load(do + places, mask=rows[:, None] < sq, other=0.0)
            outs = tl.load(o + places, mask=rows[:, None] < sq, other=0.0)
            delta = tl.sum(outs.to(tl.float32) * douts.to(tl.float32), 1)
            own = tl.load(lse + head * sq + rows, mask=rows < sq, other=0.0)
            query_sum = tl.zeros((BM, D), tl.float32)
            for first in range(0, sk, BN):
                columns = first + tl.arange(0, BN)
                inside = columns[:, None] < sk
                here = (kv * sk + columns[:, None]) * D + d[None, :]
                keys = tl.load(k + here, mask=inside, other=0.0)
                values = tl.load(v + here, mask=inside, other=0.0)
                p, ds = tile(queries, douts, keys, values, own, delta, rows, columns, scale, sq, sk, CAUSAL)
                query_sum = tl.dot(ds.to(keys.dtype), keys, query_sum)
            tl.store(dq + places, query_sum * scale, mask=rows[:, None] < sq)


def forward(q, k, v, scale, causal):
    """O and the natural LSE of attention in fp64."""
    group = q.shape[1] // k.shape[1]
    keys, values = (np.repeat(one, group, 1) for one in (k, v))
    scores = scale * (q @ np.swapaxes(keys, -1, -2))
    if causal:
        sq, sk = scores.shape[-2:]
        scores = np.where(np.arange(sk) <= np.arange(sq)[:, None] + sk - sq, scores, -np.inf)
    lse = np.log(np.sum(np.exp(scores), -1))
    return np.exp(scores - lse[..., None]) @ values, lse


def decoded(array):
    """bf16 as fp64."""
    return (np.frombuffer(array.data, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(array.shape).astype(np.float64)


def problem(heads, kv_heads, sq, sk, causal, atomics, d=64, scale=0.125, block=32):
    """Arguments of a launch: random Q, K, V and dO, what the forward of them gives, and gradients that nobody has written."""
    random = np.random.default_rng(4)
    normal = lambda heads, rows: bfloat16(random.standard_normal((1, heads, rows, d)))
    q, do, k, v = normal(heads, sq), normal(heads, sq), normal(kv_heads, sk), normal(kv_heads, sk)
    out, lse = forward(decoded(q), decoded(k), decoded(v), scale, causal)
    empty = lambda: Array.filled("BF16", (1, kv_heads, sk, d), 0xFF)
    # What is added to begins with zeros.
    dq = np.full((1, heads, sq, d), 0 if atomics else np.nan, np.float32)
    tensors = {"q": q, "k": k, "v": v, "o": bfloat16(out), "do": do, "lse": lse.astype(np.float32), "dq": dq, "dk": empty(), "dv": empty()}
    sizes = {"GROUP": heads // kv_heads, "D": d, "BM": block, "BN": block, "CAUSAL": causal, "ATOMICS": atomics}
    return {**tensors, "scale": scale, "sq": sq, "sk": sk, **sizes}


CONTRACT = {"q": "q", "k": "k", "v": "v", "out": "o", "dout": "do", "lse": "lse", "dq": "dq", "dk": "dk", "dv": "dv"}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--to", default="recorded-backward")
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--kv-heads", type=int, default=1)
    parser.add_argument("--queries", type=int, default=70)
    parser.add_argument("--keys", type=int, default=70)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--atomics", action="store_true", help="dQ is added up by atomics, in no order")
    chosen = parser.parse_args()
    arguments = problem(chosen.heads, chosen.kv_heads, chosen.queries, chosen.keys, chosen.causal, chosen.atomics)
    blocks = lambda rows: -(-rows // arguments["BM"])
    programs = blocks(chosen.keys) + (0 if chosen.atomics else blocks(chosen.queries))
    contract = {"kind": "attention", "scale": arguments["scale"], "causal": chosen.causal, **CONTRACT}
    flashproof.triton.record(
        chosen.to, attend_backward, (programs, chosen.kv_heads), arguments, ["dq", "dk", "dv"],
        target=chosen.target, contract=contract, num_warps=4, num_stages=2,
    )
