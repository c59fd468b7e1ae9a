"""dQ, dK and dV of exact attention in fp64 on the device that the tensors lie on, each element with
a radius.

The radius is Theorem 23 of docs/theory/bounds-backward.md, which holds for sums in any order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .masks import visible_keys
from .measure import Room, free_bytes, key_span
from .problem import (
    AttentionProblem,
    KernelOutputs,
    Shape,
    batched,
    shape_of,
    why_not_covered,
    why_not_fp64,
)
from .weights import ROUNDOFF, WeightBlock, gamma, head_tensors, weigh_block

_UP = 1 + 2.0**-5
"""What products of two errors, and roundings of the radius itself, come to at most."""
_LEAST_TRUST = 2.0**-10
"""Above this relative error of P nothing is said of a row."""
_FLOOR = 2.0**-500
"""What fp64's underflow comes to at most, times the scale where that is above 1."""


@dataclass(frozen=True)
class Gradient:
    """One gradient: |values − exact| ≤ radius, both fp64 and of the shape of its tensor. A radius
    of ∞ says that the theorem does not reach this element.
    """

    values: Tensor
    radius: Tensor


@dataclass(frozen=True)
class Gradients:
    """Gradients by q, k and v."""

    dq: Gradient
    dk: Gradient
    dv: Gradient


def exact_gradients(problem: AttentionProblem, dout: Tensor) -> Gradients:
    """The gradients of exact attention for the gradient ``dout`` of its output, [batch, heads,
    seqlen_q, v dim] or without the batch.

    Gradients have a batch axis, and those of k and v are summed over the query heads of a group.
    No matrix of all queries and keys is made. Raises ValueError for tensors that do not fit
    together, and for what Theorem 23 does not cover: a softcap, infinities and NaNs, formats that
    are not judged on the device, devices without fp64 of their own.
    """
    problem = batched(problem)
    shape = shape_of(problem)
    dout = _fitted(problem, shape, dout)
    q, k, v = (torch.zeros(x.shape, dtype=torch.float64, device=x.device) for x in _inputs(problem))
    sums = _Sums(q, k, v, *(torch.zeros_like(x) for x in (q, k, v)))
    for index in range(shape.batch * shape.heads):
        _add_head(problem, shape, dout, index, sums)
    scale = problem.used_scale
    floor = _FLOOR * max(1.0, abs(scale))

    def finished(values: Tensor, radius: Tensor, factor: float) -> Gradient:
        # The product with the scale rounds once.
        product = values * factor
        bound = (radius * abs(factor) + ROUNDOFF * product.abs()) * _UP + floor
        return Gradient(product, bound)

    return Gradients(
        finished(sums.dq, sums.dq_radius, scale),
        finished(sums.dk, sums.dk_radius, scale),
        finished(sums.dv, sums.dv_radius, 1.0),
    )


def _inputs(problem: AttentionProblem) -> tuple[Tensor, Tensor, Tensor]:
    return problem.q, problem.k, problem.v


def _fitted(problem: AttentionProblem, shape: Shape, dout: Tensor) -> Tensor:
    fitting = dout.detach().unsqueeze(0) if dout.dim() == 3 else dout.detach()
    expected = (shape.batch, shape.heads, shape.queries, shape.v_dim)
    if tuple(fitting.shape) != expected:
        raise ValueError(
            f"dout has shape {list(dout.shape)}; the problem asks for {list(expected)}"
        )
    if problem.softcap is not None:
        raise ValueError("gradients under a softcap are not known on the device; use the audit")
    if not problem.features.is_plain:
        raise ValueError(
            "gradients are known on the device under causal and window masks alone; use the audit"
        )
    reason = why_not_covered(problem, KernelOutputs(fitting)) or why_not_fp64(problem)
    if reason is not None:
        # The gradient of the output has the output's place in what was asked.
        named = f"d{reason}" if reason.startswith("out ") else reason
        raise ValueError(f"gradients are not known on the device: {named}")
    return fitting


@dataclass(frozen=True)
class _Sums:
    """Sums of all tiles without the scale, and their radii: of the tensors' shapes, fp64."""

    dq: Tensor
    dk: Tensor
    dv: Tensor
    dq_radius: Tensor
    dk_radius: Tensor
    dv_radius: Tensor


@dataclass(frozen=True)
class PairErrors:
    """What fp64 leaves open of P, x = dO·v and dS = P (x − D) without the scale, [rows] of a block."""

    weight_errors: Tensor
    """Of P, relative."""
    share_errors: tuple[Tensor, Tensor]
    """dS is off by at most the first times |dS| and the second times P."""
    is_bounded: Tensor
    """Whether the errors are errors."""


def pair_errors(block: WeightBlock, dout: Tensor, values: Tensor, magnitude: Tensor) -> PairErrors:
    """Theorem 23 of a block: ``dout`` is [rows, v dim], ``values`` [heads, keys, v dim], ``magnitude`` [rows]
    Σ P|x|.
    """
    terms, dim = float(values.shape[1]), float(values.shape[2])
    relative = (2 * block.trust + gamma(2 * terms + 8)) * _UP
    is_bounded = relative <= _LEAST_TRUST
    relative = relative.masked_fill(~is_bounded, _LEAST_TRUST)
    of_rows, of_keys = (y.square().sum(-1).sqrt() * (1 + 2.0**-40) for y in (dout, values))
    largest = of_keys.amax(1).repeat_interleave(block.weights.shape[1])
    of_x = gamma(dim) * of_rows * largest
    of_delta = ((relative + gamma(terms + 1)) * magnitude + of_x) * _UP
    return PairErrors(
        relative, ((relative + 3 * ROUNDOFF) * _UP, (of_x + of_delta) * _UP), is_bounded
    )


def _add_head(
    problem: AttentionProblem, shape: Shape, dout: Tensor, index: int, sums: _Sums
) -> None:
    """Adds what one query head has of all gradients."""
    batch, number = divmod(index, shape.heads)
    group = shape.heads // shape.kv_heads
    kv = number // group
    head = head_tensors(problem, shape, range(index, index + 1))
    keys = visible_keys(problem, shape, head.q.device)
    step = Room(free_bytes(head.q.device)).rows(shape.keys)
    # No product of a key's sums passes more additions than there are rows, and blocks, of its group.
    of_keys = gamma(2.0 * shape.queries * group + 2)
    for first in range(0, shape.queries, step):
        rows = slice(first, min(first + step, shape.queries))
        seen = keys.rows(first, rows.stop - first)
        low, high = key_span(seen)
        block = weigh_block(problem, head, seen, first, low, high)
        q, k, d = head.q[0, rows], head.k[0, low:high], dout[batch, number, rows].double()
        x, weights = d @ head.v[0, low:high].T, block.weights[0]
        products = weights * x
        delta = products.sum(-1)
        of = pair_errors(block, d, head.v[:, low:high], products.abs_().sum(-1))
        shares = (x - delta[:, None]).mul_(weights)
        sums.dq[batch, number, rows] = shares @ k
        sums.dk[batch, kv, low:high] += shares.T @ q
        sums.dv[batch, kv, low:high] += weights.T @ d
        size = shares.abs_()
        of_size, of_weight = (x[:, None] for x in of.share_errors)
        radius = (of_size + gamma(float(high - low))) * (size @ k.abs())
        radius += of_weight * (weights @ k.abs())
        radius[~of.is_bounded] = math.inf
        sums.dq_radius[batch, number, rows] = radius
        of_shares = size.T @ ((of_size + of_keys) * q.abs())
        of_shares += weights.T @ (of_weight * q.abs())
        of_weights = ((of.weight_errors + of_keys)[:, None] * weights).T @ d.abs()
        if not bool(of.is_bounded.all()):
            of_shares, of_weights = (torch.full_like(x, math.inf) for x in (of_shares, of_weights))
        sums.dk_radius[batch, kv, low:high] += of_shares
        sums.dv_radius[batch, kv, low:high] += of_weights
