"""What errors of a row's D and LSE do to all keys together, which no sum over independent rows of dK
or dV counts: ``src/audit/gradients/structure/mean-errors.ts``, surely no more than there.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..formats import ulp
from ..limits import SURE
from ..selection import kept_where
from ..weights import WeightBlock
from .pair_law import PairSums, Rows
from .premises import PairArithmetic

_FP32_ROUNDOFF = 2.0**-24


@dataclass
class CommonErrors:
    """Variances of what rows' errors do to sums over the keys of heads of K."""

    columns: Tensor
    """[heads of K, dim]: to Σ of a column."""
    of_weights: Tensor
    """[heads of K]: the part of Σ ``columns`` that errors of the LSE make."""

    @property
    def norm(self) -> Tensor:
        """Of a projection on a pattern whose longest row has length 1, at most: the deviation, [heads of
        K].
        """
        return self.columns.sum(1).sqrt()

    @classmethod
    def nothing(cls, like: Tensor) -> CommonErrors:
        """Before any row, of gradients [heads of K, keys, dim]."""
        return cls(torch.zeros_like(like[:, 0]), torch.zeros_like(like[:, 0, 0]))


def mean_variances(
    arithmetic: PairArithmetic,
    block: WeightBlock,
    pairs: PairSums,
    dout: Tensor,
    largest_values: Tensor,
) -> tuple[Tensor, Tensor]:
    """What D of each row may be off by at random, its variance, and Σ P|dP|, [rows]:
    ``meanDeviations``. ``largest_values`` [heads, v dim] are those of all keys.
    """
    largest_values = largest_values.repeat_interleave(block.weights.shape[1], 0)
    output, u = arithmetic.output, arithmetic.working.unit_roundoff
    exact = block.out
    half = ulp(output, (exact.abs() * (1 - SURE)).clamp(max=output.max_finite)) / 2
    heaviest = kept_where(block.total > 0, 1 / block.total.clamp(min=1))
    magnitude = pairs.size
    of_weights = u**2 * heaviest[:, None] * block.magnitude * largest_values
    variance = (dout.square() * (half.square() + of_weights)).sum(1)
    reach = (dout.abs() * largest_values).sum(1)
    variance += (2 * _FP32_ROUNDOFF) ** 2 * heaviest * magnitude * reach
    sizes = (dout * exact).abs().sum(1)
    variance += (dout.shape[1] * arithmetic.premises.accumulation * sizes).square()
    return kept_where(block.total > 0, variance), magnitude


def add_to_keys(
    common: CommonErrors,
    arithmetic: PairArithmetic,
    rows: Rows,
    of_mean: tuple[Tensor, Tensor],
    queries: Tensor,
) -> None:
    """Adds what rows do to dK; ``of_mean`` is what ``mean_variances`` gave, ``queries`` [heads, rows, dim]."""
    variance, magnitude = of_mean
    of_rows = queries.shape[:2]
    of_weights = (4 * rows.weight_variance * magnitude.square()).view(of_rows)
    squares = (arithmetic.scale * queries).square()
    common.columns += ((variance.view(of_rows) + of_weights)[:, :, None] * squares).sum(1)
    common.of_weights += (of_weights[:, :, None] * squares).sum((1, 2))


def add_to_values(common: CommonErrors, rows: Rows, dout: Tensor) -> None:
    """Adds what rows do to dV; ``dout`` is [heads, rows, v dim]."""
    moved = (rows.weight_variance.view(dout.shape[:2])[:, :, None] * dout.square()).sum(1)
    common.columns += moved
    common.of_weights += moved.sum(1)
