"""The errors of pairs as kernels of Triton, on an NVIDIA GPU."""

from __future__ import annotations

from dataclasses import fields

import torch
from torch import Tensor

from ..limits import SURE
from ..scores.fused import block_of
from ..weights import LN2
from . import kernels
from .pair_law import PairLaw, PairMatrices, PairSums, Rows
from .premises import CLOSE, MEAN_ROUNDING, OPEN

_MATRICES = 13
_BLOCK_OF_SUMS, _BLOCK_OF_MATRICES = 512, 256
"""Keys that a program takes at once: as many as registers have room for."""


class FusedPairs:
    """See ``Pairs``."""

    def __init__(self, law: PairLaw, exponents: Tensor, weights: Tensor, products: Tensor) -> None:
        """``products`` are x = dO·v, [heads, rows, keys]."""
        self._law = law
        self._numbers = torch.tensor(_numbers(law), dtype=torch.float64, device=weights.device)
        self._matrices = exponents, weights, products
        self._rows = torch.stack([law.lse, law.norms, law.derivative_norms]).flatten(1)
        self._of_keys = law.key_norms.contiguous(), law.value_norms.contiguous()
        self._seen = law.seen.begin.int(), law.seen.end.int()
        heads, rows, keys = weights.shape
        self._count, self._sizes = heads * rows, (rows, keys)

    def sums(self, *, with_scatter: bool) -> PairSums:
        """See ``Pairs``."""
        sums = self._rows.new_empty(13, self._count)
        kernels.sum_pairs[(self._count,)](
            *self._matrices,
            self._rows,
            *self._of_keys,
            self._numbers,
            *self._seen,
            sums,
            self._count,
            *self._sizes,
            SCATTER=with_scatter,
            BLOCK=block_of(self._sizes[1], _BLOCK_OF_SUMS),
        )
        return PairSums(*sums)

    def matrices(self, rows: Rows) -> PairMatrices:
        """See ``Pairs``."""
        of_rows = [
            rows.mean,
            rows.weight,
            rows.typical_weight,
            rows.weight_variance,
            rows.worst_mean,
            rows.typical_mean,
            rows.mean_variance,
        ]
        weights = self._matrices[1]
        found = weights.new_empty(_MATRICES, *weights.shape)
        largest = self._rows.new_empty(self._count)
        opens = torch.empty(self._count, dtype=torch.int32, device=weights.device)
        kernels.err_pairs[(self._count,)](
            *self._matrices,
            torch.cat([self._rows, torch.stack(of_rows)]),
            *self._of_keys,
            self._numbers,
            *self._seen,
            found,
            largest,
            opens,
            weights.numel(),
            self._count,
            *self._sizes,
            OPEN=OPEN,
            CLOSE=CLOSE,
            BLOCK=block_of(self._sizes[1], _BLOCK_OF_MATRICES),
        )
        names = [one.name for one in fields(PairMatrices)][:_MATRICES]
        members = dict(zip(names, found, strict=True))
        if not bool(opens.any()):
            members["weight_open"] = None
        return PairMatrices(**members, largest=largest)


def _numbers(law: PairLaw) -> list[float]:
    """What kernels read by place; the comments name them."""
    arithmetic = law.arithmetic
    premises, scores, products = arithmetic.premises, arithmetic.scores, arithmetic.products
    r, u = premises.elementwise, arithmetic.working.unit_roundoff
    r_variance = arithmetic.elementwise_variance
    return [
        LN2,
        scores.worst,
        scores.walk / 2,
        r,
        premises.exponential,
        premises.underflow,
        scores.to_zero,
        MEAN_ROUNDING * r * r,  # 7: the variance of a score's elementwise operation
        products.worst * (1 + 2.0**-8),  # 8: of x, times both norms
        products.walk / 2,
        law.floor,  # 10
        products.to_zero,
        products.worst + r,  # 12: of D in x − D
        MEAN_ROUNDING * u * u + 3 * r_variance,  # 13: the variance of dS, times (x − D)²
        products.walk**2 + r_variance,  # 14: times D²
        # 15: a scale of 0 rounds nothing else than the format does.
        abs(arithmetic.scale) or 1.0,
        1 - SURE,
        arithmetic.working.smallest_normal,
        u,
        1 / 3,
    ]
