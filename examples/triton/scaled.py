"""Attention whose scores are block-scaled products, as GeForce Blackwell has them: python scaled.py --format nvfp4 --to recorded/nvfp4-sm_120"""

import argparse, os, pathlib

os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")  # the PTX is the same wherever this file lies

import numpy as np
import triton
import triton.language as tl

import flashproof.triton
from flashproof import Array


@triton.jit
def attend(
    q, q_block_scale, k, k_block_scale, v, o, lse, scale, D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, BN: tl.constexpr,
    FORMAT: tl.constexpr, PACKED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    stored, blocks, columns = tl.arange(0, D // PACKED), tl.arange(0, D // BLOCK), tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * (D // PACKED) + stored[None, :])
    q_factors = tl.load(q_block_scale + rows[:, None] * (D // BLOCK) + blocks[None, :])
    maximum = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    output = tl.zeros((ROWS, D), tl.float32)
    for first in range(0, KEYS, BN):
        keys = first + tl.arange(0, BN)
        k_factors = tl.load(k_block_scale + keys[:, None] * (D // BLOCK) + blocks[None, :])
        transposed = tl.load(k + keys[None, :] * (D // PACKED) + stored[:, None])
        scores = tl.dot_scaled(queries, q_factors, FORMAT, transposed, k_factors, FORMAT) * (scale * 1.4426950408889634)
        larger = tl.maximum(maximum, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(maximum - larger)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + keys[:, None] * D + columns[None, :])
        output = tl.dot(weights.to(values.dtype), values, output * shrink[:, None])
        maximum = larger
    tl.store(o + rows[:, None] * D + columns[None, :], (output / total[:, None]).to(o.dtype.element_ty))
    tl.store(lse + rows, (maximum + tl.log2(total)) * 0.6931471805599453)


def bfloat16(values):
    """Rounded to nearest, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return Array("BF16", values.shape, ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes())


def of_bytes(dtype, values):
    return Array(dtype, values.shape, values.astype(np.uint8).tobytes())


def nvfp4(random, rows, d):
    """Random elements, two to a byte, and e4m3 factors from 0.25 to 1.875 of 16 each."""
    elements = random.integers(0, 256, (1, 1, rows, d // 2))
    return of_bytes("U8", elements), of_bytes("F8_E4M3", random.integers(0x28, 0x40, (1, 1, rows, d // 16)))


def mxfp8(random, rows, d):
    """Random e4m3 elements up to 3.75, and powers of two from 1/4 to 2, as their exponents, of 32 each."""
    elements = random.integers(0, 0x48, (1, 1, rows, d)) + 0x80 * random.integers(0, 2, (1, 1, rows, d))
    return of_bytes("F8_E4M3", elements), of_bytes("U8", random.integers(125, 129, (1, 1, rows, d // 32)))


#: By name: numbers, Triton's name of an element, elements to a byte, elements that share a factor.
FORMATS = {"nvfp4": (nvfp4, "e2m1", 2, 16), "mxfp8": (mxfp8, "e4m3", 1, 32)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="sm_120")
    parser.add_argument("--format", default="nvfp4", choices=FORMATS)
    parser.add_argument("--to", default="recorded")
    chosen = parser.parse_args()
    draw, element, packed, block = FORMATS[chosen.format]
    random, rows, keys, d = np.random.default_rng(1), 64, 64, 64
    (q, q_block_scale), (k, k_block_scale) = draw(random, rows, d), draw(random, keys, d)
    arguments = {
        "q": q, "q_block_scale": q_block_scale, "k": k, "k_block_scale": k_block_scale, "v": bfloat16(random.standard_normal((1, 1, keys, d))),
        "o": Array.filled("BF16", (1, 1, rows, d), 0xFF), "lse": np.full((1, 1, rows), np.nan, np.float32),
        "scale": 0.125, "D": d, "ROWS": 32, "KEYS": keys, "BN": 32, "FORMAT": element, "PACKED": packed, "BLOCK": block,
    }  # fmt: skip
    flashproof.triton.record(pathlib.Path(chosen.to), attend, (rows // 32,), arguments, ["o", "lse"], target=chosen.target, num_warps=2)
