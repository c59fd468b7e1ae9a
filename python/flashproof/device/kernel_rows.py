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
from .selection import kept_where, zero_where
from .weights import LN2, HeadTensors, WeightBlock

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
    additions, beside = keys, _beside(premises, block, capped)
    if block.sunk is not None:
        additions = keys + block.sunk.is_there
    error = error + 4 * r * beside
    weight = (torch.expm1(error.clamp(max=700)) + premises.exponential) * _SECOND_ORDER
    typical = torch.where(
        error > 700, weight, weight - (dots - math.sqrt(shape.qk_dim) * a) * score
    )
    weight_format = premises.weight_format
    u = weight_format.unit_roundoff
    least = weight_format.smallest_subnormal / 2 / premises.weight_scale
    largest_value = head.largest_value[:, block.queries].flatten()
    total = block.total
    if block.sunk is not None:
        # Relative to the largest score, a sink's among them.
        total = block.whole * (-block.sunk.above).exp2()
    floor = (
        keys * (least + 2.0**-126) / total.clamp(min=1) * largest_value
        + (keys + 2) * premises.underflow
    )
    return KernelRows(
        keys=keys,
        score=capped,
        weight=weight,
        typical_weight=typical,
        weight_rounding=u / (1 + u) * _SECOND_ORDER,
        normalisation=(additions * a + 4 * r) * _SECOND_ORDER,
        floor=floor,
        largest_value=largest_value,
    )


def _beside(premises: Premises, block: WeightBlock, score: Tensor) -> Tensor:
    """The sizes of a row's largest addend and of its sink, natural units: see ``#largestAddend`` and
    ``sinkSize`` of ``norm-bound.ts``.
    """
    found = torch.zeros_like(score)
    maximum = block.maximum * LN2
    if block.added is not None:
        per_size = 4 * premises.elementwise
        least = maximum.clamp(max=0) + math.log(premises.underflow) - 2 - 2 * score * (1 + per_size)
        # Surely no more than the command line counts.
        least = block.by_head(least + 2.0**-30 * (1 + least.abs()))[:, :, None]
        may_count = block.added.value + per_size * block.added.size > least
        if block.hidden is not None:
            may_count = may_count & ~block.hidden
        found = kept_where(may_count, block.added.size).amax(-1).flatten()
    if block.sunk is not None:
        size, there = block.sunk.size * LN2, block.sunk.is_there
        above = zero_where(block.total == 0, block.sunk.exponent * LN2 - maximum)
        of_sink = torch.where(above > 0, size + above, size * above.exp())
        found = found + kept_where(there, of_sink)
    return found
