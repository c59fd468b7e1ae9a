"""Compiles scores.cu with nvcc and records a launch of it for flashproof, without a GPU: python record.py --to recorded"""

import argparse, pathlib, subprocess

import numpy as np
import nvidia

from flashproof import Array
from flashproof.launches import Launch, write_launch, write_tensors

HERE = pathlib.Path(__file__).parent
DIM = 128


def bfloat16(values):
    """Rounded to nearest, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return Array("BF16", values.shape, ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes())


def of_bytes(dtype, values):
    return Array(dtype, values.shape, values.astype(np.uint8).tobytes())


def mxfp8(random, rows):
    """Random e4m3 elements up to 1.875, and powers of two from 1/4 to 2 of 32 each."""
    elements = random.integers(0, 0x40, (1, 1, rows, DIM)) + 0x80 * random.integers(0, 2, (1, 1, rows, DIM))
    return of_bytes("F8_E4M3", elements), of_bytes("F8_E8M0", random.integers(125, 129, (1, 1, rows, DIM // 32)))


def ptx_of(source):
    toolkit = pathlib.Path(next(iter(nvidia.__path__))) / "cu13"
    words = [toolkit / "bin/nvcc", "-ptx", "-arch=sm_120a", "-std=c++17", "-o", "-", source]
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", default="recorded")
    to = pathlib.Path(parser.parse_args().to)
    random, queries, keys = np.random.default_rng(2), 32, 48
    (q, q_block_scale), (k, k_block_scale) = mxfp8(random, queries), mxfp8(random, keys)
    tensors = {
        "q": q, "q_block_scale": q_block_scale, "k": k, "k_block_scale": k_block_scale,
        "v": bfloat16(random.standard_normal((1, 1, keys, DIM))),
        "out": Array.filled("BF16", (1, 1, queries, DIM), 0xFF), "lse": Array.filled("F32", (1, 1, queries), 0xFF),
    }  # fmt: skip
    parameters = [*({"tensor": name} for name in tensors), {"f32": float(np.float32(DIM**-0.5))}, {"s32": keys}]
    write_launch(to, ptx_of(HERE / "scores.cu"), Launch("attend", [queries // 16, 1, 1], [32, 1, 1], parameters, ["out", "lse"]))
    write_tensors(to, tensors)
