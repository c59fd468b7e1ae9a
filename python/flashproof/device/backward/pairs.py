"""The errors of single pairs of a query and a key, and of rows of queries: Theorems 4 to 7 of
docs/bounds-backward.md, as ``src/audit/gradients/bounds`` has them for any correct kernel without a
softcap, dropout or a sink.

Everything is surely no more than the command line's: equal rows do not count as alike, and radii of
oracles are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..formats import ulp
from ..kernel_rows import KernelRows
from ..limits import SURE
from ..weights import LN2, HeadTensors, WeightBlock
from .premises import (
    MEAN_ROUNDING,
    MOST_PRODUCTS,
    PairArithmetic,
    Roundings,
    round_derivatives,
    round_weights,
)

_HARDWARE_LOGARITHM = 0.35
_SURELY = 1 - SURE


@dataclass(frozen=True)
class Weighed:
    """P and dP of the pairs of a block with their errors, [rows, keys]; 0 where a row does not see
    a key.
    """

    weight: Tensor
    weight_error: Tensor
    typical_weight: Tensor
    weight_variance: Tensor
    derivative: Tensor
    derivative_error: Tensor
    typical_derivative: Tensor
    derivative_variance: Tensor


@dataclass(frozen=True)
class Rows:
    """What the pairs of a row have in common, [rows]."""

    mean: Tensor
    """D."""
    weight: Tensor
    """What all P may be off by together, relatively; what of it does not average out; its variance."""
    typical_weight: Tensor
    weight_variance: Tensor
    worst_mean: Tensor
    """The same of D, absolutely."""
    typical_mean: Tensor
    mean_variance: Tensor
    is_judged: Tensor
    """Whether all this holds: errors are small enough, and nothing leaves its range."""


def _norms(x: Tensor) -> Tensor:
    return x.square().sum(-1).sqrt()


def weigh_pairs(
    arithmetic: PairArithmetic,
    head: HeadTensors,
    block: WeightBlock,
    dout: Tensor,
    products: Tensor,
) -> tuple[Weighed, Tensor]:
    """``p-recompute`` and ``dp-accumulate`` of a block's pairs, and whether each row's are bounded to
    the first order and within the range of fp32. ``dout`` is [rows, v dim], ``products`` are dO·v.
    """
    premises = arithmetic.premises
    r, e, tiny = premises.elementwise, premises.exponential, premises.underflow
    rows = slice(block.first_row, block.first_row + dout.shape[0])
    keys = slice(block.first_key, block.first_key + block.weights.shape[1])
    is_seen = block.exponents > -math.inf
    score = torch.where(is_seen, block.exponents * LN2, 0.0)
    size = score.abs()
    exponent = torch.where(is_seen, score - block.lse[:, None], 0.0).abs_()
    norm = abs(arithmetic.scale) * head.query_norm[rows][:, None] * head.key_norm[keys]
    worst = norm * arithmetic.scores.worst + 8 * r * size + 2 * r * exponent
    typical = (arithmetic.scores.to_zero + r) * size
    of_scores = MEAN_ROUNDING * r * r
    variance = (
        arithmetic.scores.walk**2 / 4 * (norm + size).square_()
        + 2 * of_scores * size.square()
        + of_scores * exponent.square_()
    )
    is_judged = ((worst < _SURELY) | ~is_seen).all(1)
    # Products and scores are far below what fp32 holds.
    reach = norm.amax(1) / min(1.0, abs(arithmetic.scale) or 1.0)
    is_judged &= reach < 2.0**120
    worst.clamp_(max=1)
    p = block.weights
    error = p * (worst * (1 + worst) * (1 + e) + e) + 2 * tiny
    of_p = torch.minimum(p * (typical * (1 + typical)) + 2 * tiny, error)
    p_variance = p.square() * (torch.minimum(variance, worst.square()) + e * e)
    sizes = products.abs()
    norms = _norms(dout)[:, None] * _norms(head.v[keys])
    is_judged &= norms.amax(1) < 2.0**120
    floor = tiny * MOST_PRODUCTS
    x_error = arithmetic.products.worst * norms * (1 + 2.0**-8) + floor
    typical_x = arithmetic.products.to_zero * sizes + floor
    x_variance = arithmetic.products.walk**2 / 4 * (norms + sizes).square_()

    def seen(of: Tensor) -> Tensor:
        return of.masked_fill_(~is_seen, 0.0)

    return (
        Weighed(
            p,
            seen(error),
            seen(of_p),
            p_variance,
            products,
            seen(x_error),
            seen(typical_x),
            x_variance,
        ),
        is_judged,
    )


@dataclass(frozen=True)
class _MeanError:
    worst: Tensor
    typical: Tensor
    variance: Tensor


def _of_stored(arithmetic: PairArithmetic, out: Tensor, dout: Tensor, mean: Tensor) -> _MeanError:
    """dO·O of the stored O, whose difference from D may be in it or not."""
    products = dout * out
    total, size = products.sum(1), products.abs().sum(1)
    largest = products.cumsum(1).abs_().amax(1)
    partials = torch.minimum(
        ((size + total.abs()) / 2).square(), largest.square() + products.square().sum(1) / 6
    )
    of_sum, floor = arithmetic.products, MOST_PRODUCTS * arithmetic.premises.underflow
    shift = (total - mean).abs()
    return _MeanError(
        shift + of_sum.worst * size + floor,
        shift + of_sum.to_zero * total.abs() + floor,
        of_sum.walk**2 * partials,
    )


@dataclass(frozen=True)
class _RowSums:
    """Sums over the keys of a row, [rows]: ``RowSums``."""

    size: Tensor
    squares: Tensor
    errors: Tensor
    typical: Tensor
    variance: Tensor
    scatter: Tensor
    typical_scatter: Tensor
    scatter_variance: Tensor
    weight_errors: Tensor
    typical_weights: Tensor
    weight_variance: Tensor


def _row_sums(pairs: Weighed, mean: Tensor) -> _RowSums:
    size = pairs.derivative.abs()
    distance = (pairs.derivative - mean[:, None]).abs_()
    products = pairs.weight * size
    return _RowSums(
        size=products.sum(1),
        squares=products.square().sum(1),
        errors=(
            pairs.weight_error * (size + pairs.derivative_error)
            + pairs.weight * pairs.derivative_error
        ).sum(1),
        typical=(pairs.typical_weight * size + pairs.weight * pairs.typical_derivative).sum(1),
        variance=(
            pairs.weight_variance * size.square()
            + pairs.weight.square() * pairs.derivative_variance
        ).sum(1),
        scatter=(pairs.weight_error * distance).sum(1),
        typical_scatter=(pairs.typical_weight * distance).sum(1),
        scatter_variance=(pairs.weight_variance * distance.square()).sum(1),
        weight_errors=pairs.weight_error.sum(1),
        typical_weights=pairs.typical_weight.sum(1),
        weight_variance=pairs.weight_variance.sum(1),
    )


def _of_any_output(
    arithmetic: PairArithmetic,
    block: WeightBlock,
    kernel: KernelRows,
    sums: _RowSums,
    dout: Tensor,
    mean: Tensor,
) -> _MeanError:
    """dO·O of an O that is not known: what any correct forward may have stored."""
    u, floor = kernel.weight_rounding, kernel.floor[:, None]
    accumulation = torch.expm1(kernel.keys * arithmetic.premises.accumulation) * (1 + 2.0**-6)
    value, magnitude, size = block.out.abs(), block.magnitude, dout.abs()
    error = (
        torch.minimum(2 * kernel.weight[:, None] * magnitude, 2 * kernel.largest_value[:, None])
        + (u + accumulation)[:, None] * magnitude
        + kernel.normalisation[:, None] * value
        + floor
    )
    output = arithmetic.output
    half = ulp(output, ((value + error) * _SURELY).clamp(max=output.max_finite)) / 2
    over_keys, products = arithmetic.over_keys, arithmetic.products
    of_sums = accumulation[:, None] * magnitude + kernel.normalisation[:, None] * value
    worst = size * (of_sums + half + floor + products.worst * (value + error + half))
    walk = over_keys.walk * (magnitude + value) / 2
    r_variance = arithmetic.elementwise_variance
    variance = size.square() * (half.square() / 3 + walk.square() + 4 * r_variance * value.square())
    sizes = (size * value).sum(1)
    of_weights = torch.where(
        sums.weight_errors < 0.5,
        torch.minimum(2 * kernel.weight * sums.size, sums.scatter / (1 - sums.weight_errors)),
        2 * kernel.weight * sums.size,
    )
    tiny = MOST_PRODUCTS * arithmetic.premises.underflow
    r = arithmetic.premises.elementwise
    return _MeanError(
        worst.sum(1) + u * sums.size + of_weights + tiny,
        sums.typical_scatter
        + (over_keys.to_zero + products.to_zero + r) * sizes
        + (size * floor).sum(1)
        + tiny,
        variance.sum(1)
        + sums.scatter_variance
        + (products.walk * (sizes + mean.abs()) / 2).square()
        + MEAN_ROUNDING * u**2 * sums.squares,
    )


def row_errors(
    arithmetic: PairArithmetic,
    block: WeightBlock,
    kernel: KernelRows,
    pairs: Weighed,
    mean: Tensor,
    is_judged: Tensor,
    dout: Tensor,
    stored_out: Tensor | None,
) -> Rows:
    """``lse-input`` and ``delta``: Theorems 4 and 5. ``mean`` is D, ``stored_out`` [rows, v dim] in
    fp64.
    """
    premises = arithmetic.premises
    r, tiny = premises.elementwise, premises.underflow
    sums = _row_sums(pairs, mean)
    is_empty = block.total == 0
    lse = torch.where(is_empty, 0.0, block.lse).abs()
    maximum = block.maximum.abs() * LN2
    keys = kernel.keys
    # The LSE's own error, from norms and from the weights' errors here: ofNorms and refine.
    of_sums = keys * premises.accumulation * (1 + 2.0**-6)
    of_lse = kernel.weight + of_sums + premises.logarithm + 4 * r * (kernel.score + lse)
    additions = (keys - keys.sqrt()) * premises.accumulation
    typical_lse = (
        of_lse - kernel.weight + kernel.typical_weight - premises.exponential - additions
    ).clamp(min=0)

    def of(error: Tensor) -> Tensor:
        return torch.expm1((error + 2 * r * lse).clamp(max=700))

    stored_lse = 4 * r * lse
    of_norms = torch.maximum(of(of_lse), stored_lse)
    typical_norms = torch.maximum(of(typical_lse), stored_lse)
    weight_errors = sums.weight_errors
    of_pairs = torch.where(weight_errors < 0.5, weight_errors / (1 - weight_errors), math.inf)
    weight = torch.minimum(
        of_norms, torch.maximum(stored_lse, of(of_lse - kernel.weight + of_pairs))
    )
    spread = (
        sums.typical_weights
        + _HARDWARE_LOGARITHM * premises.logarithm
        + r / 2 * maximum
        + r / 4 * lse
    )
    r_variance = arithmetic.elementwise_variance
    weight_variance = (
        sums.weight_variance
        + keys * premises.accumulation**2
        + premises.logarithm**2 / 3
        + r_variance * (2 * maximum.square() + 3 * lse.square())
    )
    is_judged = is_judged & (spread + 8 * weight_variance.sqrt() < 0.5 * _SURELY)
    typical_weight = torch.minimum(typical_norms, torch.expm1(spread))
    over_keys, u = arithmetic.over_keys, arithmetic.working.unit_roundoff
    of_terms = over_keys.worst + 4 * r + u
    size = mean.abs()
    partials = torch.minimum(((sums.size + size) / 2).square(), mean.square() + sums.squares / 6)
    of_weights = _MeanError(
        (1 + weight) * (sums.errors + of_terms * (sums.size + sums.errors))
        + weight * size
        + MOST_PRODUCTS * tiny,
        sums.typical
        + typical_weight * size
        + (over_keys.to_zero + r) * sums.size
        + MOST_PRODUCTS * tiny,
        sums.variance
        + weight_variance * mean.square()
        + (MEAN_ROUNDING * u * u + 4 * r_variance) * sums.squares
        + over_keys.walk**2 * partials,
    )
    of_output = (
        _of_any_output(arithmetic, block, kernel, sums, dout, mean)
        if stored_out is None
        else _of_stored(arithmetic, stored_out, dout, mean)
    )
    return Rows(
        mean,
        weight,
        typical_weight,
        weight_variance,
        torch.maximum(of_output.worst, of_weights.worst),
        torch.maximum(of_output.typical, of_weights.typical),
        torch.maximum(of_output.variance, of_weights.variance),
        is_judged | is_empty,
    )


@dataclass(frozen=True)
class PairErrors:
    """Errors of numbers of pairs, [rows, keys]: P as dV has it, or dS."""

    value: Tensor
    worst: Tensor
    magnitude: Tensor
    """Of the terms as they may be, errors and all."""
    systematic: Tensor
    variance: Tensor


def err_weights(
    arithmetic: PairArithmetic, pairs: Weighed, rows: Rows
) -> tuple[PairErrors, Roundings]:
    """P as dV has it, and its roundings: ``errWeights``."""
    p, whole = pairs.weight, rows.weight[:, None]
    alone = pairs.weight_error * (1 + whole)
    of_row = p * whole
    roundings = round_weights(arithmetic.working, p, alone + of_row)
    roundings.worst.masked_fill_(p == 0, 0.0)
    worst = alone + of_row + roundings.worst
    variance = (
        rows.weight_variance[:, None] * p.square() + pairs.weight_variance + roundings.variance
    )
    systematic = pairs.typical_weight + rows.typical_weight[:, None] * p
    return PairErrors(p, worst, p + worst, systematic, variance), roundings


@dataclass(frozen=True)
class DerivativeErrors:
    """Errors of dS: as dQ has them, beside the row's, and as dK does, with these."""

    of_queries: PairErrors
    of_keys: PairErrors
    is_within: Tensor
    """[rows]: whether dS stays within the range of the format that it is rounded to."""


def err_derivatives(
    arithmetic: PairArithmetic, pairs: Weighed, rows: Rows, of_weights: Tensor
) -> DerivativeErrors:
    """dS without the scale, rounded: ``errDerivatives``; ``of_weights`` is the worst of P's
    roundings.
    """
    premises = arithmetic.premises
    r, tiny = premises.elementwise, premises.underflow
    p, mean = pairs.weight, rows.mean[:, None]
    is_seen = pairs.weight_error > 0
    grown = 1 + rows.weight[:, None]
    shifted = pairs.derivative - mean
    size = shifted.abs()
    value = p * shifted
    sizes = value.abs()
    begun = arithmetic.products.worst * mean.abs()
    of_x = pairs.derivative_error + begun
    of_mean = r * (size + mean.abs())
    reach = size + of_x + of_mean + rows.worst_mean[:, None]
    most = p + pairs.weight_error + of_weights
    own = grown * (
        (pairs.weight_error + of_weights + 3 * r * most) * reach
        + p * (of_x + of_mean)
        + 3 * tiny * (1 + reach)
    )
    of_row = rows.weight[:, None] * sizes + rows.worst_mean[:, None] * p * grown
    u = arithmetic.working.unit_roundoff
    squares, p_squares = size.square(), p.square()
    r_variance = arithmetic.elementwise_variance
    before = (sizes + own + of_row) * (1 + 2.0**-20)
    rounded = round_derivatives(arithmetic, before)
    largest = (before * max(1.0, abs(arithmetic.scale))).amax(1)
    variance = (
        pairs.weight_variance * squares
        + (MEAN_ROUNDING * u * u + 2 * r_variance) * value.square()
        + p_squares
        * (
            pairs.derivative_variance
            + (arithmetic.products.walk * mean).square()
            + r_variance * (squares + mean.square())
        )
        + rounded.square() / 3
    )
    systematic = pairs.typical_weight * size + p * pairs.typical_derivative + 3 * tiny
    own = own + rounded

    def seen(of: Tensor) -> Tensor:
        return of.masked_fill_(~is_seen, 0.0)

    own, variance, systematic = seen(own), seen(variance), seen(systematic)
    of_row.masked_fill_(~is_seen, 0.0)
    queries = PairErrors(value, own, sizes + own + of_row, systematic, variance)
    keys = PairErrors(
        value,
        own + of_row,
        queries.magnitude,
        systematic + rows.typical_weight[:, None] * sizes + rows.typical_mean[:, None] * p,
        variance
        + rows.weight_variance[:, None] * value.square()
        + rows.mean_variance[:, None] * p_squares,
    )
    is_within = largest < arithmetic.working.max_finite * _SURELY
    return DerivativeErrors(queries, keys, is_within)
