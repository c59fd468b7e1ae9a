"""Attention in fp32, sequence by sequence, for packages that stand in for libraries of kernels; and faults of it."""

import math

import torch


class Faults:
    """The fault that all stand-ins have now: None, or a word that `attend` knows."""

    now = None


def visible(queries, keys, causal, window):
    """Which keys a query sees, aligned to the last of both."""
    shift = 0 if Faults.now == "top-left" else keys - queries
    left, right = window
    if Faults.now == "window":
        left -= 1
    i, j = torch.arange(queries)[:, None] + shift, torch.arange(keys)[None]
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        seen &= j <= i
    if left >= 0:
        seen &= j >= i - left
    if right >= 0:
        seen &= j <= i + right
    return seen


def attend(q, k, v, *, scale=None, causal=False, window=(-1, -1), softcap=0.0, slopes=None,
           mask=None, bias=None, sink=None):  # fmt: skip
    """One sequence, [rows, heads, dim]: the output and the LSE, [heads, rows], both in fp32."""
    q, k, v = (x.float().transpose(0, 1) for x in (q, k, v))
    group = q.shape[0] // k.shape[0]
    if Faults.now == "kv-head":
        k, v = (x.repeat(group, 1, 1) for x in (k, v))
    else:
        k, v = (x.repeat_interleave(group, 0) for x in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    s = q @ k.mT * (scale * 1.1 if Faults.now == "scale" else scale)
    if softcap > 0 and Faults.now != "softcap":
        s = softcap * torch.tanh(s / softcap)
    rows, keys = s.shape[-2:]
    if slopes is not None:
        distance = (torch.arange(rows)[:, None] + keys - rows - torch.arange(keys)).abs()
        sign = 1 if Faults.now == "alibi" else -1
        s = s + sign * slopes[:, None, None] * distance
    if bias is not None:
        s = s + bias
    seen = visible(rows, keys, causal, window)
    s = s.masked_fill(~(seen if mask is None else seen & mask), -math.inf)
    logits = s if sink is None else torch.cat([s, sink[:, None, None].expand(-1, rows, 1)], -1)
    lse = logits.logsumexp(-1)
    p = torch.exp(s - lse.nan_to_num(neginf=0)[..., None])
    return (p @ v).transpose(0, 1), lse


def each(q, k, v, slopes=None, **settings):
    """[batch, rows, heads, dim]: the output in Q's format, or bf16 of 8 bits, and the LSE, [batch, heads, rows]."""
    made = [
        attend(
            *one, slopes=slopes if slopes is None or slopes.dim() == 1 else slopes[i], **settings
        )
        for i, one in enumerate(zip(q, k, v))
    ]
    dtype = torch.bfloat16 if q.dtype.itemsize == 1 else q.dtype
    return torch.stack([out for out, _ in made]).to(dtype), torch.stack([lse for _, lse in made])


def packed(q, k, v, ends_q, ends_k, slopes=None, **settings):
    """[total, heads, dim]: the output in Q's format, and the LSE, [heads, total]; `k` and `v` may be lists of sequences."""
    outs, lses = [], []
    for i in range(len(ends_q) - 1):
        rows = slice(ends_q[i], ends_q[i + 1])
        if ends_k is None:
            keys, values = k[i], v[i]
        else:
            keys, values = (x[ends_k[i] : ends_k[i + 1]] for x in (k, v))
        own = slopes if slopes is None or slopes.dim() == 1 else slopes[i]
        out, lse = attend(q[rows], keys, values, slopes=own, **settings)
        outs.append(out)
        lses.append(lse)
    dtype = torch.bfloat16 if q.dtype.itemsize == 1 else q.dtype
    return torch.cat(outs).to(dtype), torch.cat(lses, -1)


def pages(cache, table, length):
    """A sequence of a paged cache, [length, heads, dim]."""
    return cache[table.long()].flatten(0, 1)[:length]


def widened(x, factors, name):
    """Numbers times the factors of their heads, [batch, heads of K]."""
    if factors is None or Faults.now == f"{name}_descale":
        return x.float()
    return (
        x.float() * factors.repeat_interleave(x.shape[2] // factors.shape[1], 1)[:, None, :, None]
    )
