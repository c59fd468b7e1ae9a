"""What the errors of a row's weights and sums come to, whatever its values are: Theorems 2 to 8 of
docs/theory/bounds.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .alike import is_clustered
from .premises import FP32_ROUNDOFF, Premises
from .problem import AttentionProblem, Shape
from .scores import RowTotals, ScoreLaw, engine_of
from .selection import kept_where
from .sinks import SunkRows
from .weights import LN2, LOG2E, HeadTensors, WeightBlock

_NARROW = 1 - 2.0**-16
"""What is left of such sums: ``narrowLoss`` of ``src/audit/bounds/weigh-tiles.ts``."""


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
    largest_addend: Tensor | None = None
    """The largest size of an addend of a key that may have weight; None where nothing is added."""

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
    pairs = score_errors(problem, head, shape, premises, block)
    totals = row_totals(problem, head, shape, premises, block, pairs.units)
    # An error of e = t + t² for that of a score t = a·u of natural units, u the unit of a key, or of a row
    # and a key: sums over keys are those of u^n.
    a = pairs.octaves * LN2
    u1, u2, u3, u4 = (x.flatten() for x in totals.units)
    uncertainty = pairs.largest + block.maximum.abs() * LN2 * 2.0**-40
    relative, least = _least_rounding(premises, block)
    largest = (
        torch.expm1(LN2 * uncertainty)
        + LN2 * (score_rounding(problem, premises) * (128 + largest_maximum(block)))
        + premises.exponential
    )
    squares_alike = totals.squares_alike.flatten()
    # Beside a sink the command line may take the sums over values in fp32.
    share = torch.ones_like(a) if block.sunk is None else block.sunk.share * _NARROW
    spread = torch.bmm(totals.variance, head.value_squares[:, block.columns]).flatten(0, 1)
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
        spread=share.square()[:, None] * spread,
        moved=relative * block.magnitude * (1.0 if block.sunk is None else _NARROW)
        + (share * least)[:, None] * _seen_values(head, block),
        heaviest=totals.heaviest.flatten(),
        is_tied=totals.is_tied.flatten(),
        largest_addend=pairs.largest_addend,
    )


def with_sink(errors: RowErrors, sunk: SunkRows, premises: Premises, maximum: Tensor) -> RowErrors:
    """The errors of rows relative to their whole sums, of which sinks have a part: ``errorsWithSink`` of
    ``src/audit/bounds/row-units.ts``. ``maximum`` is the largest exponent of a key.
    """
    share, weight = sunk.share, sunk.weight
    distance = kept_where(weight > 0, (sunk.exponent - maximum).abs())
    of_exponent = torch.expm1(8 * premises.elementwise * sunk.size * LN2)
    own_exponential = _of_exponential(premises) * weight.square()
    return replace(
        errors,
        mass=errors.mass * share + weight,
        distance=errors.distance * share + weight * distance,
        distance_squared=errors.distance_squared * share + weight * distance.square(),
        scores=errors.scores * share + weight * of_exponent,
        scores_squared=errors.scores_squared * share + weight * of_exponent.square(),
        row_sum=errors.row_sum * share
        + kept_where(sunk.is_there, premises.accumulation + 0 * share),
        exponential_variance=errors.exponential_variance * share.square() + own_exponential,
        subnormal_bias=errors.subnormal_bias * share,
        squares=errors.squares * share.square(),
        squares_alike=errors.squares_alike * share.square(),
    )


def _seen_values(head: HeadTensors, block: WeightBlock) -> Tensor:
    """Σ |v| of the keys that rows see, [rows, v dim]."""
    seen = block.seen
    if seen.holes is None:
        return (
            (head.value_sums[:, seen.end] - head.value_sums[:, seen.begin])
            .clamp_(min=0)
            .flatten(0, 1)
        )
    sizes = head.v[:, block.columns].abs()
    hidden = block.hidden
    if hidden is None:
        return sizes.sum(1, keepdim=True).expand(-1, block.weights.shape[1], -1).flatten(0, 1)
    return ((~hidden).double() @ sizes).flatten(0, 1)


def score_rounding(problem: AttentionProblem, premises: Premises) -> float:
    """What the arithmetic of scores may change of them, relatively."""
    of_softcap = 0.0 if problem.softcap is None else premises.tanh + 4 * premises.elementwise
    return 4 * premises.elementwise + of_softcap


def largest_maximum(block: WeightBlock) -> Tensor:
    """[rows]: the largest magnitude of a number that exponents may be relative to."""
    own = block.maximum.abs()
    return (
        own if block.sunk is None else torch.maximum(own, block.sunk.of_maximum) + block.sunk.above
    )


@dataclass(frozen=True)
class ScoreErrors:
    """What sums of products, and of addends, may change of exponents (log2): octaves · units."""

    octaves: Tensor
    """[rows]"""
    units: Tensor
    """[heads, keys], or [heads, rows, keys]."""
    largest: Tensor
    """[rows]: the largest that a row sees."""
    largest_addend: Tensor | None
    """[rows]: the largest size of an addend of a key that may have weight; None where nothing is added."""


def score_errors(
    problem: AttentionProblem,
    head: HeadTensors,
    shape: Shape,
    premises: Premises,
    block: WeightBlock,
) -> ScoreErrors:
    """The errors of a block's scores: ``add`` of ``src/audit/bounds/score-tiles.ts``."""
    per_unit = math.expm1(shape.qk_dim * premises.accumulation)
    exponent_unit = abs(problem.used_scale) * LOG2E * (1 + 2.0**-12)
    octaves = per_unit * exponent_unit * head.query_unit[:, block.queries].flatten()
    units, added = head.key_unit[:, block.columns], block.added
    if added is None:
        largest = octaves * head.largest_key_unit[:, block.queries].flatten()
        return ScoreErrors(octaves, units, largest, None)
    size = added.size * LOG2E
    scaled = torch.nan_to_num(block.exponents - added.value * LOG2E, neginf=0.0).abs()
    of_score = score_rounding(problem, premises) * (1 + 2.0**-12) * torch.minimum(scaled, size)
    of_addend = 4 * premises.elementwise * (1 + 2.0**-12) * size
    errors = block.by_head(octaves)[:, :, None] * units[:, None] + of_score + of_addend
    maximum = block.by_head(block.maximum)[:, :, None]
    # Surely no more than the command line counts.
    negligible = maximum + (math.log2(premises.underflow) - 2) + 2.0**-30 * (1 + maximum.abs())
    may_count = block.exponents + errors > negligible
    errors = kept_where(may_count, errors)
    return ScoreErrors(
        torch.ones_like(octaves),
        errors,
        errors.amax(-1).flatten(),
        kept_where(may_count, added.size).amax(-1).flatten(),
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
    smallest = premises.weight_format.smallest_subnormal / 2 / premises.weight_scale
    # Rounded before or after the division by the whole row sum, whichever has the higher floor.
    divided = kept_where(block.total > 0, block.whole).clamp(min=1)
    return u / (1 + u) + FP32_ROUNDOFF, smallest * gain * divided


def row_totals(
    problem: AttentionProblem,
    head: HeadTensors,
    shape: Shape,
    premises: Premises,
    block: WeightBlock,
    units: Tensor,
) -> RowTotals:
    """The sums of a block's rows, relative to the row sum of the keys; ``units`` are those of ``ScoreErrors``."""
    relative, least = _least_rounding(premises, block)
    law = ScoreLaw(
        premises.weight_format,
        longest(problem, shape),
        block.seen,
        block.first_key,
        block.by_head(block.maximum),
        block.by_head(block.trust),
        block.by_head(least),
        relative,
        _of_exponential(premises),
    )
    engine = engine_of(units.device, is_plain=block.is_plain)
    return engine.total(block.exponents, block.weights_of_keys, units, law)


def longest(problem: AttentionProblem, shape: Shape) -> int:
    """The keys of the longest sequence."""
    sequences = problem.features.sequences
    return shape.keys if sequences is None else max((keys for *_, keys in sequences), default=0)
