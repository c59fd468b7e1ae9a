"""How long one assertion takes in a test session, from the arrays to the verdict.

    python benchmarks/serve.py                                # heads 1, 256 queries and keys, dim 64
    python benchmarks/serve.py --shape 8 512 128 --repeat 5

The first assertion starts Node.js, and the next ones are run by code that is not yet compiled:
both are told apart from the median of the rest. Times are of the wall clock, in milliseconds. All
outputs are made before the first assertion: NumPy's threads wait for more work by spinning, on the
cores that are measured here.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import flashproof

#: How many assertions after the first are not counted.
WARM_UP = 10


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention in fp32, [1, heads, seqlen, dim]."""
    scores = q @ k.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights @ v / weights.sum(-1, keepdims=True)


def main() -> None:
    """Print the times of the first assertion, of the median, and of the slowest after warming up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", type=int, nargs=3, default=(1, 256, 64), metavar="N")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16"])
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    heads, length, dim = given.shape
    rng = np.random.default_rng(0)
    cases = []
    for _ in range(1 + WARM_UP + given.repeat):
        # Each assertion has other values: nothing may be remembered.
        q, k, v = (
            rng.standard_normal((1, heads, length, dim)).astype(given.dtype) for _ in range(3)
        )
        out = attention(*(x.astype(np.float32) for x in (q, k, v))).astype(given.dtype)
        cases.append((q, k, v, out))
    milliseconds = []
    for q, k, v, out in cases:
        start = time.perf_counter()
        flashproof.assert_attention(q, k, v, out, threads=given.threads)
        milliseconds.append(1000 * (time.perf_counter() - start))
    first, second, rest = milliseconds[0], milliseconds[1], milliseconds[1 + WARM_UP :]
    print(f"{heads} × {length} × {dim}, {given.dtype}, {given.repeat} assertions after {WARM_UP}")
    print(f"first   {first:8.1f} ms, which starts Node.js")
    print(f"second  {second:8.1f} ms")
    print(f"median  {statistics.median(rest):8.1f} ms")
    print(f"slowest {max(rest):8.1f} ms")


if __name__ == "__main__":
    main()
