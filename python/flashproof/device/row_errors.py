"""What the errors of a row's weights and sums come to, whatever its values are: Theorems 2 to 8 of
docs/theory/bounds.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .alike import is_clustered
from .premises import FP32_ROUNDOFF, Premises
from .problem import AttentionProblem, Shape
from .scores import RowTotals, ScoreLaw, engine_of
from .selection import kept_where
from .weights import LN2, LOG2E, HeadTensors, WeightBlock


@dataclass(frozen=True)
class RowErrors:
    """What the errors of a row's weights and sums come to, [rows]: ``RowErrors`` of
    ``technique-bound.ts``.
    """

    mass: Tensor
    distance: Tensor
    distance_squared: Tensor
    scores: Tensor
    scores_squared: Tensor
    row_sum: Tensor
    exponential_variance: Tensor
    subnormal_bias: Tensor
    squares: Tensor
    squares_alike: Tensor
    largest: Tensor
    """The largest relative error of a weight."""
    uncertainty: Tensor
    """How far an exponent (log2) may be off from the errors of scores."""
    spread: Tensor
    """[rows, v dim]: the variance that roundings of weights make, before what is second order."""
    moved: Tensor
    """[rows, v dim]: how far they may move an element."""
    heaviest: Tensor
    """The key of the largest weight, counted from the block's first, int64."""
    is_tied: Tensor
    """Whether fp64 leaves open which key that is."""

    @property
    def clustered(self) -> tuple[Tensor, Tensor]:
        """See ``is_clustered``."""
        return is_clustered(self.mass, self.squares, self.squares_alike)


def row_errors(
    problem: AttentionProblem,
    head: HeadTensors,
    shape: Shape,
    premises: Premises,
    block: WeightBlock,
) -> RowErrors:
    """The errors of a block's weights and sums."""
    totals = row_totals(problem, head, shape, premises, block)
    # An error of e = t + t² for that of a score t = a·u of natural units, u the key's unit: sums
    # over keys are those of u^n.
    per_unit = math.expm1(shape.qk_dim * premises.accumulation)
    exponent_unit = abs(problem.used_scale) * LOG2E * (1 + 2.0**-12)
    octaves = per_unit * exponent_unit * head.query_unit[:, block.queries].flatten()
    a = octaves * LN2
    u1, u2, u3, u4 = (x.flatten() for x in totals.units)
    uncertainty = (
        octaves * head.largest_key_unit[:, block.queries].flatten()
        + block.maximum.abs() * LN2 * 2.0**-40
    )
    relative, least = _least_rounding(premises, block)
    seen_values = (
        head.value_sums[:, block.seen.end] - head.value_sums[:, block.seen.begin]
    ).clamp_(min=0)
    of_score = 4 * premises.elementwise
    of_softcap = 0.0 if problem.softcap is None else premises.tanh + 4 * premises.elementwise
    largest = (
        torch.expm1(LN2 * uncertainty)
        + LN2 * ((of_score + of_softcap) * (128 + block.maximum.abs()))
        + premises.exponential
    )
    squares_alike = totals.squares_alike.flatten()
    return RowErrors(
        mass=totals.mass.flatten(),
        distance=totals.distance.flatten(),
        distance_squared=totals.distance_squared.flatten(),
        scores=a * u1 + a.square() * u2,
        scores_squared=a.square() * u2 + 2 * a**3 * u3 + a**4 * u4,
        row_sum=totals.additions.flatten() * premises.accumulation,
        exponential_variance=_of_exponential(premises) * squares_alike,
        subnormal_bias=totals.bias.flatten(),
        squares=totals.squares.flatten(),
        squares_alike=squares_alike,
        largest=largest,
        uncertainty=uncertainty,
        spread=torch.bmm(totals.variance, head.value_squares[:, block.columns]).flatten(0, 1),
        moved=relative * block.magnitude + least[:, None] * seen_values.flatten(0, 1),
        heaviest=totals.heaviest.flatten(),
        is_tied=totals.is_tied.flatten(),
    )


def _of_exponential(premises: Premises) -> float:
    return 2 * premises.exponential**2


def _least_rounding(premises: Premises, block: WeightBlock) -> tuple[float, Tensor]:
    """What P may lose of a weight, relative to it, and [rows] relative to 1.

    P is relative to the largest weight: half the smallest subnormal at least, and no less after the
    division.
    """
    u = premises.weight_format.unit_roundoff
    gain = kept_where(block.total > 0, 1 / block.total)
    least = (
        premises.weight_format.smallest_subnormal
        / 2
        / premises.weight_scale
        * kept_where(gain > 0, gain.clamp(min=1))
    )
    return u / (1 + u) + FP32_ROUNDOFF, least


def row_totals(
    problem: AttentionProblem,
    head: HeadTensors,
    shape: Shape,
    premises: Premises,
    block: WeightBlock,
) -> RowTotals:
    """The sums of a block's rows."""
    relative, least = _least_rounding(premises, block)
    law = ScoreLaw(
        premises.weight_format,
        shape.keys,
        block.seen,
        block.first_key,
        block.by_head(block.maximum),
        block.by_head(block.trust),
        block.by_head(least),
        relative,
        _of_exponential(premises),
    )
    units = head.key_unit[:, block.columns]
    return engine_of(units.device).total(block.exponents, block.weights, units, law)
