"""Passes over scores as operations of PyTorch, on any device."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..alike import alike_counts
from ..masks import GROUP_ROWS, VisibleKeys, hidden_keys
from ..selection import kept_where
from .engine import Moments, RowTotals, ScoreLaw, Weights

TIED = 1 - 2.0**-20
"""Weights from this part of the largest on may be the largest."""
GROWN = 1 + 2.0**-12
"""By how much the sum of weights up to a tile counts more."""


class EagerEngine:
    """Operations of PyTorch."""

    def weigh(self, exponents: Tensor, seen: VisibleKeys, first_key: int) -> Weights:
        """See ``Engine``."""
        hidden = hidden_keys(seen, first_key, exponents.shape[2])
        if hidden is not None:
            exponents.masked_fill_(hidden, -math.inf)
        maximum = exponents.amax(-1)
        maximum = kept_where(maximum > -math.inf, maximum)
        weights = (exponents - maximum[:, :, None]).exp2_()
        total = weights.sum(-1)
        weights.div_(torch.where(total > 0, total, 1.0)[:, :, None])
        return Weights(maximum, total, weights)

    def total(self, exponents: Tensor, weights: Tensor, units: Tensor, law: ScoreLaw) -> RowTotals:
        """See ``Engine``."""
        hidden = hidden_keys(law.seen, law.first_key, weights.shape[2])

        def seen(of: Tensor) -> Tensor:
            return of if hidden is None else of.masked_fill_(hidden, 0.0)

        distance = seen(law.maximum[:, :, None] - exponents)
        weighted = weights * distance
        of_distance = weighted.sum(-1), weighted.mul_(distance).sum(-1)
        counts = alike_counts(exponents, law)
        least = law.least[:, :, None]
        squares = weights.square()
        moved = seen((law.relative * weights).add_(least))
        variance = moved.square_().mul_(1 / 3).add_(squares, alpha=law.of_exponential).mul_(counts)
        powers = torch.stack([units**n for n in range(1, 5)], -1)
        u1, u2, u3, u4 = (weights @ powers).unbind(-1)
        most, heaviest = weights.max(-1)
        return RowTotals(
            mass=weights.sum(-1),
            distance=of_distance[0],
            distance_squared=of_distance[1],
            units=(u1, u2, u3, u4),
            squares=squares.sum(-1),
            squares_alike=squares.mul_(counts).sum(-1),
            bias=torch.minimum(weights, least).sum(-1),
            additions=_additions(weights, law),
            heaviest=heaviest,
            is_tied=(weights >= (most * TIED)[:, :, None]).sum(-1) > 1,
            variance=variance,
        )

    def moments(
        self, directions: Tensor, values: Tensor, weights: Tensor, seen: VisibleKeys
    ) -> Moments:
        """See ``Engine``: one direction after the other, since all would not fit in memory."""
        squares, crossed, absolute = [], [], []
        for direction in directions:
            products = (direction @ values.transpose(1, 2)).mul_(weights)
            squares.append(torch.linalg.vector_norm(products, dim=-1).square_())
            crossed.append(torch.linalg.vecdot(products, weights))
            absolute.append(torch.linalg.vector_norm(products, 1, -1))
        return Moments(torch.stack(squares), torch.stack(crossed), torch.stack(absolute))


def _additions(weights: Tensor, law: ScoreLaw) -> Tensor:
    """Tiles are those of 64 rows together, from the first key that any of them sees to the last."""
    seen = law.seen.of_groups()
    rows = weights.shape[1]
    tiles = max(1, -(-int(seen.count.max()) // GROUP_ROWS))
    starts = seen.begin[:, None] + GROUP_ROWS * torch.arange(tiles, device=weights.device)
    sizes = (seen.end[:, None] - starts).clamp(0, GROUP_ROWS)
    last = (starts + sizes - law.first_key).clamp(0, weights.shape[2])
    before = torch.nn.functional.pad(weights.cumsum(-1), (1, 0))
    mass = before.gather(-1, last.expand(weights.shape[0], rows, -1))
    at_most = (mass * GROWN).clamp(max=1)
    return kept_where(mass > 0, sizes * at_most).sum(-1)
