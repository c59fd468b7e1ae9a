"""Attention of sequences that lie one behind the other, each by itself, in fp32."""

import numpy as np


def attention(q, k, v, scale, causal, window, softcap):
    """O [queries, heads, dim] and LSE [heads, queries] (natural logarithm) of one sequence."""
    queries, heads, dim = q.shape
    keys, kv_heads = k.shape[:2]
    q = q.transpose(1, 0, 2).reshape(kv_heads, heads // kv_heads, queries, dim)
    k, v = (x.transpose(1, 0, 2)[:, None] for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * np.float32(scale)
    if softcap is not None:
        scores = np.float32(softcap) * np.tanh(scores / np.float32(softcap))
    diagonal = np.arange(queries)[:, None] + keys - queries
    key = np.arange(keys)
    left, right = window if window is not None else (-1, -1)
    visible = np.ones((queries, keys), bool)
    if causal:
        visible &= key <= diagonal
    if left >= 0:
        visible &= key >= diagonal - left
    if right >= 0:
        visible &= key <= diagonal + right
    scores = np.where(visible, scores, np.float32(-np.inf))
    with np.errstate(all="ignore"):
        maximum = scores.max(-1, keepdims=True, initial=-np.inf)
        weights = np.exp(scores - np.where(np.isneginf(maximum), np.float32(0), maximum))
        total = weights.sum(-1, keepdims=True)
        out = weights @ v / np.where(total == 0, np.float32(1), total)
        lse = (maximum + np.log(total))[..., 0]
    return out.reshape(heads, queries, v.shape[-1]).transpose(1, 0, 2), lse.reshape(heads, queries)


def packed_attention(q, k, v, ends_q, ends_k, scale, causal=False, window=None, softcap=None):
    """O [total, heads, dim] and LSE [heads, total] of sequences that `ends_q` and `ends_k` cut, as FlashAttention's
    cu_seqlens do. Rows behind the last end belong to no sequence; they are neither read nor written."""
    out = np.zeros(q.shape[:2] + v.shape[2:], np.float32)
    lse = np.zeros(q.shape[1::-1], np.float32)
    for b in range(len(ends_q) - 1):
        rows, keys = slice(ends_q[b], ends_q[b + 1]), slice(ends_k[b], ends_k[b + 1])
        out[rows], lse[:, rows] = attention(q[rows], k[keys], v[keys], scale, causal, window, softcap)
    return out, lse
