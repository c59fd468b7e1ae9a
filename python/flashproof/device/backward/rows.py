"""The errors of rows of queries, by what the errors of their pairs sum up to: Theorems 4 and 5 of
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
from ..kernel_rows import KernelRows
from ..limits import SURE
from ..selection import zero_where
from ..weights import LN2, WeightBlock
from .pair_law import PairSums, Rows
from .premises import MEAN_ROUNDING, MOST_PRODUCTS, PairArithmetic

_HARDWARE_LOGARITHM = 0.35
_SURELY = 1 - SURE


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


def _of_any_output(
    arithmetic: PairArithmetic,
    block: WeightBlock,
    kernel: KernelRows,
    sums: PairSums,
    dout: Tensor,
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
        + (products.walk * (sizes + sums.mean.abs()) / 2).square()
        + MEAN_ROUNDING * u**2 * sums.squares,
    )


def row_errors(
    arithmetic: PairArithmetic,
    block: WeightBlock,
    kernel: KernelRows,
    sums: PairSums,
    is_judged: Tensor,
    dout: Tensor,
    stored_out: Tensor | None,
) -> Rows:
    """``lse-input`` and ``delta``: Theorems 4 and 5. ``dout`` and ``stored_out`` are [rows, v dim] in
    fp64.
    """
    premises, mean = arithmetic.premises, sums.mean
    r, tiny = premises.elementwise, premises.underflow
    is_judged = is_judged & (sums.largest_error < _SURELY)
    is_empty = block.total == 0
    lse = zero_where(is_empty, block.lse).abs()
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
    of_pairs = weight_errors / (1 - weight_errors)
    of_pairs = of_pairs.masked_fill(~(weight_errors < 0.5), math.inf)
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
        _of_any_output(arithmetic, block, kernel, sums, dout)
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
