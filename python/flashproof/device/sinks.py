"""A sink beside the keys of a row: Theorem 11 of docs/theory/bounds.md, and ``sunkRow`` of
``src/audit/bounds/row-units.ts``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .problem import AttentionProblem, Shape
from .selection import kept_where

LN2 = math.log(2)


@dataclass(frozen=True)
class SunkRows:
    """Rows with a sink, [rows] each; exponents are log2."""

    exponent: Tensor
    """The sink's; −∞ for none."""
    is_there: Tensor
    size: Tensor
    """The magnitude of the exponent; 0 for none."""
    above: Tensor
    """How far it is above the largest of a key; 0 where it is not."""
    whole: Tensor
    """Σ 2^(exponent − maximum) of the keys and the sink."""
    share: Tensor
    """The part of that which keys have; 1 without a sink."""
    weight: Tensor
    """The part that the sink has."""
    is_in_lse: bool

    @property
    def of_maximum(self) -> Tensor:
        """The size of the sink where weights may be relative to it; else 0."""
        return kept_where(self.above > 0, self.size)


def sunk_rows(
    problem: AttentionProblem, shape: Shape, heads: range, maximum: Tensor, total: Tensor
) -> SunkRows | None:
    """The sinks of some heads' rows, whose largest exponents and row sums are [heads, rows]; None for a
    problem without.
    """
    sink = problem.features.sink
    if sink is None:
        return None
    numbers = torch.tensor([head % shape.heads for head in heads], device=maximum.device)
    exponent = (sink[numbers].double() / LN2)[:, None].expand_as(maximum)
    is_there = exponent > -math.inf
    over = (exponent - maximum).exp2()
    whole = total + over
    sees = total > 0
    share = torch.where(sees, total / whole, 1.0)
    return SunkRows(
        exponent=exponent.flatten(),
        is_there=is_there.flatten(),
        size=kept_where(is_there, exponent.abs()).flatten(),
        above=kept_where(is_there & sees, (exponent - maximum).clamp(min=0)).flatten(),
        whole=torch.where(sees, whole, 1.0).flatten(),
        share=share.flatten(),
        weight=kept_where(sees, over / whole).flatten(),
        is_in_lse=problem.features.is_sink_in_lse,
    )
