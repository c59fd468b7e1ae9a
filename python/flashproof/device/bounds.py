"""How far any correct kernel may be from exact attention, element by element: Theorems 1 to 8 of
docs/theory/bounds.md.

The numbers are those of ``src/audit/bounds`` for the arithmetic of any correct kernel, whose sums
have any order, whose maximum is the row's, and whose weights' places in an ulp are not known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .formats import NumberFormat
from .limits import SURE, CombinedErrors, Limits
from .premises import LARGEST_SCORE, LARGEST_SUM, Premises
from .problem import AttentionProblem, Shape
from .row_errors import RowErrors, row_errors
from .selection import kept_where, zero_where
from .weights import LN2, LOG2E, ROUNDOFF, HeadTensors, WeightBlock

_UP = 1 + 2.0**-12
"""What fp64 leaves uncertain in all of this, many times over."""


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
    gain = kept_where(block.total > 0, 1 / block.total)
    lost = keys * premises.underflow * gain
    exponent_mean, exponent_square = _exponent_error(problem, premises, errors, block.maximum)
    score_square = errors.scores_squared.sqrt()
    hardware_mean, hardware_square = e * errors.mass, e * errors.mass.clamp(min=0).sqrt()
    wrong = errors.scores + exponent_mean + hardware_mean + errors.row_sum + 2 * lost
    inflation = _UP * (1 + errors.largest) / (1 - wrong)
    norms = (head.query_norm * head.largest_key_norm)[:, block.queries].flatten()
    reach = norms * max(1.0, abs(problem.used_scale) * LOG2E)
    largest_value = head.largest_value[:, block.queries].flatten()
    is_judged = (
        (errors.uncertainty <= 1 - SURE)
        & (wrong < 0.5 - SURE)
        & (reach < LARGEST_SCORE / 2)
        & (largest_value * keys < LARGEST_SUM / 2)
        & (block.trust < SURE / 16)
    )
    is_empty = keys == 0
    bounds = CombinedErrors(
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
    natural = zero_where(is_empty, block.lse)
    lse = inflation * (
        errors.scores
        + exponent_mean
        + hardware_mean
        + lost
        + errors.row_sum
        + premises.logarithm * LN2 * logarithm.clamp(min=1) * (1 + premises.logarithm)
        + 4 * r * (2 * block.maximum.abs() * LN2 + 2 * logarithm + 3 * natural.abs())
    )
    slack = (2 * block.weights.shape[2] * 4 * ROUNDOFF + 2.0**-42, block.out_distance)
    return BlockBounds(
        stated=bounds.limits(output, block.out, None),
        sure=bounds.limits(output, block.out, slack),
        lse=zero_where(is_empty, lse),
        is_judged=is_judged | is_empty,
        errors=errors,
    )
