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
from .row_errors import RowErrors, largest_maximum, row_errors, score_rounding, with_sink
from .selection import kept_where, zero_where
from .sinks import SunkRows
from .weights import LN2, LOG2E, ROUNDOFF, HeadTensors, WeightBlock

_MOST_SUNKEN = 390
"""Beyond a sink that is so far (log2) above the keys no weight remains for bounds to cover: ``mostSunken``."""
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
    clustered: tuple[Tensor, Tensor]
    """See ``RowErrors``: of the keys, whatever a sink has."""


def _exponent_error(
    problem: AttentionProblem, premises: Premises, errors: RowErrors, maximum: Tensor
) -> tuple[Tensor, Tensor]:
    """Theorem 3: mean and root mean square of what exponents' arithmetic does to weights."""
    of_score = score_rounding(problem, premises)
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
    of_keys = row_errors(problem, head, shape, premises, block)
    errors = (
        of_keys if block.sunk is None else with_sink(of_keys, block.sunk, premises, block.maximum)
    )
    keys = block.keys.count.double()
    r, a = premises.elementwise, premises.accumulation
    terms = _row_terms(problem, premises, block, errors, keys, of_keys_alone=False)
    norms = (head.query_norm * head.largest_key_norm)[:, block.queries].flatten()
    largest_value = head.largest_value[:, block.queries].flatten()
    is_judged = (
        (errors.uncertainty <= 1 - SURE)
        & (terms.wrong < 0.5 - SURE)
        & (_reach(problem, norms, errors.largest_addend) < LARGEST_SCORE / 2)
        & (largest_value * keys < LARGEST_SUM / 2)
        & (block.trust < SURE / 16)
    )
    if block.sunk is not None:
        is_judged &= block.sunk.above < _MOST_SUNKEN
    is_empty = keys == 0
    bounds = CombinedErrors(
        size=block.out.abs(),
        magnitude=block.magnitude,
        squares=block.squares,
        shared_square=terms.score_square + terms.exponent_square + terms.hardware_square,
        typical_square=terms.score_square / math.sqrt(max(shape.qk_dim, 1)) + terms.exponent_square,
        moved=errors.moved,
        underflow=terms.lost[:, None] * (largest_value[:, None] + block.out.abs()),
        sums=torch.expm1(keys * a),
        normalise=errors.row_sum + 4 * r,
        one_signed=keys * a + errors.row_sum + 4 * r,
        tiny=(keys + 2) * premises.underflow,
        bias=errors.subnormal_bias,
        variance=errors.spread
        + errors.exponential_variance[:, None] * block.out.square()
        + keys[:, None] * (a * block.magnitude).square(),
        inflation=terms.inflation,
        empty=is_empty,
    )
    if block.sunk is not None and not block.sunk.is_in_lse:
        terms = _row_terms(problem, premises, block, of_keys, keys, of_keys_alone=True)
        is_judged &= terms.wrong < 0.5 - SURE
    lse = zero_where(is_empty, _lse_bound(premises, block, terms))
    if block.sunk is not None and block.sunk.is_in_lse:
        lse = torch.where(is_empty & block.sunk.is_there, _sink_alone(premises, block.sunk), lse)
    slack = (2 * block.weights.shape[2] * 4 * ROUNDOFF + 2.0**-42, block.out_distance)
    return BlockBounds(
        stated=bounds.limits(output, block.out, None),
        sure=bounds.limits(output, block.out, slack),
        lse=lse,
        is_judged=is_judged | is_empty,
        errors=errors,
        clustered=of_keys.clustered,
    )


@dataclass(frozen=True)
class _RowTerms:
    """What a row's errors come to, [rows] each, relative to its row sum."""

    errors: RowErrors
    score_square: Tensor
    exponent_mean: Tensor
    exponent_square: Tensor
    hardware_mean: Tensor
    hardware_square: Tensor
    lost: Tensor
    wrong: Tensor
    """The error of the row sum."""
    inflation: Tensor


def _row_terms(
    problem: AttentionProblem,
    premises: Premises,
    block: WeightBlock,
    errors: RowErrors,
    keys: Tensor,
    *,
    of_keys_alone: bool,
) -> _RowTerms:
    """Relative to the row sum of keys and sink, or to that of the keys."""
    e, sunk = premises.exponential, block.sunk
    seen = block.total > 0
    gain = kept_where(seen, 1 / (block.total if of_keys_alone else block.whole))
    if sunk is not None and not of_keys_alone:
        gain = torch.maximum(gain, kept_where(sunk.above > 0, sunk.weight))
    lost = keys * premises.underflow * gain
    mean, square = _exponent_error(problem, premises, errors, largest_maximum(block))
    hardware_mean = e * errors.mass
    wrong = errors.scores + mean + hardware_mean + errors.row_sum + 2 * lost
    return _RowTerms(
        errors,
        errors.scores_squared.sqrt(),
        mean,
        square,
        hardware_mean,
        e * errors.mass.clamp(min=0).sqrt(),
        lost,
        wrong,
        _UP * (1 + errors.largest) / (1 - wrong),
    )


def _reach(problem: AttentionProblem, norms: Tensor, added: Tensor | None) -> Tensor:
    """The largest magnitude of a score on its way, as a product or as an exponent."""
    scale = abs(problem.used_scale)
    if added is None:
        return norms * max(1.0, scale * LOG2E)
    folded = added / scale if scale > 0 else torch.zeros_like(added)
    return torch.maximum(norms + folded, (norms * scale + added) * LOG2E)


def _lse_bound(premises: Premises, block: WeightBlock, terms: _RowTerms) -> Tensor:
    """The worst case of the LSE before it is stored: ``normaliseBound`` of ``src/audit/bounds/finish.ts``
    and what the weights' errors come to.
    """
    sunk, lse = block.sunk, block.lse / LN2
    final = block.maximum.abs()
    logarithm = kept_where(block.total > 0, (lse - block.maximum).abs())
    if sunk is not None:
        final = torch.maximum(final, sunk.of_maximum)
        to_sink = kept_where((block.total > 0) & (sunk.above > 0), (lse - sunk.exponent).abs())
        logarithm = torch.maximum(logarithm, to_sink)
    natural = kept_where(block.total > 0, block.lse.abs())
    errors = terms.errors
    return terms.inflation * (
        errors.scores
        + terms.exponent_mean
        + terms.hardware_mean
        + terms.lost
        + errors.row_sum
        + _of_logarithm(premises, final, logarithm, natural)
    )


def _of_logarithm(premises: Premises, final: Tensor, logarithm: Tensor, natural: Tensor) -> Tensor:
    return premises.logarithm * LN2 * logarithm.clamp(min=1) * (
        1 + premises.logarithm
    ) + 4 * premises.elementwise * (2 * final * LN2 + 2 * logarithm + 3 * natural)


def _sink_alone(premises: Premises, sunk: SunkRows) -> Tensor:
    """The worst case of the LSE of a row that sees no key: the sink's score, as a logarithm of one
    exponential relative to any maximum.
    """
    size = sunk.size
    of_scale = 8 * premises.elementwise * size * LN2
    return of_scale + premises.exponential + _of_logarithm(premises, size, size, size * LN2)
