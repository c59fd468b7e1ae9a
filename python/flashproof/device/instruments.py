"""Directions that the kernel's error is projected on: ``src/audit/structure/instruments.ts``.

They depend on the problem alone. A test is sound for every direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .formats import NumberFormat, ulp
from .kernel_rows import KernelRows
from .limits import SURE
from .premises import Premises
from .row_errors import RowErrors
from .selection import kept_where
from .weights import HeadTensors, WeightBlock

SCALE, LIGHT_SCALE, BIAS, TRUNCATION = range(4)
"""What Σ r·X looks for: O, O without the heaviest key's value, 1, half an ulp of O away from zero.
"""
_MEAN_SQUARE_ROUNDING = 0.18
"""Mean square of the relative rounding error of a number whose logarithm is anywhere, in units of
u².
"""
_NEGLIGIBLE = 2.0**-20


@dataclass(frozen=True)
class Instruments:
    """Directions and patterns of a block's rows."""

    directions: Tensor
    """[4, rows, v dim]"""
    patterns: Tensor
    """[4, rows, v dim]: Σ r·X / Σ Y·X is 1 for r = Y."""
    half_ulp: Tensor
    """[rows, v dim]: half an ulp of O."""
    open_columns: Tensor
    """[rows, v dim]: whether fp64 leaves a direction open there: an output next to a power of two,
    whose half ulp may be half or twice as much, or one of which the sign is not known.
    """
    heaviest: Tensor
    """[rows, v dim]: the value of each row's heaviest key, as a vector of length 1, or 0."""
    is_tied: Tensor
    """[rows]: whether fp64 leaves open which key is the heaviest."""
    least_half_ulp: Tensor
    """[rows, v dim]: half an ulp of O, surely no more."""


def create_instruments(
    head: HeadTensors,
    premises: Premises,
    output: NumberFormat,
    block: WeightBlock,
    errors: RowErrors,
    kernel: KernelRows,
) -> Instruments:
    """The directions of least squares of a block's rows; zero for rows without keys."""
    exact = block.out
    u = premises.weight_format.unit_roundoff
    of_weight = _MEAN_SQUARE_ROUNDING * u**2 + (kernel.typical_weight / 8).square()
    noise = of_weight * errors.squares + kernel.keys * (premises.accumulation**2 / 8)
    half = ulp(output, exact.abs().clamp(max=output.max_finite)) / 2
    weight = 1 / (noise[:, None] * block.magnitude.square() + half.square() / 3)
    weight = kept_where((block.total > 0)[:, None] & torch.isfinite(weight), weight)
    ones, halves = torch.ones_like(exact), half * exact.sign()
    scale = exact * weight
    light, heaviest, tied = _without_heaviest(head, block, errors, scale)
    above, below = (
        ulp(output, (exact.abs() * x).clamp(max=output.max_finite)) for x in (1 + SURE, 1 - SURE)
    )
    return Instruments(
        torch.stack([scale, light, weight, halves * weight]),
        torch.stack([exact, exact, ones, halves]),
        half,
        (above != below) | ((exact != 0) & (exact.abs() <= block.out_distance)),
        heaviest,
        tied,
        below / 2,
    )


def _without_heaviest(
    head: HeadTensors, block: WeightBlock, errors: RowErrors, direction: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """A direction less its component along the value of the row's heaviest key; that value's own
    direction; and whether another key is as heavy.
    """
    at = block.by_head(block.first_key + errors.heaviest)
    value = head.v.gather(1, at[:, :, None].expand(-1, -1, head.v.shape[2])).flatten(0, 1)
    squares = value.square().sum(1)
    share = kept_where(squares > 0, (direction * value).sum(1) / squares)
    share = kept_where(torch.isfinite(share), share)
    light = direction - share[:, None] * value
    kept = light.square().sum(1) > _NEGLIGIBLE * direction.square().sum(1)
    axis = value * kept_where(squares > 0, squares.rsqrt())[:, None]
    return kept_where(kept[:, None], light), axis, errors.is_tied & (block.total > 0)


ROOT3 = math.sqrt(3)
