"""How far gradients of any correct kernel may be from exact ones, element by element: Theorems 8 and 9
of docs/theory/bounds-backward.md, ``finish-gradient.ts``, ``finish-queries.ts`` and ``group-sums.ts``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import torch
from torch import Tensor

from ..formats import nearest
from ..limits import SURE, output_rounding, rounding_spread
from ..selection import kept_where, zero_where
from ..weights import WeightBlock
from .pair_law import PairMatrices, Rows
from .premises import PairArithmetic, SumErrors, half_ulp

_UP = 1 + 2.0**-12
_LARGEST_SUM = 2.0**119
_OPEN_STORED = 2.0**-10
"""Part of half an ulp about that half within which it is open whether a stored share's rounding is
certain.
"""


@dataclass(frozen=True)
class GradientLimits:
    """What elements are allowed, [rows, dim]; surely no more than the command line allows, whose
    oracle's radius is left out.
    """

    total: Tensor
    systematic: Tensor
    known: Tensor
    deviation: Tensor
    is_judged: Tensor
    """[rows]: whether anything is known of the row."""


@dataclass(frozen=True)
class ElementErrors:
    """What moves elements before they are rounded, [rows, dim]: ``ElementErrors``."""

    worst: Tensor
    """Of pairs, of the row's LSE and D, and of heads' shares that are stored."""
    magnitude: Tensor
    systematic: Tensor
    variance: Tensor
    known: Tensor
    """Size of the roundings that are known, at least."""
    is_open: Tensor
    """Whether some of them may be known to the command line and not here, or there and not here."""
    floor: Tensor


def finish(
    arithmetic: PairArithmetic,
    of_sum: SumErrors,
    growth: float,
    exact: Tensor,
    radius: Tensor,
    errors: ElementErrors,
    is_judged: Tensor,
) -> GradientLimits:
    """The limits of elements that are ``exact`` to within ``radius``."""
    r, output = arithmetic.premises.elementwise, arithmetic.output
    size = exact.abs()
    worst = growth * _UP * (errors.worst + of_sum.worst * errors.magnitude) + _UP * (
        3 * r * size + errors.floor
    )
    variance = (
        errors.variance
        + errors.known.square()
        + of_sum.walk**2 * ((errors.magnitude + size) / 2).square()
        + arithmetic.elementwise_variance * size.square()
    )
    is_within = size + worst < min(output.max_finite, _LARGEST_SUM) / 2
    distance = ((nearest(output, exact) - exact).abs() - radius).clamp(min=0)
    half = torch.minimum(output_rounding(output, exact, worst, surely=True), distance + worst)
    typical = errors.systematic + (of_sum.to_zero + r / 2) * size + errors.floor
    systematic = torch.minimum(typical, worst)
    rounded, spread = rounding_spread(output, exact, variance.sqrt(), systematic, (0.0, radius))
    # What is left open of the roundings of pairs leaves open whether that of the output is known.
    rounded, spread = (zero_where(errors.is_open, x) for x in (rounded, spread))
    deviation = (variance + spread + rounded.square()).sqrt()
    return GradientLimits(
        worst + half, systematic, rounded, deviation, is_judged & is_within.all(1)
    )


def limits_of_queries(
    arithmetic: PairArithmetic,
    pairs: PairMatrices,
    rows: Rows,
    block: WeightBlock,
    keys: Tensor,
    exact: tuple[Tensor, Tensor],
) -> GradientLimits:
    """The limits of dQ of a block, [rows, dim]. ``keys`` [heads, keys, dim] are those of its pairs, ``exact``
    dQ and its radius, both with the scale.
    """
    scale = abs(arithmetic.scale)
    sizes = keys.abs()

    def times(x: Tensor, factors: Tensor) -> Tensor:
        return scale * torch.bmm(x, factors).flatten(0, 1)

    worst, whole, systematic = (
        times(x, sizes) for x in (pairs.worst, pairs.whole, pairs.systematic)
    )
    magnitude = whole + times(pairs.size, sizes)
    of_mean = times(block.weights, keys).abs()
    size, counts = exact[0].abs(), block.keys.count.double()

    def by_row(x: Tensor, of: Tensor) -> Tensor:
        return x[:, None] * of

    none = torch.zeros_like(worst)
    found = ElementErrors(
        worst=worst
        + by_row(rows.weight, size)
        + by_row(rows.worst_mean * (1 + rows.weight), of_mean),
        magnitude=magnitude,
        systematic=systematic
        + by_row(rows.typical_mean, of_mean)
        + by_row(rows.typical_weight, size),
        variance=scale * times(pairs.variance, keys.square())
        + by_row(rows.weight_variance, size.square())
        + by_row(rows.mean_variance, of_mean.square()),
        known=none,
        is_open=torch.zeros_like(none, dtype=torch.bool),
        floor=by_row(
            3 * counts * arithmetic.premises.underflow * max(1.0, scale), torch.ones_like(worst)
        ),
    )
    judged = rows.is_judged
    limits = finish(arithmetic, arithmetic.over_keys, 1.0, *exact, found, judged)
    # A row that sees no key has exact zeros.
    is_empty = counts == 0
    return GradientLimits(
        limits.total.masked_fill(is_empty[:, None], 0.0),
        limits.systematic.masked_fill(is_empty[:, None], 0.0),
        limits.known.masked_fill(is_empty[:, None], 0.0),
        limits.deviation.masked_fill(is_empty[:, None], 0.0),
        limits.is_judged | is_empty,
    )


@dataclass(frozen=True)
class KeyTerms:
    """What dK or dV sums of the pairs of a block, [heads, rows, keys]: dS or P, its errors, and the rows of
    Q or dO that they are multiplied by.
    """

    value: Tensor
    size: Tensor
    whole: Tensor
    systematic: Tensor
    variance: Tensor
    row_systematic: Tensor
    """[heads, rows]: what of ``size`` is systematic too."""
    of_value: Tensor
    """[heads, rows]: the error of the exact ``value``, relative."""
    factors: Tensor
    """[heads, rows, dim]"""
    known: Tensor | None = None
    open_size: Tensor | None = None


@dataclass
class KeySums:
    """Sums of dK or dV of groups over the queries of all their heads, [heads of K, keys, dim]."""

    factor: float
    """The scale of dK; 1 of dV."""
    value: Tensor
    radius: Tensor
    worst: Tensor
    magnitude: Tensor
    systematic: Tensor
    variance: Tensor
    known: Tensor
    open_known: Tensor
    stored_worst: Tensor
    """Of the group's heads, which may be stored in the output's format one by one; with the
    factor.
    """
    stored_variance: Tensor
    stored_known: Tensor
    """What is known of stored shares, signed: the rounding of the exact share where that is certain, else
    what is of its pairs.
    """
    stored_open: Tensor
    """How far that may be from the command line's."""
    head: Tensor
    """The share of the head at hand."""
    known_before: Tensor
    """``known`` and ``open_known`` of the heads before it."""
    open_before: Tensor
    is_judged: Tensor = field(init=False)
    """[heads of K, keys]"""

    def __post_init__(self) -> None:
        of_keys = self.value.shape[:2]
        self.is_judged = torch.ones(of_keys, dtype=torch.bool, device=self.value.device)

    @classmethod
    def nothing(cls, like: Tensor, factor: float) -> KeySums:
        """Sums of nothing yet, of gradients of the shape of K's or V's heads."""
        return cls(factor, *(torch.zeros_like(like) for _ in range(15)))

    def add(self, keys: slice, terms: KeyTerms) -> None:
        """Adds the pairs of a block."""
        factors = terms.factors
        sizes = factors.abs()

        def over_rows(x: Tensor, of: Tensor) -> Tensor:
            return torch.bmm(x.transpose(1, 2), of)

        # What a row's number multiplies is left to the rows of Q or dO, which are fewer than pairs.
        of_rows = [sizes, *(x[:, :, None] * sizes for x in (terms.of_value, terms.row_systematic))]
        if terms.value is terms.size:
            of_rows.append(factors)
        of_sizes = over_rows(terms.size, torch.cat(of_rows, 2)).split(sizes.shape[2], 2)
        share = of_sizes[3] if terms.value is terms.size else over_rows(terms.value, factors)
        self.value[:, keys] += share
        self.head[:, keys] += share
        of_errors = over_rows(terms.whole, sizes)
        self.worst[:, keys] += of_errors
        self.magnitude[:, keys] += of_errors + of_sizes[0]
        self.radius[:, keys] += of_sizes[1]
        self.systematic[:, keys] += over_rows(terms.systematic, sizes) + of_sizes[2]
        self.variance[:, keys] += over_rows(terms.variance, factors.square())
        if terms.known is not None:
            self.known[:, keys] += over_rows(terms.known, factors)
        if terms.open_size is not None:
            self.open_known[:, keys] += over_rows(terms.open_size, sizes)

    def leave_out(self, is_judged: Tensor, weights: Tensor, keys: slice) -> None:
        """Nothing is known of the keys that rows [heads, rows] see of which nothing is."""
        if not bool(is_judged.all()):
            is_seen = (weights > 0) & ~is_judged[:, :, None]
            self.is_judged[:, keys] &= ~is_seen.any(1)

    def end_head(self, arithmetic: PairArithmetic, is_stored: bool) -> None:
        """``group-sum``: what storing the head's share loses, where it may be stored."""
        if is_stored:
            output = arithmetic.output
            value = self.factor * self.head
            size = value.abs()
            error = abs(self.factor) * (self.worst + arithmetic.over_queries.worst * self.magnitude)
            self.is_judged &= (size + error < output.max_finite / 2).all(2)
            # Of all heads so far, which is no less than of this one, there and here.
            radius = 4 * abs(self.factor) * self.radius + size * 2.0**-50 + 2.0**-500
            rounding = nearest(output, value) - value
            distance = rounding.abs()
            half, above = half_ulp(output, size), half_ulp(output, size * (1 + 4 * SURE))
            most = (output.unit_roundoff * size).clamp(min=output.smallest_subnormal / 2)
            near = (distance - radius).clamp(min=0) + error
            self.stored_worst += torch.minimum(most, near)
            slack = _OPEN_STORED * half + 2 * radius
            is_open = (half != above) | ((near - half).abs() <= slack)
            is_known = (near < half) & ~is_open
            is_spread = (near >= half) & ~is_open & (size > 0)
            self.stored_variance += kept_where(is_spread, half.square() / 3)
            # A certain rounding is that of the exact share too: what its pairs lose is not left.
            of_pairs = self.factor * (self.known - self.known_before)
            open_pairs = abs(self.factor) * (self.open_known - self.open_before)
            self.stored_known += torch.where(is_known, rounding, zero_where(is_open, of_pairs))
            open_share = torch.maximum(above, of_pairs.abs() + open_pairs)
            self.stored_open += torch.where(is_open, open_share, zero_where(is_known, open_pairs))
            self.known_before.copy_(self.known)
            self.open_before.copy_(self.open_known)
        self.head.zero_()

    def finish(
        self, arithmetic: PairArithmetic, is_stored: bool
    ) -> tuple[Tensor, Tensor, GradientLimits]:
        """The exact gradient, its radius, and its limits, [keys of all heads, dim]."""
        factor = abs(self.factor)
        exact = self.value * self.factor
        radius = self.radius * factor * (1 + 2.0**-5) + exact.abs() * 2.0**-53 + 2.0**-500
        floor = 3 * arithmetic.terms * arithmetic.premises.underflow * max(1.0, factor)
        is_open = self.open_known > 0
        known = (factor * (self.known.abs() - self.open_known)).clamp(min=0)
        if is_stored:
            known = torch.maximum(known, self.stored_known.abs() - self.stored_open)
            is_open |= self.stored_open > 0
        errors = ElementErrors(
            worst=factor * self.worst + self.stored_worst,
            magnitude=factor * self.magnitude,
            systematic=factor * self.systematic,
            variance=factor**2 * self.variance + self.stored_variance,
            known=known,
            is_open=is_open,
            floor=floor * (self.worst > 0),
        )
        growth = arithmetic.growth if is_stored else 1.0
        of_sum = arithmetic.over_queries
        exact, radius = exact.flatten(0, 1), radius.flatten(0, 1)
        errors = ElementErrors(
            *(getattr(errors, one.name).flatten(0, 1) for one in fields(ElementErrors))
        )
        is_judged = self.is_judged.flatten()
        limits = finish(arithmetic, of_sum, growth, exact, radius, errors, is_judged)
        return exact, radius, limits
