"""What errors of a row's D and LSE do to all keys together, which no sum over independent rows of dK
or dV counts: ``src/audit/gradients/structure/mean-errors.ts``, surely no more than there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..formats import ulp
from ..limits import SURE
from ..weights import WeightBlock
from .pairs import Rows, Weighed
from .premises import PairArithmetic

_FP32_ROUNDOFF = 2.0**-24


@dataclass
class CommonErrors:
    """Variances of what rows' errors do to sums over the keys of a head of K."""

    columns: Tensor
    """[dim]: to Σ of a column."""
    of_weights: float = 0.0
    """The part of Σ ``columns`` that errors of the LSE make."""

    @property
    def norm(self) -> float:
        """Of a projection on a pattern whose longest row has length 1, at most: the deviation."""
        return math.sqrt(float(self.columns.sum()))

    @classmethod
    def nothing(cls, dim: int, device: torch.device) -> CommonErrors:
        """Before any row."""
        return cls(torch.zeros(dim, dtype=torch.float64, device=device))


def mean_variances(
    arithmetic: PairArithmetic,
    block: WeightBlock,
    pairs: Weighed,
    dout: Tensor,
    largest_values: Tensor,
) -> tuple[Tensor, Tensor]:
    """What D of each row may be off by at random, its variance, and Σ P|dP|, [rows]:
    ``meanDeviations``. ``largest_values`` [v dim] are those of all keys.
    """
    output, u = arithmetic.output, arithmetic.working.unit_roundoff
    exact = block.out
    half = ulp(output, (exact.abs() * (1 - SURE)).clamp(max=output.max_finite)) / 2
    heaviest = torch.where(block.total > 0, 1 / block.total.clamp(min=1), 0.0)
    magnitude = pairs.product.sum(1)
    of_weights = u**2 * heaviest[:, None] * block.magnitude * largest_values
    variance = (dout.square() * (half.square() + of_weights)).sum(1)
    reach = (dout.abs() * largest_values).sum(1)
    variance += (2 * _FP32_ROUNDOFF) ** 2 * heaviest * magnitude * reach
    sizes = (dout * exact).abs().sum(1)
    variance += (dout.shape[1] * arithmetic.premises.accumulation * sizes).square()
    return torch.where(block.total > 0, variance, 0.0), magnitude


def add_to_keys(
    common: CommonErrors,
    arithmetic: PairArithmetic,
    rows: Rows,
    of_mean: tuple[Tensor, Tensor],
    queries: Tensor,
) -> None:
    """Adds what rows do to dK; ``of_mean`` is what ``mean_variances`` gave."""
    variance, magnitude = of_mean
    of_weights = 4 * rows.weight_variance * magnitude.square()
    squares = (arithmetic.scale * queries).square()
    common.columns += ((variance + of_weights)[:, None] * squares).sum(0)
    common.of_weights += float((of_weights[:, None] * squares).sum())


def add_to_values(common: CommonErrors, rows: Rows, dout: Tensor) -> None:
    """Adds what rows do to dV."""
    moved = (rows.weight_variance[:, None] * dout.square()).sum(0)
    common.columns += moved
    common.of_weights += float(moved.sum())
