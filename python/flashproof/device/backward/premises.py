"""How coarsely any correct kernel may compute gradients: the numbers of
``src/audit/gradients/bounds/gradient-premises.ts`` and ``pair-arithmetic.ts``, for inputs of 16 bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..formats import NumberFormat, binade
from ..limits import SURE
from ..premises import Premises, premises_of
from ..problem import Shape
from ..selection import kept_where

MEAN_ROUNDING = 1 / (8 * math.log(2))
"""The variance of a rounding's relative error over u², where nothing but its format is known."""
MOST_PRODUCTS = 2.0**16
"""An underflow counts for every product and addition of a dot product."""


@dataclass(frozen=True)
class SumErrors:
    """How far a sum of n products may be off: ``sumErrors``."""

    worst: float
    """Relative to Σ |products|."""
    to_zero: float
    """What adders that cut off may take away, relative to the sum itself."""
    walk: float
    """The deviation, relative to (Σ |products| + |sum|) / 2."""


def sum_errors(n: int, accumulation: float) -> SumErrors:
    """Of n products whose additions are each off by ``accumulation`` of the sizes."""
    return SumErrors(
        math.expm1(n * accumulation * (1 + 2.0**-10)),
        n * accumulation / 4,
        math.sqrt(n) * accumulation,
    )


@dataclass(frozen=True)
class PairArithmetic:
    """What the errors of single pairs of a query and a key are made of."""

    premises: Premises
    working: NumberFormat
    """The format of the inputs, which P and dS are rounded to."""
    output: NumberFormat
    scale: float
    scores: SumErrors
    products: SumErrors
    over_keys: SumErrors
    over_queries: SumErrors
    terms: int
    """Of a sum over the queries of a group."""

    @property
    def elementwise_variance(self) -> float:
        """The variance of one elementwise operation's relative error."""
        return MEAN_ROUNDING * self.premises.elementwise**2

    @property
    def growth(self) -> float:
        """What storing a head's share of dK and dV before a group is added makes of errors."""
        return 1 + self.output.unit_roundoff


def pair_arithmetic(
    inputs: NumberFormat, output: NumberFormat, shape: Shape, scale: float
) -> PairArithmetic:
    """The errors of any correct kernel's backward pass, of gradients in ``output``."""
    premises = premises_of(inputs, inputs)
    accumulation = premises.accumulation
    terms = shape.queries * (shape.heads // shape.kv_heads)
    return PairArithmetic(
        premises,
        inputs,
        output,
        scale,
        scores=sum_errors(shape.qk_dim, accumulation),
        products=sum_errors(shape.v_dim + 1, accumulation),
        over_keys=sum_errors(shape.keys + 1, accumulation),
        over_queries=sum_errors(terms + 1, accumulation),
        terms=terms,
    )


def half_ulp(number_format: NumberFormat, x: Tensor) -> Tensor:
    """Half an ulp at 0 ≤ x, of subnormals where x is among them: ``halfUlp``, surely no more."""
    half = binade(x * (1 - SURE)).clamp_(min=number_format.smallest_normal)
    return half.mul_(number_format.unit_roundoff)


@dataclass(frozen=True)
class Roundings:
    """What rounding weights to a format does: ``roundOperands`` without factors."""

    worst: Tensor
    known: Tensor
    """The rounding itself where it is certain, signed; else 0."""
    variance: Tensor
    """Where it is not."""
    open_size: Tensor | None
    """At most the size of roundings of which fp64 leaves open which of both they are, else 0; None
    where there are none.
    """


CLOSE = 2.0**-40
"""What fp64 leaves open of a number, relatively, many times over."""
OPEN = 2.0**-28
"""Part of half an ulp about a tie, or a limit, that fp64's roundings are within."""


def round_weights(number_format: NumberFormat, x: Tensor, errors: Tensor) -> Roundings:
    """Roundings of x ≥ 0, each within its error. Where fp64 leaves open what is known of one, it
    counts for neither part.
    """
    # What decides is the half ulp that the command line has, not one that is surely no more.
    most = (x + errors).mul_(1 + 2.0**-20)
    half, above = (
        binade(most * by)
        .clamp_(min=number_format.smallest_normal)
        .mul_(number_format.unit_roundoff)
        for by in (1 - CLOSE, 1 + CLOSE)
    )
    quantum = binade(x).clamp_(min=number_format.smallest_normal)
    quantum.mul_(2 * number_format.unit_roundoff)
    # Quotients by powers of two are exact, and so are the difference and its product.
    quotient = x / quantum
    rounding = torch.round(quotient).sub_(quotient)
    distance = rounding.abs()
    is_open = (distance >= 0.5 - OPEN).logical_or_(half != above)
    rounding.mul_(quantum)
    distance.mul_(quantum)
    worst = distance + errors
    part = worst / half
    is_known = part < 1
    is_open |= part.sub_(1).abs_() <= OPEN
    part = torch.div(errors, half, out=part)
    is_small = part < 1
    is_open |= part.sub_(1).abs_() <= OPEN
    variance = torch.where(is_small, distance, half * 3**-0.5).square_()
    has_open = bool(is_open.any())
    return Roundings(
        worst=torch.minimum(half, worst, out=worst),
        known=rounding.masked_fill_((~is_known).logical_or_(is_open), 0.0),
        variance=variance.masked_fill_(is_known | is_open, 0.0),
        open_size=kept_where(is_open, half) if has_open else None,
    )


def round_derivatives(arithmetic: PairArithmetic, most: Tensor) -> Tensor:
    """The most that rounding numbers up to ``most`` may move them, where the scale may multiply
    them before: ``roundOperands`` with that factor.
    """
    unit = abs(arithmetic.scale)
    own = half_ulp(arithmetic.working, most)
    if unit == 0:
        return own
    return torch.maximum(own, half_ulp(arithmetic.working, most * unit) / unit)
