"""What the errors of a row's weights and sums come to, whatever its values are: Theorems 2 to 8 of
docs/theory/bounds.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .alike import alike_counts, is_clustered
from .masks import GROUP_ROWS
from .premises import FP32_ROUNDOFF, Premises
from .problem import AttentionProblem, Shape
from .weights import LN2, LOG2E, HeadTensors, WeightBlock


@dataclass(frozen=True)
class RowErrors:
    """What the errors of a row's weights and sums come to, [rows]: ``RowErrors`` of
    ``technique-bound.ts``.
    """

    mass: Tensor
    distance: Tensor
    distance_squared: Tensor
    scores: Tensor
    scores_squared: Tensor
    row_sum: Tensor
    exponential_variance: Tensor
    subnormal_bias: Tensor
    squares: Tensor
    squares_alike: Tensor
    largest: Tensor
    """The largest relative error of a weight."""
    uncertainty: Tensor
    """How far an exponent (log2) may be off from the errors of scores."""
    spread: Tensor
    """[rows, v dim]: the variance that roundings of weights make, before what is second order."""
    moved: Tensor
    """[rows, v dim]: how far they may move an element."""

    @property
    def clustered(self) -> tuple[Tensor, Tensor]:
        """See ``is_clustered``."""
        return is_clustered(self.mass, self.squares, self.squares_alike)


def _row_sums(block: WeightBlock, accumulation: float) -> Tensor:
    """Theorem 8: every addition to the row sum, tile of 64 keys by tile, relative to the sum after
    the tile.

    Tiles are those of 64 rows together, from the first key that any of them sees to the last.
    """
    keys, count = block.keys, block.weights.shape[0]
    groups = -(-count // GROUP_ROWS)
    padding = groups * GROUP_ROWS - count
    seen = keys.count > 0
    nothing = 2**40
    begin = torch.where(seen, keys.begin, nothing)
    end = torch.where(seen, keys.end, 0)
    begin = (
        torch.nn.functional.pad(begin, (0, padding), value=nothing).view(groups, GROUP_ROWS).amin(1)
    )
    end = torch.nn.functional.pad(end, (0, padding), value=0).view(groups, GROUP_ROWS).amax(1)
    begin = torch.minimum(begin, end)
    tiles = max(1, -(-int((end - begin).max()) // GROUP_ROWS))
    starts = begin[:, None] + GROUP_ROWS * torch.arange(tiles, device=begin.device)
    sizes = (end[:, None] - starts).clamp(0, GROUP_ROWS)
    last = (starts + sizes - block.first_key).clamp(0, block.weights.shape[1])
    before = torch.nn.functional.pad(block.weights.cumsum(1), (1, 0))
    rows = torch.arange(count, device=begin.device) // GROUP_ROWS
    mass = before.gather(1, last[rows])
    at_most = (mass * (1 + 2.0**-12)).clamp(max=1)
    return torch.where(mass > 0, sizes[rows] * at_most, 0.0).sum(1) * accumulation


def row_errors(
    problem: AttentionProblem,
    head: HeadTensors,
    shape: Shape,
    premises: Premises,
    block: WeightBlock,
) -> RowErrors:
    """The errors of a block's weights and sums."""
    rows = slice(block.first_row, block.first_row + block.maximum.shape[0])
    weights, weight_format = block.weights, premises.weight_format
    distance = torch.where(weights > 0, block.maximum[:, None] - block.exponents, 0.0)
    weighted = weights * distance
    moments = [weighted.sum(1), (weighted * distance).sum(1)]
    # An error of e = t + t² for that of a score t = a·u of natural units, u the key's unit: sums
    # over keys are those of u^n.
    per_unit = math.expm1(shape.qk_dim * premises.accumulation)
    exponent_unit = abs(problem.used_scale) * LOG2E * (1 + 2.0**-12)
    octaves = per_unit * exponent_unit * head.query_unit[rows]
    a = octaves * LN2
    u1, u2, u3, u4 = block.units.unbind(1)
    uncertainty = (
        octaves * head.largest_key_unit.over(block.keys) + block.maximum.abs() * LN2 * 2.0**-40
    )
    # P relative to the largest weight: half the smallest subnormal at least, and no less after the
    # division.
    u = weight_format.unit_roundoff
    relative = u / (1 + u) + FP32_ROUNDOFF
    gain = torch.where(block.total > 0, 1 / block.total, 0.0)
    least = (
        weight_format.smallest_subnormal
        / 2
        / premises.weight_scale
        * torch.where(gain > 0, gain.clamp(min=1), 0.0)
    )
    counts = alike_counts(block, weight_format, shape.keys)
    visible = block.exponents > -math.inf
    moved = torch.where(visible, relative * weights + least[:, None], 0.0)
    of_exponential = weights.square() * (2 * premises.exponential**2)
    alike_exponential = (counts * of_exponential).sum(1)
    variance = counts * (moved.square() / 3 + of_exponential)
    values = head.v[block.first_key : block.first_key + weights.shape[1]]
    seen_values = (head.value_sums[block.keys.end] - head.value_sums[block.keys.begin]).clamp_(
        min=0
    )
    of_score = 4 * premises.elementwise
    of_softcap = 0.0 if problem.softcap is None else premises.tanh + 4 * premises.elementwise
    largest = (
        torch.expm1(LN2 * uncertainty)
        + LN2 * ((of_score + of_softcap) * (128 + block.maximum.abs()))
        + premises.exponential
    )
    return RowErrors(
        mass=weights.sum(1),
        distance=moments[0],
        distance_squared=moments[1],
        scores=a * u1 + a.square() * u2,
        scores_squared=a.square() * u2 + 2 * a**3 * u3 + a**4 * u4,
        row_sum=_row_sums(block, premises.accumulation),
        exponential_variance=alike_exponential,
        subnormal_bias=torch.minimum(weights, least[:, None]).sum(1),
        squares=weights.square().sum(1),
        squares_alike=(counts * weights.square()).sum(1),
        largest=largest,
        uncertainty=uncertainty,
        spread=variance @ values.square(),
        moved=relative * block.magnitude + least[:, None] * seen_values,
    )
