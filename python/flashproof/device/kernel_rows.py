"""What any correct kernel may do to a row, from norms alone: ``KernelBound`` of
``src/audit/bounds/norm-bound.ts``.

The structure tests are made of these numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .premises import Premises
from .problem import AttentionProblem, Shape
from .weights import HeadTensors, WeightBlock

_SECOND_ORDER = 1 + 2.0**-6


@dataclass(frozen=True)
class KernelRows:
    """Errors of rows, [rows]; relative unless said otherwise."""

    keys: Tensor
    """How many keys the row sees."""
    score: Tensor
    """The largest size of a score: of norms, and at most the softcap."""
    weight: Tensor
    """Of weights that numerator and denominator share: relative to Σ w|v - O|."""
    typical_weight: Tensor
    """The same where the roundings of a dot product add up like a random walk."""
    weight_rounding: float
    """Of P: relative to Σ w|v|."""
    normalisation: Tensor
    """Of the row sum, the reciprocal and the product with it: relative to |O|."""
    floor: Tensor
    """Absolute: underflow."""
    largest_value: Tensor
    """The largest |v| that the row sees."""

    @property
    def is_coarse(self) -> Tensor:
        """Rows whose weights may be off by half, which no statistic admits."""
        return self.typical_weight >= 0.5


def tanh_error(problem: AttentionProblem, premises: Premises) -> float:
    """The most that a softcap's tanh may change a score; 0 without one."""
    return (
        0.0
        if problem.softcap is None
        else (premises.tanh + 4 * premises.elementwise) * problem.softcap
    )


def kernel_rows(
    problem: AttentionProblem,
    head: HeadTensors,
    shape: Shape,
    premises: Premises,
    block: WeightBlock,
) -> KernelRows:
    """The rows of a block."""
    keys = block.keys.count.double()
    a, r = premises.accumulation, premises.elementwise
    norms = (head.query_norm * head.largest_key_norm)[:, block.queries].flatten()
    score = abs(problem.used_scale) * norms
    dots = math.expm1(shape.qk_dim * a)
    error = (dots + 4 * r) * score
    capped = score if problem.softcap is None else score.clamp(max=problem.softcap)
    if problem.softcap is not None:
        error = error + (premises.tanh + 4 * r) * capped
    weight = (torch.expm1(error.clamp(max=700)) + premises.exponential) * _SECOND_ORDER
    typical = torch.where(
        error > 700, weight, weight - (dots - math.sqrt(shape.qk_dim) * a) * score
    )
    weight_format = premises.weight_format
    u = weight_format.unit_roundoff
    least = weight_format.smallest_subnormal / 2 / premises.weight_scale
    largest_value = head.largest_value[:, block.queries].flatten()
    floor = (
        keys * (least + 2.0**-126) / block.total.clamp(min=1) * largest_value
        + (keys + 2) * premises.underflow
    )
    return KernelRows(
        keys=keys,
        score=capped,
        weight=weight,
        typical_weight=typical,
        weight_rounding=u / (1 + u) * _SECOND_ORDER,
        normalisation=(keys * a + 4 * r) * _SECOND_ORDER,
        floor=floor,
        largest_value=largest_value,
    )
