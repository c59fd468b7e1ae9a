"""Writes what an attention kernel reads and writes, one safetensors file for each problem.

    python3 dump_attention.py FOLDER

Needs numpy. To dump your own kernel, replace `kernel`; with torch, `save_file` of `safetensors.torch`
does what `save` does, and keeps bf16.
"""

import json
import pathlib
import struct
import sys

import numpy as np

TILE = 64
# Name, query heads, kv heads, queries, keys, head dimension, causal, factor on the scores. Lengths
# that are no multiple of the tile, grouped heads and large scores are where kernels break.
PROBLEMS = [
    ("plain", 2, 2, 128, 128, 64, False, 1),
    ("odd-lengths", 2, 2, 100, 300, 64, False, 1),
    ("causal", 2, 2, 130, 200, 64, True, 1),
    ("grouped-heads", 4, 2, 70, 90, 32, True, 1),
    ("large-scores", 1, 1, 128, 256, 64, False, 8),
]


def kernel(q, k, v, scale, causal):
    """Attention tile by tile with a running maximum, in fp32: stands for your kernel."""
    heads, queries, _ = q.shape
    keys = k.shape[1]
    k, v = (np.repeat(x, heads // x.shape[0], axis=0).astype(np.float32) for x in (k, v))
    last = np.arange(queries)[:, None] + (keys - queries)  # the last key that a query sees
    top = np.full((heads, queries, 1), -np.inf, np.float32)
    total = np.zeros_like(top)
    out = np.zeros((heads, queries, v.shape[2]), np.float32)
    for start in range(0, keys, TILE):
        tile = slice(start, min(start + TILE, keys))
        scores = (q.astype(np.float32) @ k[:, tile].transpose(0, 2, 1)) * np.float32(scale)
        if causal:
            scores = np.where(np.arange(keys)[None, tile] <= last, scores, -np.inf)
        grown = np.maximum(top, scores.max(-1, keepdims=True))
        safe = np.where(np.isneginf(grown), 0, grown)
        weights = np.exp(scores - safe)
        shrink = np.exp(top - safe)
        total = total * shrink + weights.sum(-1, keepdims=True)
        out = out * shrink + weights @ v[:, tile]
        top = grown
    return (out / total).astype(q.dtype), (top + np.log(total))[..., 0].astype(np.float32)


def save(path, tensors, **notes):
    """A safetensors file: the length of a JSON header, the header, the bytes."""
    header, data = {"__metadata__": {name: str(value) for name, value in notes.items()}}, b""
    for name, array in tensors.items():
        dtype = {"float16": "F16", "float32": "F32"}[array.dtype.name]
        offsets = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": offsets}
        data += array.tobytes()
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, heads, kv_heads, queries, keys, dim, causal, factor) in enumerate(PROBLEMS):
        draw = np.random.default_rng(seed).standard_normal
        q = (factor * draw((heads, queries, dim))).astype(np.float16)
        k, v = (draw((kv_heads, keys, dim)).astype(np.float16) for _ in range(2))
        scale = dim**-0.5
        out, lse = kernel(q, k, v, scale, causal)
        tensors = {"q": q, "k": k, "v": v, "out": out, "lse": lse}
        save(folder / f"{name}.safetensors", tensors, scale=scale, causal=str(causal).lower())


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
