"""The errors of pairs as operations of PyTorch, on any device."""

from __future__ import annotations

import torch
from torch import Tensor

from ..masks import hidden_keys
from ..weights import LN2
from .pair_law import PairLaw, PairMatrices, PairSums, Rows, by_row, outer
from .premises import MEAN_ROUNDING, round_derivatives, round_weights


class EagerPairs:
    """See ``Pairs``: ``p-recompute`` and ``dp-accumulate``.

    Of errors of P neither the typical ones nor the deviation exceed the worst case, as they may not:
    each of their terms is one of its, times less than 1.
    """

    def __init__(self, law: PairLaw, exponents: Tensor, weights: Tensor, products: Tensor) -> None:
        """``products`` are x = dO·v, [heads, rows, keys]."""
        self._law, self._p, self._x = law, weights, products
        self._square = weights.square()
        self._hidden = hidden_keys(law.seen, 0, weights.shape[2])
        self._mean = (weights * products).sum(-1)
        self._distance = (products - self._mean[:, :, None]).abs_()
        self._size = products.abs()
        self._err_weights(exponents)
        of_rows, walk = law.derivative_norms, law.arithmetic.products.walk / 2
        variance = outer(of_rows * walk, law.value_norms).add_(self._size, alpha=walk)
        self._x_variance = variance.square_()

    def _seen(self, of: Tensor) -> Tensor:
        return of if self._hidden is None else of.masked_fill_(self._hidden, 0.0)

    def _err_weights(self, exponents: Tensor) -> None:
        law, p, seen = self._law, self._p, self._seen
        scores, premises = law.arithmetic.scores, law.arithmetic.premises
        r, e, tiny = premises.elementwise, premises.exponential, premises.underflow
        two_tiny = torch.full((), 2 * tiny, dtype=p.dtype, device=p.device)
        size = seen(exponents * LN2)
        exponent = seen(size - law.lse[:, :, None]).abs_()
        size.abs_()
        worst = outer(law.norms * scores.worst, law.key_norms)
        worst = seen(worst.add_(size, alpha=8 * r).add_(exponent, alpha=2 * r))
        self._largest = worst.amax(-1)
        worst.clamp_(max=1)
        of_scores, walk = MEAN_ROUNDING * r * r, scores.walk / 2
        variance = outer(law.norms * walk, law.key_norms).add_(size, alpha=walk).square_()
        variance.addcmul_(size, size, value=2 * of_scores)
        variance.addcmul_(exponent, exponent, value=of_scores).add_(e * e)
        self._variance = variance.mul_(self._square)
        torch.addcmul(worst, worst, worst, out=exponent)
        self._error = seen(torch.addcmul(two_tiny, p, exponent.mul_(1 + e).add_(e), out=worst))
        size.mul_(scores.to_zero + r)
        torch.addcmul(size, size, size, out=exponent)
        self._typical = seen(torch.addcmul(two_tiny, p, exponent, out=size))

    def sums(self, *, with_scatter: bool) -> PairSums:
        """See ``Pairs``."""
        law, size, distance = self._law, self._size, self._distance
        product = self._p * size
        of_row, of_key, floor = law.derivative_error
        # Σ P and Σ of its errors, each with and without the key's number.
        factors = torch.stack([of_key, torch.ones_like(of_key)], -1)
        of_errors, of_weights = self._error @ factors, self._p @ factors
        by_key, alone = (of_errors + of_weights).unbind(-1)
        total = product.sum(-1)
        work = self._error * size
        errors = work.sum(-1) + of_row * by_key + floor * alone
        typical = torch.mul(self._typical, size, out=work).sum(-1)
        torch.mul(self._variance, size, out=work).mul_(size)
        variance = work.addcmul_(self._square, self._x_variance).sum(-1)
        scatter = (torch.zeros_like(total),) * 3
        if with_scatter:
            torch.mul(self._variance, distance, out=work).mul_(distance)
            of_errors_alone, of_typical = (
                torch.linalg.vecdot(x, distance) for x in (self._error, self._typical)
            )
            scatter = of_errors_alone, of_typical, work.sum(-1)
        sums = (
            self._mean,
            total,
            torch.linalg.vector_norm(product, dim=-1).square(),
            errors,
            typical + law.arithmetic.products.to_zero * total + floor * of_weights[..., 1],
            variance,
            of_errors[..., 1],
            self._typical.sum(-1),
            self._variance.sum(-1),
            *scatter,
            self._largest,
        )
        return PairSums(*(x.flatten() for x in sums))

    def matrices(self, rows: Rows) -> PairMatrices:
        """See ``Pairs``: ``errWeights`` and ``errDerivatives``."""
        law, p = self._law, self._p
        whole = by_row(rows.weight, law)
        error = (self._error * (1 + whole)).addcmul_(p, whole)
        roundings = round_weights(law.arithmetic.working, p, error)
        roundings.worst.masked_fill_(p == 0, 0.0)
        weight_worst = error.add_(roundings.worst)
        weight_variance = roundings.variance.add_(self._variance)
        weight_variance.addcmul_(self._square, by_row(rows.weight_variance, law))
        share, size, worst, together, rounded, largest = self._err_shares(rows, roundings.worst)
        variance, moved = self._vary_shares(rows, rounded)
        systematic, typical = self._shift_shares(rows)
        worst.add_(rounded)
        for each in (worst, variance, systematic, together):
            self._seen(each)
        moved.add_(variance)
        typical.add_(systematic)
        return PairMatrices(
            share,
            size,
            worst,
            together.add_(worst),
            systematic,
            variance,
            typical,
            moved,
            weight_worst,
            self._typical,
            weight_variance,
            roundings.known,
            roundings.open_size,
            largest,
        )

    def _err_shares(self, rows: Rows, of_weights: Tensor) -> tuple[Tensor, ...]:
        """dS, |dS|, what pairs err by before they are rounded, what rows add, the rounding, and the
        largest of all that, by row.
        """
        law, p, size = self._law, self._p, self._distance
        premises, mean = law.arithmetic.premises, by_row(rows.mean, law)
        r, tiny = premises.elementwise, premises.underflow
        worst_mean, whole = by_row(rows.worst_mean, law), by_row(rows.weight, law)
        share = (self._x - mean).mul_(p)
        sizes = share.abs()
        of_row, of_key, floor = law.derivative_error
        # Errors of x and of D's part in it, relative to P; then all that x − D may come to.
        of_x = outer(of_row, of_key)
        of_x.add_((law.arithmetic.products.worst + r) * mean.abs() + floor).add_(size, alpha=r)
        reach = (of_x + size).add_(worst_mean)
        own = (self._error + of_weights).mul_(1 + 3 * r).add_(p, alpha=3 * r).add_(3 * tiny)
        own.mul_(reach).addcmul_(p, of_x).add_(3 * tiny).mul_(1 + whole)
        together = (sizes * whole).addcmul_(p, worst_mean * (1 + whole))
        before = torch.add(sizes, own, out=reach).add_(together).mul_(1 + 2.0**-20)
        rounded = round_derivatives(law.arithmetic, before)
        return share, sizes, own, together, rounded, before.amax(-1).flatten()

    def _vary_shares(self, rows: Rows, rounded: Tensor) -> tuple[Tensor, Tensor]:
        """The variance of dS, and what rows add to it."""
        law, distance = self._law, self._distance
        u, r_variance = law.arithmetic.working.unit_roundoff, law.arithmetic.elementwise_variance
        of_mean = law.arithmetic.products.walk**2 + r_variance
        squares = distance.square()
        variance = torch.add(
            self._x_variance, squares, alpha=MEAN_ROUNDING * u * u + 3 * r_variance
        )
        variance.add_(by_row(of_mean * rows.mean.square(), law)).mul_(self._square)
        variance.addcmul_(self._variance, squares).addcmul_(rounded, rounded, value=1 / 3)
        moved = squares.mul_(by_row(rows.weight_variance, law))
        moved.add_(by_row(rows.mean_variance, law)).mul_(self._square)
        return variance, moved

    def _shift_shares(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """What of dS's errors does not average out, and what rows add to it."""
        law, p = self._law, self._p
        tiny = law.arithmetic.premises.underflow
        systematic = self._typical * self._distance
        systematic.addcmul_(p, self._size, value=law.arithmetic.products.to_zero)
        systematic.add_(p, alpha=law.floor).add_(3 * tiny)
        return systematic, p * by_row(rows.typical_mean, law)
