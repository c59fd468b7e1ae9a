"""The limits of elements, put together from the errors of their rows: Theorem 1 of docs/theory/bounds.md,
and "The spread".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .formats import NumberFormat, nearest, ulp
from .selection import kept_where, zero_where

SURE = 2.0**-20
"""Of a limit nobody relies on this part, so that roundings of fp64 in it decide nothing."""
_SURE_DEVIATIONS = 12


@dataclass(frozen=True)
class Limits:
    """What elements are allowed, [rows, v dim]; the oracle's radius is not in it."""

    total: Tensor
    """The worst case."""
    systematic: Tensor
    """What of the error does not average out."""
    known: Tensor
    """The error of elements whose rounding is known; else 0."""
    deviation: Tensor
    """√ of the variance of the whole error, ``known`` included."""


def _output_rounding(output: NumberFormat, exact: Tensor, error: Tensor) -> Tensor:
    """Half an ulp of a value known to within ``error``: ``outputRounding``."""
    return ulp(output, (exact.abs() + error).clamp(max=output.max_finite)) / 2


def output_rounding(output: NumberFormat, exact: Tensor, error: Tensor, *, surely: bool) -> Tensor:
    """How far rounding to the output's format may move a value known to within ``error``;
    ``surely`` no more than that.
    """
    return (
        _output_rounding(output, exact, error)
        if not surely
        else _output_rounding(output, exact * (1 - SURE), error * (1 - SURE))
    )


@dataclass(frozen=True)
class CombinedErrors:
    """What the bounds of elements are put together from: [rows, v dim] and [rows]."""

    size: Tensor
    magnitude: Tensor
    squares: Tensor
    shared_square: Tensor
    typical_square: Tensor
    moved: Tensor
    underflow: Tensor
    sums: Tensor
    normalise: Tensor
    one_signed: Tensor
    tiny: Tensor
    bias: Tensor
    variance: Tensor
    inflation: Tensor
    empty: Tensor

    def limits(
        self, output: NumberFormat, exact: Tensor, slack: tuple[float, Tensor] | None
    ) -> Limits:
        """The limits; with ``slack``, what fp64 leaves open of Σ w v² relatively and of O, surely
        no more than they are.
        """
        cancelled = self.squares - self.size.square()
        if slack is not None:
            cancelled = cancelled - slack[0] * self.squares
        floor = self.size.square() * 2.0**-40 * (1 if slack is None else 1 - 2.0**-10)
        scatter = (cancelled.clamp(min=0) + floor).sqrt()
        inflation = self.inflation[:, None]
        inner = inflation * (
            self.shared_square[:, None] * scatter
            + self.underflow
            + self.moved
            + self.sums[:, None] * self.magnitude
            + self.normalise[:, None] * self.size
            + self.tiny[:, None]
        )
        distance = (nearest(output, exact) - exact).abs()
        if slack is not None:
            distance = (distance - slack[1]).clamp(min=0)
        rounding = output_rounding(output, exact, inner, surely=slack is not None)
        total = inner + torch.minimum(rounding, distance + inner)
        systematic = inflation * (
            self.typical_square[:, None] * scatter
            + (self.bias[:, None] * self.squares).sqrt()
            + self.one_signed[:, None] * self.size
            + 2 * self.underflow
            + self.tiny[:, None]
        )
        of_weights = self.variance * inflation.square()
        known, variance = rounding_spread(output, exact, of_weights.sqrt(), systematic, slack)
        deviation = (of_weights + variance + known.square()).sqrt()
        return Limits(
            *(zero_where(self.empty[:, None], x) for x in (total, systematic, known, deviation))
        )


def rounding_spread(
    output: NumberFormat,
    exact: Tensor,
    noise: Tensor,
    systematic: Tensor,
    slack: tuple[float, Tensor] | None,
) -> tuple[Tensor, Tensor]:
    """The error of elements whose rounding is known, else 0; and its variance, 0 where it is
    known: ``roundingSpread``.

    With ``slack`` neither counts of an element of which that is left open.
    """
    half = _output_rounding(output, exact, torch.zeros_like(exact))
    distance = (nearest(output, exact) - exact).abs()
    off = noise + systematic
    margin = half - (distance + _SURE_DEVIATIONS * noise + systematic)
    is_known = margin > 0
    close = torch.minimum(distance + off, half)
    spread = torch.where(off < half / 8, close, torch.minimum(half / math.sqrt(3), close))
    known = kept_where(is_known, distance)
    variance = zero_where(is_known, spread.square())
    if slack is None:
        return known, variance
    is_open = (margin.abs() <= SURE * half + 2 * slack[1]) | ((off - half / 8).abs() <= SURE * half)
    # Next to a power of two the half ulp itself is left open.
    below = _output_rounding(output, exact * (1 - SURE), torch.zeros_like(exact))
    above = _output_rounding(output, exact * (1 + SURE), torch.zeros_like(exact))
    is_open |= below != above
    known = zero_where(is_open, (known - 2 * slack[1]).clamp(min=0))
    return known, zero_where(is_open, variance * (1 - SURE))
