"""
Attention of one query in two launches: programs of parts of the keys, and one that merges what they leave. Both are recorded for a GPU that need
not be here.

    python decode.py --target sm_90 --to recorded/decode-sm_90
"""

import argparse, os, pathlib

import flashproof, flashproof.triton
import numpy, triton
import triton.language as tl

HEADS, KEYS, DIM, PARTS, BLOCK = 2, 100, 32, 3, 16
#: Keys of a part, the last of which has fewer.
OF_PART = 48


@triton.jit
def attend_part(q, k, v, part_out, part_max, part_sum, scale, keys, OF_PART: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr):
    """The softmax of one part of the keys, for one head, the largest score and the sum of its weights; scores are of base 2."""
    head, part = tl.program_id(0), tl.program_id(1)
    columns = tl.arange(0, DIM)
    query = tl.load(q + head * DIM + columns).to(tl.float32)
    maximum, total = -float("inf"), 0.0
    sums = tl.zeros([DIM], tl.float32)
    for first in range(part * OF_PART, tl.minimum((part + 1) * OF_PART, keys), BLOCK):
        rows = first + tl.arange(0, BLOCK)
        seen = rows < keys
        at = (head * keys + rows)[:, None] * DIM + columns[None, :]
        block = tl.load(k + at, mask=seen[:, None], other=0.0).to(tl.float32)
        scores = tl.where(seen, tl.sum(block * query[None, :], 1) * (scale * 1.4426950408889634), -float("inf"))
        larger = tl.maximum(maximum, tl.max(scores, 0))
        weights, rescale = tl.exp2(scores - larger), tl.exp2(maximum - larger)
        total = total * rescale + tl.sum(weights, 0)
        values = tl.load(v + at, mask=seen[:, None], other=0.0).to(tl.float32)
        sums = sums * rescale + tl.sum(weights[:, None] * values, 0)
        maximum = larger
    place = part * tl.num_programs(0) + head
    tl.store(part_out + place * DIM + columns, sums / total)
    tl.store(part_max + place, maximum)
    tl.store(part_sum + place, total)


@triton.jit
def merge_parts(part_out, part_max, part_sum, o, lse, heads, PARTS: tl.constexpr, DIM: tl.constexpr):
    """The softmax of all keys from those of the parts, for one head."""
    head = tl.program_id(0)
    columns = tl.arange(0, DIM)
    maximum, total = -float("inf"), 0.0
    sums = tl.zeros([DIM], tl.float32)
    for part in range(PARTS):
        place = part * heads + head
        score = tl.load(part_max + place)
        larger = tl.maximum(maximum, score)
        weight = tl.load(part_sum + place) * tl.exp2(score - larger)
        rescale = tl.exp2(maximum - larger)
        sums = sums * rescale + weight * tl.load(part_out + place * DIM + columns)
        total = total * rescale + weight
        maximum = larger
    tl.store(o + head * DIM + columns, (sums / total).to(tl.bfloat16))
    tl.store(lse + head, (maximum + tl.log2(total)) * 0.6931471805599453)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path("recorded/decode-sm_90"))
    options = parser.parse_args()
    random = numpy.random.default_rng(1)

    def bf16(*shape):
        words = random.standard_normal(shape, dtype=numpy.float32).view(numpy.uint32) >> 16
        return flashproof.Array("BF16", shape, words.astype("<u2").tobytes())

    def blank(dtype, *shape):
        return flashproof.Array.filled(dtype, shape, 255)

    scale = DIM**-0.5
    parts = {name: blank("F32", PARTS, HEADS) for name in ("part_max", "part_sum")}
    parts = {"part_out": blank("F32", PARTS, HEADS, DIM), **parts}
    given = {"q": bf16(1, HEADS, 1, DIM), "k": bf16(1, HEADS, KEYS, DIM), "v": bf16(1, HEADS, KEYS, DIM)}
    results = {"o": blank("BF16", 1, HEADS, 1, DIM), "lse": blank("F32", 1, HEADS, 1)}
    views = {name: {"tensor": name, "shape": list(one.shape)} for name, one in given.items()}
    nothing = dict.fromkeys(parts, "nothing")
    flashproof.triton.record(
        options.to / "0-attend", attend_part, (HEADS, PARTS),
        {**given, **parts, "scale": scale, "keys": KEYS, "OF_PART": OF_PART, "DIM": DIM, "BLOCK": BLOCK},
        list(parts), target=options.target, buffers=nothing, num_warps=1,
    )
    # Tensors of one name are one buffer, so the second launch has those of the first.
    flashproof.triton.record(
        options.to / "1-merge", merge_parts, (HEADS,),
        {**parts, **results, "heads": HEADS, "PARTS": PARTS, "DIM": DIM},
        list(results), target=options.target, buffers=nothing, num_warps=1,
        contract={"kind": "attention", "scale": scale, **views, "out": "o", "lse": "lse"},
    )


if __name__ == "__main__":
    main()
