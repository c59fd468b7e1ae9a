"""Attention of NumPy in fp32: a kernel to try."""

import numpy as np


def masked_scores(q, k, scale, causal, window=None, softcap=None, mask=None):
    group = q.shape[1] // k.shape[1]
    k = np.repeat(k.astype(np.float32), group, axis=1)
    s = np.einsum("bhqd,bhkd->bhqk", q.astype(np.float32), k) * np.float32(scale)
    if softcap:
        s = np.float32(softcap) * np.tanh(s / np.float32(softcap))
    queries, keys = s.shape[-2:]
    i, j = np.arange(queries)[:, None] + keys - queries, np.arange(keys)[None, :]
    seen = np.ones((queries, keys), bool)
    if causal:
        seen &= j <= i
    if window is not None:
        left, right = window
        if left >= 0:
            seen &= j >= i - left
        if right >= 0:
            seen &= j <= i + right
    seen = np.broadcast_to(seen, s.shape)
    if mask is not None:
        seen = seen & mask
    return np.where(seen, s, -np.inf)


def attention(q, k, v, *, scale=None, causal=False, window=None, softcap=None, mask=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = masked_scores(q, k, scale, causal, window, softcap, mask)
    v = np.repeat(v.astype(np.float32), q.shape[1] // v.shape[1], axis=1)
    with np.errstate(all="ignore"):
        largest = np.max(s, axis=-1, keepdims=True)
        p = np.exp(s - np.where(np.isinf(largest), 0, largest))
        total = p.sum(-1, keepdims=True)
        out = np.einsum("bhqk,bhkd->bhqd", p, v) / np.where(total == 0, 1, total)
        lse = np.where(total == 0, -np.inf, np.log(total) + largest)[..., 0]
    return out.astype(q.dtype), lse.astype(np.float32)


def problem(dtype=np.float32, batch=1, heads=2, queries=33, keys=40, dim=16, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(
        rng.standard_normal((batch, heads, rows, dim)).astype(np.float32).astype(dtype)
        for rows in (queries, keys, keys)
    )
