"""The errors of single pairs of a query and a key, and of rows of queries: Theorems 4 to 7 of
docs/theory/bounds-backward.md, as ``src/audit/gradients/bounds`` has them for any correct kernel without a
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
from ..gradients import ExactPairs
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
    """P, x = dO·v and dS of the pairs of a block with their errors, [rows, keys]; 0 where a row does
    not see a key, but for what P or dS multiplies.
    """

    weight: Tensor
    weight_square: Tensor
    weight_error: Tensor
    typical_weight: Tensor
    weight_variance: Tensor
    size: Tensor
    """|x|."""
    product: Tensor
    """P |x|."""
    share: Tensor
    """dS = P (x − D)."""
    distance: Tensor
    """|x − D|."""
    derivative_error: tuple[Tensor, Tensor, float]
    """Of x at most: numbers of the row and of the key, whose product counts, and what is added."""
    typical_derivative: tuple[float, float]
    """Of x too: a factor of |x|, and what is added."""
    derivative_variance: Tensor
    hidden: Tensor | None
    """Where a row does not see a key; None where all see all."""


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
    exact: ExactPairs,
) -> tuple[Weighed, Tensor]:
    """``p-recompute`` and ``dp-accumulate`` of a block's pairs, and whether each row's are bounded to
    the first order and within the range of fp32. ``dout`` is [rows, v dim].

    Of errors of P neither the typical ones nor the deviation exceed the worst case, as they may not:
    each of their terms is one of its, times less than 1.
    """
    premises = arithmetic.premises
    r, e, tiny = premises.elementwise, premises.exponential, premises.underflow
    rows = slice(block.first_row, block.first_row + dout.shape[0])
    keys = slice(block.first_key, block.first_key + block.weights.shape[1])
    hidden, p = block.hidden, block.weights
    two_tiny = torch.full((), 2 * tiny, dtype=p.dtype, device=p.device)

    def seen(of: Tensor) -> Tensor:
        return of if hidden is None else of.masked_fill_(hidden, 0.0)

    size = seen(block.exponents * LN2)
    exponent = seen(size - block.lse[:, None]).abs_()
    size.abs_()
    norm = abs(arithmetic.scale) * head.query_norm[rows]
    of_keys = head.key_norm[keys]
    worst = torch.outer(norm * arithmetic.scores.worst, of_keys)
    worst = seen(worst.add_(size, alpha=8 * r).add_(exponent, alpha=2 * r))
    is_judged = worst.amax(1) < _SURELY
    # Products and scores are far below what fp32 holds.
    reach = norm * of_keys.amax() / min(1.0, abs(arithmetic.scale) or 1.0)
    is_judged &= reach < 2.0**120
    worst.clamp_(max=1)
    of_scores, walk = MEAN_ROUNDING * r * r, arithmetic.scores.walk / 2
    variance = torch.outer(norm * walk, of_keys).add_(size, alpha=walk).square_()
    variance.addcmul_(size, size, value=2 * of_scores)
    variance.addcmul_(exponent, exponent, value=of_scores).add_(e * e)
    square = p.square()
    variance.mul_(square)
    torch.addcmul(worst, worst, worst, out=exponent)
    error = seen(torch.addcmul(two_tiny, p, exponent.mul_(1 + e).add_(e), out=worst))
    size.mul_(arithmetic.scores.to_zero + r)
    torch.addcmul(size, size, size, out=exponent)
    of_p = seen(torch.addcmul(two_tiny, p, exponent, out=size))
    sizes = exact.products.abs()
    of_rows, of_values = _norms(dout), _norms(head.v[keys])
    is_judged &= of_rows * of_values.amax() < 2.0**120
    floor, walk = tiny * MOST_PRODUCTS, arithmetic.products.walk / 2
    x_variance = torch.outer(of_rows * walk, of_values).add_(sizes, alpha=walk).square_()
    return (
        Weighed(
            p,
            square,
            error,
            of_p,
            variance,
            sizes,
            p * sizes,
            exact.shares,
            (exact.products - exact.delta[:, None]).abs_(),
            (of_rows * (arithmetic.products.worst * (1 + 2.0**-8)), of_values, floor),
            (arithmetic.products.to_zero, floor),
            x_variance,
            hidden,
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
    weight_errors: Tensor
    typical_weights: Tensor
    weight_variance: Tensor


def _row_sums(pairs: Weighed) -> _RowSums:
    size, product = pairs.size, pairs.product
    of_row, of_key, floor = pairs.derivative_error
    # Σ P and Σ of its errors, each with and without the key's number.
    factors = torch.stack([of_key, torch.ones_like(of_key)], 1)
    of_errors, of_weights = pairs.weight_error @ factors, pairs.weight @ factors
    by_key, alone = (of_errors + of_weights).unbind(1)
    total, weight_errors = product.sum(1), of_errors[:, 1]
    part, typical_floor = pairs.typical_derivative
    work = pairs.weight_error * size
    errors = work.sum(1) + of_row * by_key + floor * alone
    typical = torch.mul(pairs.typical_weight, size, out=work).sum(1)
    torch.mul(pairs.weight_variance, size, out=work).mul_(size)
    work.addcmul_(pairs.weight_square, pairs.derivative_variance)
    return _RowSums(
        size=total,
        squares=torch.linalg.vector_norm(product, dim=1).square(),
        errors=errors,
        typical=typical + part * total + typical_floor * of_weights[:, 1],
        variance=work.sum(1),
        weight_errors=weight_errors,
        typical_weights=pairs.typical_weight.sum(1),
        weight_variance=pairs.weight_variance.sum(1),
    )


def _of_any_output(
    arithmetic: PairArithmetic,
    block: WeightBlock,
    kernel: KernelRows,
    pairs: Weighed,
    sums: _RowSums,
    dout: Tensor,
    mean: Tensor,
) -> _MeanError:
    """dO·O of an O that is not known: what any correct forward may have stored."""
    distance = pairs.distance
    scatter = (pairs.weight_error * distance).sum(1)
    typical_scatter = (pairs.typical_weight * distance).sum(1)
    scatter_variance = (pairs.weight_variance * distance.square()).sum(1)
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
        torch.minimum(2 * kernel.weight * sums.size, scatter / (1 - sums.weight_errors)),
        2 * kernel.weight * sums.size,
    )
    tiny = MOST_PRODUCTS * arithmetic.premises.underflow
    r = arithmetic.premises.elementwise
    return _MeanError(
        worst.sum(1) + u * sums.size + of_weights + tiny,
        typical_scatter
        + (over_keys.to_zero + products.to_zero + r) * sizes
        + (size * floor).sum(1)
        + tiny,
        variance.sum(1)
        + scatter_variance
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
    sums = _row_sums(pairs)
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
        _of_any_output(arithmetic, block, kernel, pairs, sums, dout, mean)
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
    """Errors of numbers of pairs, [rows, keys]: P as dV has it, or dS. Terms as they may be, errors
    and all, are ``size`` and ``whole``.
    """

    value: Tensor
    size: Tensor
    """|value|."""
    worst: Tensor
    whole: Tensor
    """``worst``, with what rows have in common."""
    systematic: Tensor
    """Without what ``row_systematic`` counts."""
    variance: Tensor
    row_systematic: Tensor | None = None
    """[rows]: what of ``size`` comes on top."""


def err_weights(
    arithmetic: PairArithmetic, pairs: Weighed, rows: Rows
) -> tuple[PairErrors, Roundings]:
    """P as dV has it, and its roundings: ``errWeights``."""
    p, whole = pairs.weight, rows.weight[:, None]
    error = (pairs.weight_error * (1 + whole)).addcmul_(p, whole)
    roundings = round_weights(arithmetic.working, p, error)
    roundings.worst.masked_fill_(p == 0, 0.0)
    worst = error.add_(roundings.worst)
    variance = roundings.variance.add_(pairs.weight_variance)
    variance.addcmul_(pairs.weight_square, rows.weight_variance[:, None])
    return PairErrors(
        p, p, worst, worst, pairs.typical_weight, variance, rows.typical_weight
    ), roundings


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
    p, p_squares, size, value = pairs.weight, pairs.weight_square, pairs.distance, pairs.share
    mean, worst_mean = rows.mean.abs()[:, None], rows.worst_mean[:, None]
    grown = 1 + rows.weight[:, None]
    sizes = value.abs()
    of_row, of_key, floor = pairs.derivative_error
    # Errors of x and of D's part in it, relative to P; then all that x − D may come to.
    of_x = torch.outer(of_row, of_key).add_((arithmetic.products.worst + r) * mean + floor)
    of_x.add_(size, alpha=r)
    reach = (of_x + size).add_(worst_mean)
    own = (pairs.weight_error + of_weights).mul_(1 + 3 * r).add_(p, alpha=3 * r).add_(3 * tiny)
    own.mul_(reach).addcmul_(p, of_x).add_(3 * tiny).mul_(grown)
    together = (sizes * rows.weight[:, None]).addcmul_(p, worst_mean * grown)
    before = torch.add(sizes, own, out=reach).add_(together).mul_(1 + 2.0**-20)
    rounded = round_derivatives(arithmetic, before)
    largest = before.amax(1) * max(1.0, abs(arithmetic.scale))
    u, r_variance = arithmetic.working.unit_roundoff, arithmetic.elementwise_variance
    squares = torch.mul(size, size, out=of_x)
    variance = torch.add(
        pairs.derivative_variance, squares, alpha=MEAN_ROUNDING * u * u + 3 * r_variance
    )
    variance.add_((arithmetic.products.walk**2 + r_variance) * mean.square()).mul_(p_squares)
    variance.addcmul_(pairs.weight_variance, squares).addcmul_(rounded, rounded, value=1 / 3)
    part, typical_floor = pairs.typical_derivative
    systematic = (pairs.typical_weight * size).add_(pairs.product, alpha=part)
    systematic.add_(p, alpha=typical_floor).add_(3 * tiny)
    own.add_(rounded)
    if pairs.hidden is not None:
        for each in (own, variance, systematic, together):
            each.masked_fill_(pairs.hidden, 0.0)
    whole = together.add_(own)
    queries = PairErrors(value, sizes, own, whole, systematic, variance)
    of_weight, of_mean = rows.weight_variance[:, None], rows.mean_variance[:, None]
    moved = squares.mul_(of_weight).add_(of_mean).mul_(p_squares).add_(variance)
    typical = torch.addcmul(systematic, p, rows.typical_mean[:, None], out=rounded)
    keys = PairErrors(value, sizes, whole, whole, typical, moved, rows.typical_weight)
    is_within = largest < arithmetic.working.max_finite * _SURELY
    return DerivativeErrors(queries, keys, is_within)
