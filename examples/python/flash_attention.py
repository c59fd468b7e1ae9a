"""Attention with a running maximum, one block of keys after the other, in fp32."""

import numpy as np


def attention(q, k, v, scale, causal=False, window=None, softcap=None, block=64):
    """O and LSE (natural logarithm) of fp32 arrays [batch, heads, seqlen, dim].

    K and V may have fewer heads than Q. `window` is [left, right] in keys, -1 for no limit on that
    side; causal and window masks are aligned to the last query and the last key.
    """
    batch, heads, queries, dim = q.shape
    kv_heads, keys = k.shape[1:3]
    # Query heads that share a kv head stand beside one another.
    q = q.reshape(batch, kv_heads, heads // kv_heads, queries, dim)
    k, v = k[:, :, None], v[:, :, None]

    diagonal = np.arange(queries)[:, None] + keys - queries
    left, right = window if window is not None else (-1, -1)

    rows = q.shape[:-1] + (1,)
    maximum = np.full(rows, -np.inf, np.float32)
    total = np.zeros(rows, np.float32)
    out = np.zeros(q.shape[:-1] + v.shape[-1:], np.float32)

    with np.errstate(all="ignore"):
        for start in range(0, keys, block):
            key = np.arange(start, min(start + block, keys))
            visible = np.ones((queries, key.size), bool)
            if causal:
                visible &= key <= diagonal
            if left >= 0:
                visible &= key >= diagonal - left
            if right >= 0:
                visible &= key <= diagonal + right

            scores = q @ k[..., key, :].swapaxes(-1, -2) * np.float32(scale)
            if softcap is not None:
                scores = np.float32(softcap) * np.tanh(scores / np.float32(softcap))
            scores = np.where(visible, scores, np.float32(-np.inf))

            grown = np.maximum(maximum, scores.max(-1, keepdims=True))
            origin = np.where(np.isneginf(grown), np.float32(0), grown)
            weights = np.exp(scores - origin)
            factor = np.exp(maximum - origin)
            total = total * factor + weights.sum(-1, keepdims=True)
            out = out * factor + weights @ v[..., key, :]
            maximum = grown

        # A query without keys has nothing to divide by, and attends to nothing.
        out = out / np.where(total == 0, np.float32(1), total)
        lse = (maximum + np.log(total))[..., 0]
    return out.reshape(batch, heads, queries, v.shape[-1]), lse.reshape(batch, heads, queries)
