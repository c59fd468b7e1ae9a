"""Sums of a gradient's errors that roundings leave near zero and a bug does not:
``src/audit/gradients/structure``. Limits are surely no more than there: rows count as independent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..selection import zero_where
from ..spread import TILE_ROWS
from .common import CommonErrors
from .limits import GradientLimits

_SURE_SUMS = 1 - 2.0**-12
"""Of a tolerance nobody relies on the rest, so that fp64 decides nothing."""
_OWN_ERROR = 2.0**-41


@dataclass(frozen=True)
class JudgedRows:
    """A gradient of some heads, [rows of all heads, dim]: what was given, what is exact to within a radius,
    and limits.
    """

    heads: range
    given: Tensor
    exact: Tensor
    radius: Tensor
    limits: GradientLimits

    def by_head(self, x: Tensor) -> Tensor:
        """Numbers of the rows as [heads, rows of each, …]."""
        return x.unflatten(0, (len(self.heads), -1))


@dataclass
class SumResult:
    """The sum that uses most of its tolerance."""

    ratio: float = 0.0
    head: int = -1
    first_row: int = -1
    column: int = -1


@dataclass
class SumTest:
    """How sums of errors stand against their tolerances."""

    deviations: float
    results: dict[tuple[str, str], SumResult] = field(default_factory=dict)
    """By test (scale, sum, pairing) and scope."""

    def meet(
        self,
        test: str,
        scope: str,
        heads: range,
        sums: tuple[Tensor, Tensor],
        step: int,
    ) -> set[int]:
        """Meets sums and their tolerances, [heads, places]; returns heads of which not all are surely
        within. ``step`` is what a place counts, in rows; 0 for columns.
        """
        signed, tolerance = sums
        ratios = zero_where(signed == 0, signed.abs() / (tolerance * _SURE_SUMS).clamp(min=0))
        at = ratios.argmax(1, keepdim=True)
        numbers = torch.cat([at.double(), ratios.gather(1, at)], 1).tolist()
        for head, (place, ratio) in zip(heads, numbers, strict=True):
            known = self.results.get((test, scope))
            if known is None or not ratio <= known.ratio:
                first = int(place) * step
                column = int(place) if step == 0 else -1
                self.results[test, scope] = SumResult(ratio, head, first, column)
        return {head for head, (_, x) in zip(heads, numbers, strict=True) if not x <= 1}

    def judge(self, name: str, rows: JudgedRows, common: CommonErrors | None) -> set[int]:
        """Judges the slopes of tiles and of heads on the exact gradient, and the sums of columns; returns
        heads of which not all are surely within. ``common`` is of dK or dV.
        """
        heads = rows.heads
        x, errors, limits = rows.exact, rows.given - rows.exact, rows.limits
        size = x.abs()
        # The command line's exact values are others, and so are its patterns.
        slack = (2 * rows.radius * (size + errors.abs())).sum(1)
        of_rows = torch.stack(
            [
                (errors * x).sum(1),
                (limits.systematic * size).sum(1) - slack,
                (limits.deviation * size).sum(1).square(),
            ]
        ).unflatten(1, (len(heads), -1))
        longest = rows.by_head(x.square().sum(1).sqrt())
        padding = -longest.shape[1] % TILE_ROWS
        padded = torch.nn.functional.pad(of_rows, (0, padding)).unflatten(2, (-1, TILE_ROWS))
        of_tiles = torch.nn.functional.pad(longest, (0, padding)).unflatten(1, (-1, TILE_ROWS))
        none = torch.zeros_like(longest[:, 0])
        norm, of_head, columns = none, none, none[:, None]
        if common is not None:
            norm, columns = common.norm, common.columns
            of_head = common.of_weights if name == "dk" else columns.sum(1)
        common_tiles = (of_tiles.amax(2) * norm[:, None]).square()
        beyond = self._meet_slope("tile", heads, padded.sum(3), common_tiles)
        of_heads = (longest.amax(1).square() * of_head)[:, None]
        beyond |= self._meet_slope("head", heads, of_rows.sum(2, keepdim=True), of_heads)
        squares = rows.by_head(limits.deviation.square()).sum(1) + columns
        systematic = rows.by_head(limits.systematic - rows.radius).sum(1)
        tolerance = systematic + self.deviations * squares.sqrt()
        sums = rows.by_head(errors).sum(1)
        return beyond | self.meet("sum", "head", heads, (sums, tolerance), 0)

    def _meet_slope(self, scope: str, heads: range, sums: Tensor, common: Tensor) -> set[int]:
        signed, systematic, squares = sums
        tolerance = systematic + self.deviations * (squares + common).sqrt()
        return self.meet("scale", scope, heads, (signed, tolerance), TILE_ROWS)


@dataclass
class Pairing:
    """⟨Q, dQ⟩ or ⟨K, dK⟩ of heads of K, [heads of K, 4]: its total, the sum of sizes, what is systematic, the
    sum of squares. ``pairingStatistics``.
    """

    sums: Tensor

    @classmethod
    def nothing(cls, like: Tensor) -> Pairing:
        """Before any gradient, of those of [heads of K, …]."""
        return cls(like.new_zeros(like.shape[0], 4))

    def add(self, rows: JudgedRows, tensor: Tensor) -> None:
        """Adds a gradient of ``tensor``, whose rows those are."""
        size, limits = tensor.abs(), rows.limits
        terms = rows.given * tensor
        sums = [
            terms.sum(1),
            terms.abs().sum(1),
            (limits.systematic * size).sum(1),
            (limits.deviation * size).sum(1).square(),
        ]
        self.sums += rows.by_head(torch.stack(sums, 1)).sum(1)


def judge_pairing(test: SumTest, heads: range, queries: Pairing, keys: Pairing) -> set[int]:
    """Heads of K whose ⟨Q, dQ⟩ and ⟨K, dK⟩ are not surely as near as roundings leave them."""
    difference = queries.sums[:, 0] - keys.sums[:, 0]

    def allowed(sums: Tensor) -> Tensor:
        _, sizes, systematic, squares = sums.unbind(1)
        return systematic + test.deviations * squares.sqrt() + _OWN_ERROR * sizes

    tolerance = allowed(queries.sums) + allowed(keys.sums)
    return test.meet("pairing", "head", heads, (difference[:, None], tolerance[:, None]), 1)
