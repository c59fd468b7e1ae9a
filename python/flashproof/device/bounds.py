"""How far any correct kernel may be from exact attention, element by element: Theorems 1 to 8 of
docs/bounds.md.

The numbers are those of ``src/audit/bounds`` for the arithmetic of any correct kernel, whose sums
have any order, whose maximum is the row's, and whose weights' places in an ulp are not known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .alike import alike_counts, is_clustered
from .formats import NumberFormat, nearest, ulp
from .masks import GROUP_ROWS
from .premises import FP32_ROUNDOFF, LARGEST_SCORE, LARGEST_SUM, Premises
from .problem import AttentionProblem, Shape
from .weights import LN2, LOG2E, ROUNDOFF, HeadTensors, WeightBlock

_UP = 1 + 2.0**-12
"""What fp64 leaves uncertain in all of this, many times over."""
SURE = 2.0**-20
"""Of a limit nobody relies on this part, so that roundings of fp64 in it decide nothing."""
_SURE_DEVIATIONS = 12


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

    @property
    def clustered(self) -> tuple[Tensor, Tensor]:
        """See ``is_clustered``."""
        return is_clustered(self.mass, self.squares, self.squares_alike)


def _row_sums(block: WeightBlock, accumulation: float) -> Tensor:
    """Theorem 8: every addition to the row sum, tile of 64 keys by tile, relative to the sum after
    the tile.

    Tiles are those of 64 rows together, from the first key that any of them sees to the last.
    """
    keys, count = block.keys, block.weights.shape[0]
    groups = -(-count // GROUP_ROWS)
    padding = groups * GROUP_ROWS - count
    seen = keys.count > 0
    nothing = 2**40
    begin = torch.where(seen, keys.begin, nothing)
    end = torch.where(seen, keys.end, 0)
    begin = (
        torch.nn.functional.pad(begin, (0, padding), value=nothing)
        .view(groups, GROUP_ROWS)
        .amin(1)
    )
    end = torch.nn.functional.pad(end, (0, padding), value=0).view(groups, GROUP_ROWS).amax(1)
    begin = torch.minimum(begin, end)
    tiles = max(1, -(-int((end - begin).max()) // GROUP_ROWS))
    starts = begin[:, None] + GROUP_ROWS * torch.arange(tiles, device=begin.device)
    sizes = (end[:, None] - starts).clamp(0, GROUP_ROWS)
    last = (starts + sizes - block.first_key).clamp(0, block.weights.shape[1])
    before = torch.nn.functional.pad(block.weights.cumsum(1), (1, 0))
    rows = torch.arange(count, device=begin.device) // GROUP_ROWS
    mass = before.gather(1, last[rows])
    at_most = (mass * (1 + 2.0**-12)).clamp(max=1)
    return torch.where(mass > 0, sizes[rows] * at_most, 0.0).sum(1) * accumulation


def row_errors(
    problem: AttentionProblem,
    head: HeadTensors,
    shape: Shape,
    premises: Premises,
    block: WeightBlock,
) -> RowErrors:
    """The errors of a block's weights and sums."""
    rows = slice(block.first_row, block.first_row + block.maximum.shape[0])
    weights, weight_format = block.weights, premises.weight_format
    distance = torch.where(weights > 0, block.maximum[:, None] - block.exponents, 0.0)
    weighted = weights * distance
    moments = [weighted.sum(1), (weighted * distance).sum(1)]
    # An error of e = t + t² for that of a score t = a·u of natural units, u the key's unit: sums
    # over keys are those of u^n.
    per_unit = math.expm1(shape.qk_dim * premises.accumulation)
    exponent_unit = abs(problem.used_scale) * LOG2E * (1 + 2.0**-12)
    octaves = per_unit * exponent_unit * head.query_unit[rows]
    a = octaves * LN2
    u1, u2, u3, u4 = block.units.unbind(1)
    uncertainty = (
        octaves * head.largest_key_unit.over(block.keys) + block.maximum.abs() * LN2 * 2.0**-40
    )
    # P relative to the largest weight: half the smallest subnormal at least, and no less after the
    # division.
    u = weight_format.unit_roundoff
    relative = u / (1 + u) + FP32_ROUNDOFF
    gain = torch.where(block.total > 0, 1 / block.total, 0.0)
    least = (
        weight_format.smallest_subnormal
        / 2
        / premises.weight_scale
        * torch.where(gain > 0, gain.clamp(min=1), 0.0)
    )
    counts = alike_counts(block, weight_format, shape.keys)
    visible = block.exponents > -math.inf
    moved = torch.where(visible, relative * weights + least[:, None], 0.0)
    of_exponential = weights.square() * (2 * premises.exponential**2)
    alike_exponential = (counts * of_exponential).sum(1)
    variance = counts * (moved.square() / 3 + of_exponential)
    values = head.v[block.first_key : block.first_key + weights.shape[1]]
    seen_values = (head.value_sums[block.keys.end] - head.value_sums[block.keys.begin]).clamp_(
        min=0
    )
    of_score = 4 * premises.elementwise
    of_softcap = 0.0 if problem.softcap is None else premises.tanh + 4 * premises.elementwise
    largest = (
        torch.expm1(LN2 * uncertainty)
        + LN2 * ((of_score + of_softcap) * (128 + block.maximum.abs()))
        + premises.exponential
    )
    return RowErrors(
        mass=weights.sum(1),
        distance=moments[0],
        distance_squared=moments[1],
        scores=a * u1 + a.square() * u2,
        scores_squared=a.square() * u2 + 2 * a**3 * u3 + a**4 * u4,
        row_sum=_row_sums(block, premises.accumulation),
        exponential_variance=alike_exponential,
        subnormal_bias=torch.minimum(weights, least[:, None]).sum(1),
        squares=weights.square().sum(1),
        squares_alike=(counts * weights.square()).sum(1),
        largest=largest,
        uncertainty=uncertainty,
        spread=variance @ values.square(),
        moved=relative * block.magnitude + least[:, None] * seen_values,
    )


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


@dataclass(frozen=True)
class BlockBounds:
    """The bounds of a block: as the command line states them, and limits that are surely no more
    than those.
    """

    stated: Limits
    sure: Limits
    lse: Tensor
    """[rows]: the worst case of the LSE before it is stored."""
    is_judged: Tensor
    """[rows]: whether the theorems to the first order hold and no sum leaves its range."""
    errors: RowErrors


def _exponent_error(
    problem: AttentionProblem, premises: Premises, errors: RowErrors, maximum: Tensor
) -> tuple[Tensor, Tensor]:
    """Theorem 3: mean and root mean square of what exponents' arithmetic does to weights."""
    of_score = 4 * premises.elementwise
    if problem.softcap is not None:
        of_score += premises.tanh + 4 * premises.elementwise
    fixed = of_score * maximum.abs()
    return (
        LN2 * (of_score * errors.distance + fixed),
        LN2 * (of_score * errors.distance_squared.sqrt() + fixed),
    )


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


def bound_block(
    problem: AttentionProblem,
    head: HeadTensors,
    shape: Shape,
    premises: Premises,
    block: WeightBlock,
    output: NumberFormat,
) -> BlockBounds:
    """The bounds of a block of rows: ``finishRow`` of ``src/audit/bounds/finish-row.ts``."""
    errors = row_errors(problem, head, shape, premises, block)
    keys = block.keys.count.double()
    e, r, a = premises.exponential, premises.elementwise, premises.accumulation
    gain = torch.where(block.total > 0, 1 / block.total, 0.0)
    lost = keys * premises.underflow * gain
    exponent_mean, exponent_square = _exponent_error(problem, premises, errors, block.maximum)
    score_square = errors.scores_squared.sqrt()
    hardware_mean, hardware_square = e * errors.mass, e * errors.mass.clamp(min=0).sqrt()
    wrong = errors.scores + exponent_mean + hardware_mean + errors.row_sum + 2 * lost
    inflation = _UP * (1 + errors.largest) / (1 - wrong)
    norms = head.query_norm[
        block.first_row : block.first_row + keys.shape[0]
    ] * head.largest_key_norm.over(block.keys)
    reach = norms * max(1.0, abs(problem.used_scale) * LOG2E)
    largest_value = head.largest_value.over(block.keys)
    is_judged = (
        (errors.uncertainty <= 1 - SURE)
        & (wrong < 0.5 - SURE)
        & (reach < LARGEST_SCORE / 2)
        & (largest_value * keys < LARGEST_SUM / 2)
        & (block.trust < SURE / 16)
    )
    is_empty = keys == 0
    bounds = _Combined(
        size=block.out.abs(),
        magnitude=block.magnitude,
        squares=block.squares,
        shared_square=score_square + exponent_square + hardware_square,
        typical_square=score_square / math.sqrt(max(shape.qk_dim, 1)) + exponent_square,
        moved=errors.moved,
        underflow=lost[:, None] * (largest_value[:, None] + block.out.abs()),
        sums=torch.expm1(keys * a),
        normalise=errors.row_sum + 4 * r,
        one_signed=keys * a + errors.row_sum + 4 * r,
        tiny=(keys + 2) * premises.underflow,
        bias=errors.subnormal_bias,
        variance=errors.spread
        + errors.exponential_variance[:, None] * block.out.square()
        + keys[:, None] * (a * block.magnitude).square(),
        inflation=inflation,
        empty=is_empty,
    )
    logarithm = block.total.clamp(min=2.0**-1000).log2().abs()
    natural = torch.where(is_empty, 0.0, block.lse)
    lse = inflation * (
        errors.scores
        + exponent_mean
        + hardware_mean
        + lost
        + errors.row_sum
        + premises.logarithm * LN2 * logarithm.clamp(min=1) * (1 + premises.logarithm)
        + 4 * r * (2 * block.maximum.abs() * LN2 + 2 * logarithm + 3 * natural.abs())
    )
    slack = (2 * block.weights.shape[1] * 4 * ROUNDOFF + 2.0**-42, block.out_distance)
    return BlockBounds(
        stated=bounds.limits(output, block.out, None),
        sure=bounds.limits(output, block.out, slack),
        lse=torch.where(is_empty, 0.0, lse),
        is_judged=is_judged | is_empty,
        errors=errors,
    )


@dataclass(frozen=True)
class _Combined:
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
        known, variance = _rounding_spread(output, exact, of_weights.sqrt(), systematic, slack)
        deviation = (of_weights + variance + known.square()).sqrt()
        return Limits(
            *(
                torch.where(self.empty[:, None], 0.0, x)
                for x in (total, systematic, known, deviation)
            )
        )


def _rounding_spread(
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
    known = torch.where(is_known, distance, 0.0)
    variance = torch.where(is_known, 0.0, spread.square())
    if slack is None:
        return known, variance
    is_open = (margin.abs() <= SURE * half + 2 * slack[1]) | (
        (off - half / 8).abs() <= SURE * half
    )
    # Next to a power of two the half ulp itself is left open.
    below = _output_rounding(output, exact * (1 - SURE), torch.zeros_like(exact))
    above = _output_rounding(output, exact * (1 + SURE), torch.zeros_like(exact))
    is_open |= below != above
    known = torch.where(is_open, 0.0, (known - 2 * slack[1]).clamp(min=0))
    return known, torch.where(is_open, 0.0, variance * (1 - SURE))
