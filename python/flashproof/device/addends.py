"""What a bias and ALiBi add to scores, in fp64, and how large the parts are that a kernel may add one
by one: ``src/audit/bounds/addend.ts``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .features import of_heads
from .places import row_places
from .problem import AttentionProblem, Shape
from .selection import zero_where


@dataclass(frozen=True)
class Addends:
    """Of a block's scores, [heads, rows, keys], in natural units."""

    value: Tensor
    """What is added; 0 where a bias of −∞ hides the key."""
    size: Tensor
    """At least the sum of the parts' sizes, in the same places."""


def addends_of(
    problem: AttentionProblem, shape: Shape, heads: range, rows: slice, keys: slice
) -> Addends | None:
    """The addends of some heads, counted over [batch, heads]; None where nothing is added."""
    features = problem.features
    if not features.adds:
        return None
    bias = None if features.bias is None else _of_bias(features.bias, shape, heads, rows, keys)
    if features.alibi_slopes is None:
        assert bias is not None
        return Addends(bias, bias.abs())
    slopes = features.alibi_slopes
    slope = of_heads(slopes[..., None, None], list(heads), shape.heads).double()
    places = row_places(problem, shape, problem.q.device)
    diagonal, first = places.diagonal[rows, None], places.first_key[rows, None]
    key = torch.arange(keys.start, keys.stop, device=problem.q.device)
    distance = (diagonal - key).abs()
    farthest = torch.maximum(distance, key - first) if _may_count_keys(problem) else distance
    of_slope, value = slope.abs() * farthest, -slope * distance
    if bias is None:
        return Addends(value, of_slope)
    value = bias + value
    return Addends(value, value.abs() + 2 * of_slope)


def _of_bias(bias: Tensor, shape: Shape, heads: range, rows: slice, keys: slice) -> Tensor:
    if bias.dim() > 1 and bias.shape[-2] > 1:
        bias = bias[..., rows, :]
    if bias.shape[-1] > 1:
        bias = bias[..., keys]
    found = of_heads(bias, list(heads), shape.heads).double()
    found = zero_where(found == -torch.inf, found)
    return found.expand(len(heads), rows.stop - rows.start, keys.stop - keys.start)


def _may_count_keys(problem: AttentionProblem) -> bool:
    """Whether a kernel may add slope times the key's number, as FlashAttention-2 does under a causal mask:
    that moves all scores of a row by one number, which a sink does not move with.
    """
    left = -1 if problem.window is None else problem.window[0]
    return problem.causal and left < 0 and problem.features.sink is None
