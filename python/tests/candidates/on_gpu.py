"""Kernels of PyTorch and Triton on a GPU: some right, some that a benchmark lets pass."""

import torch
import triton
import triton.language as tl


def eager(q, k, v, *, scale, **_):
    scores = q.float() @ k.float().transpose(-1, -2) * scale
    return (torch.softmax(scores, -1) @ v.float()).to(q.dtype)


def of_the_library(q, k, v, *, scale, **_):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=scale)


@triton.jit
def _forward(
    q_at,
    k_at,
    v_at,
    out_at,
    queries,
    keys,
    most_keys,
    factor,
    DIM: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    inside = (rows[:, None] < queries) & (columns[None, :] < DIM)
    place = head * queries * DIM + rows[:, None] * DIM + columns[None, :]
    q = tl.load(q_at + place, mask=inside, other=0.0)
    largest = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, most_keys, TILE):
        key = first + tl.arange(0, TILE)
        seen = (key[:, None] < keys) & (columns[None, :] < DIM)
        at = head * keys * DIM + key[:, None] * DIM + columns[None, :]
        k = tl.load(k_at + at, mask=seen, other=0.0)
        v = tl.load(v_at + at, mask=seen, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * factor
        scores = tl.where(key[None, :] < keys, scores, float("-inf"))
        now = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp2(scores - now[:, None])
        lag = tl.exp2(largest - now)
        total = total * lag + tl.sum(p, 1)
        sums = sums * lag[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        largest = now
    result = sums / total[:, None]
    tl.store(out_at + place, result.to(q.dtype), mask=inside)


def _run(q, k, v, out, scale, most_keys, most_rows=None):
    batch, heads, queries, dim = q.shape
    keys = k.shape[2]
    rows = 64 if dim <= 128 else 16
    columns = max(16, triton.next_power_of_2(dim))
    grid = (triton.cdiv(min(queries, most_rows or queries), rows), batch * heads)
    _forward[grid](
        *(q, k, v, out, queries, keys, most_keys, scale * 1.4426950408889634, dim),
        *(columns, rows, 32 if dim <= 256 else 16),
    )
    return out


def in_triton(q, k, v, *, scale, **_):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    return _run(q, k, v, torch.empty_like(q), scale, k.shape[2])


def drops_late_keys(q, k, v, *, scale, **_):
    """It takes no more than 448 keys."""
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    return _run(q, k, v, torch.empty_like(q), scale, min(448, k.shape[2]))


def leaves_late_rows(q, k, v, *, scale, **_):
    """It writes the first 448 rows, and hopes that memory holds what another wrote there."""
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    return _run(q, k, v, torch.empty_like(q), scale, k.shape[2], 448)


def zeros(q, k, v, **_):
    return torch.zeros_like(q)


LAST = {}


def replayed(q, k, v, *, scale, **_):
    """It computes once for a shape."""
    if q.shape not in LAST:
        LAST[q.shape] = eager(q, k, v, scale=scale)
    return LAST[q.shape].clone()


def one_head_of_all(q, k, v, *, scale, **_):
    """The last head is the one before."""
    out = of_the_library(q, k, v, scale=scale)
    out[:, -1] = out[:, -2]
    return out


def in_fp8(q, k, v, *, scale, **_):
    narrow = (x.to(torch.float8_e4m3fn).to(q.dtype) for x in (q, k, v))
    return of_the_library(*narrow, scale=scale)


def in_place(q, k, v, *, scale, **_):
    return of_the_library(q.mul_(scale), k, v, scale=1.0)


class ModelNew(torch.nn.Module):
    def forward(self, Q, K, V):  # noqa: N803
        return in_triton(Q, K, V, scale=Q.shape[-1] ** -0.5)
