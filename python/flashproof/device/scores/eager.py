"""Passes over scores as operations of PyTorch, on any device."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..alike import alike_counts
from ..masks import VisibleKeys, hidden_keys
from ..places import GROUP_ROWS
from ..selection import kept_where
from .engine import Moments, RowTotals, ScoreLaw, Weights

TIED = 1 - 2.0**-20
"""Weights from this part of the largest on may be the largest."""
GROWN = 1 + 2.0**-12
"""By how much the sum of weights up to a tile counts more."""
_CPU_NUMBERS = 2**17
"""Numbers of a matrix that a CPU passes over at once, 1 MB: what one operation writes is still in its
cache for the next, and memory is not asked of the system each time.
"""


def _parts(matrix: Tensor) -> list[slice]:
    """Rows of a matrix [heads, rows, keys] that are passed over together, whole groups of ``GROUP_ROWS``: all on a
    GPU.
    """
    heads, rows, keys = matrix.shape
    if matrix.device.type != "cpu":
        return [slice(0, rows)]
    step = max(1, _CPU_NUMBERS // max(heads * keys * GROUP_ROWS, 1)) * GROUP_ROWS
    return [slice(first, min(first + step, rows)) for first in range(0, rows, step)]


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
        variance = torch.empty_like(weights)
        of_keys = torch.stack([units**n for n in range(1, 5)], -1) if units.dim() == 2 else None
        parts = [
            _total_rows(
                exponents[:, rows],
                weights[:, rows],
                _powers(weights[:, rows], units[:, rows])
                if of_keys is None
                else weights[:, rows] @ of_keys,
                law.of_rows(rows),
                variance[:, rows],
            )
            for rows in _parts(weights)
        ]
        return RowTotals.joined(parts, variance)

    def moments(
        self, directions: Tensor, values: Tensor, weights: Tensor, seen: VisibleKeys
    ) -> Moments:
        """See ``Engine``."""
        squares, crossed, absolute = directions.new_empty(3, *directions.shape[:3])
        # Head by head the directions of few rows are one matrix, whose product is still small.
        for head, of_keys in enumerate(values):
            for rows in _parts(weights[head : head + 1]):
                part, of_rows = weights[head, rows], directions[:, head, rows]
                # Σ w·(w X·v) is X·Σ w² v, whatever the direction X is.
                weighted = part.square() @ of_keys
                crossed[:, head, rows] = torch.linalg.vecdot(of_rows, weighted)
                products = of_rows.flatten(0, 1) @ of_keys.T
                products = products.view(-1, *part.shape).mul_(part)
                squares[:, head, rows] = torch.linalg.vector_norm(products, dim=-1).square_()
                absolute[:, head, rows] = torch.linalg.vector_norm(products, 1, -1)
        return Moments(squares, crossed, absolute)


def _powers(weights: Tensor, units: Tensor) -> Tensor:
    """Σ w u^n of units of each pair of a row and a key, [heads, rows, 4]."""
    powers, sums = weights, []
    for _ in range(4):
        powers = powers * units
        sums.append(powers.sum(-1))
    return torch.stack(sums, -1)


def _total_rows(
    exponents: Tensor, weights: Tensor, powers: Tensor, law: ScoreLaw, variance: Tensor
) -> RowTotals:
    """The sums of some rows, of which ``powers`` [heads, rows, 4] are made; their variances are written to
    ``variance``.
    """
    hidden = hidden_keys(law.seen, law.first_key, weights.shape[2])

    def seen(of: Tensor) -> Tensor:
        return of if hidden is None else of.masked_fill_(hidden, 0.0)

    distance = seen(law.maximum[:, :, None] - exponents)
    weighted = weights * distance
    of_distance = weighted.sum(-1), weighted.mul_(distance).sum(-1)
    counts = alike_counts(exponents, law)
    least = law.least[:, :, None]
    squares = torch.mul(weights, weights, out=weighted)
    moved = seen(torch.mul(weights, law.relative, out=distance).add_(least)).square_()
    torch.mul(moved, 1 / 3, out=variance).add_(squares, alpha=law.of_exponential).mul_(counts)
    u1, u2, u3, u4 = powers.unbind(-1)
    most, heaviest = weights.max(-1)
    return RowTotals(
        mass=weights.sum(-1),
        distance=of_distance[0],
        distance_squared=of_distance[1],
        units=(u1, u2, u3, u4),
        squares=squares.sum(-1),
        squares_alike=squares.mul_(counts).sum(-1),
        bias=torch.minimum(weights, least, out=moved).sum(-1),
        additions=_additions(weights, law, hidden),
        heaviest=heaviest,
        is_tied=(weights >= (most * TIED)[:, :, None]).sum(-1) > 1,
        variance=variance,
    )


def _additions(weights: Tensor, law: ScoreLaw, hidden: Tensor | None) -> Tensor:
    """Tiles are those of 64 rows together, from the first key that any of them sees to the last; not
    those of which none sees a key.
    """
    seen = law.seen.of_groups()
    rows, keys = weights.shape[1:]
    tiles = max(1, -(-int(seen.count.max()) // GROUP_ROWS))
    starts = seen.begin[:, None] + GROUP_ROWS * torch.arange(tiles, device=weights.device)
    sizes = (seen.end[:, None] - starts).clamp(0, GROUP_ROWS)
    last = (starts + sizes - law.first_key).clamp(0, keys)
    if law.seen.holes is not None:
        sizes = sizes * _tiles_seen(hidden, (starts - law.first_key).clamp(0, keys), last)
    upto = weights.cumsum(-1).gather(-1, (last - 1).clamp(min=0).expand(weights.shape[0], rows, -1))
    mass = kept_where(last > 0, upto)
    at_most = (mass * GROWN).clamp(max=1)
    return kept_where(mass > 0, sizes * at_most).sum(-1)


def _tiles_seen(hidden: Tensor | None, first: Tensor, last: Tensor) -> Tensor:
    """Whether any row of the group sees a key of a tile, [rows, tiles]; tiles are keys first … last - 1."""
    if hidden is None:
        return torch.ones_like(first, dtype=torch.bool)
    before = torch.nn.functional.pad((~hidden).long().cumsum(-1), (1, 0))
    own = (before.gather(1, last) > before.gather(1, first)).long()
    padded = torch.nn.functional.pad(own, (0, 0, 0, -own.shape[0] % GROUP_ROWS))
    of_groups = padded.unflatten(0, (-1, GROUP_ROWS)).amax(1) > 0
    return of_groups.repeat_interleave(GROUP_ROWS, 0)[: own.shape[0]]
