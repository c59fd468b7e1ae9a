"""Attention of one sequence whose keys and values lie in pages, page by page, in fp32."""

import numpy as np


def paged_attention(q, k_pages, v_pages, pages, used, scale, causal=False, window=None, softcap=None):
    """O [queries, heads, dim] and LSE [heads, queries] (natural logarithm).

    `q` is [queries, heads, dim], `k_pages` and `v_pages` [pages, page size, kv heads, dim]; `pages` are
    the sequence's, in order, and `used` says how many of their slots hold a key. What the other slots
    hold is never read: a NaN there must not show.
    """
    queries, heads, dim = q.shape
    page_size, kv_heads = k_pages.shape[1:3]
    group = heads // kv_heads
    q = q.transpose(1, 0, 2).reshape(kv_heads, group, queries, dim)
    diagonal = np.arange(queries)[:, None] + used - queries
    left, right = window if window is not None else (-1, -1)

    rows = (kv_heads, group, queries, 1)
    maximum = np.full(rows, -np.inf, np.float32)
    total = np.zeros(rows, np.float32)
    out = np.zeros(rows[:-1] + v_pages.shape[-1:], np.float32)
    with np.errstate(all="ignore"):
        for number, start in enumerate(range(0, used, page_size)):
            count = min(page_size, used - start)
            # Copied, since numpy may add in another order where memory lies otherwise.
            k, v = (
                np.ascontiguousarray(x[pages[number], :count].transpose(1, 2, 0))[:, None]
                for x in (k_pages, v_pages)
            )
            key = start + np.arange(count)
            visible = np.ones((queries, count), bool)
            if causal:
                visible &= key <= diagonal
            if left >= 0:
                visible &= key >= diagonal - left
            if right >= 0:
                visible &= key <= diagonal + right

            scores = q @ k * np.float32(scale)
            if softcap is not None:
                scores = np.float32(softcap) * np.tanh(scores / np.float32(softcap))
            scores = np.where(visible, scores, np.float32(-np.inf))
            grown = np.maximum(maximum, scores.max(-1, keepdims=True))
            origin = np.where(np.isneginf(grown), np.float32(0), grown)
            weights = np.exp(scores - origin)
            factor = np.exp(maximum - origin)
            total = total * factor + weights.sum(-1, keepdims=True)
            out = out * factor + weights @ v.swapaxes(-1, -2)
            maximum = grown
        out = out / np.where(total == 0, np.float32(1), total)
        lse = (maximum + np.log(total))[..., 0]
    return out.reshape(heads, queries, out.shape[-1]).transpose(1, 0, 2), lse.reshape(heads, queries)
