"""Sums of a gradient's errors that roundings leave near zero and a bug does not:
``src/audit/gradients/structure``. Limits are surely no more than there: rows count as independent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..spread import TILE_ROWS
from .common import CommonErrors
from .limits import GradientLimits

_SURE_SUMS = 1 - 2.0**-12
"""Of a tolerance nobody relies on the rest, so that fp64 decides nothing."""
_OWN_ERROR = 2.0**-41


@dataclass(frozen=True)
class JudgedRows:
    """A gradient of one head, [rows, dim]: what was given, what is exact to within a radius, and
    limits.
    """

    given: Tensor
    exact: Tensor
    radius: Tensor
    limits: GradientLimits


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
        self, test: str, scope: str, head: int, signed: Tensor, tolerance: Tensor, step: int
    ) -> bool:
        """Meets some sums; whether all are surely within. ``step`` is what a place counts, in rows;
        0 for columns.
        """
        ratios = torch.where(signed == 0, 0.0, signed.abs() / (tolerance * _SURE_SUMS).clamp(min=0))
        at = ratios.argmax()
        place, ratio = torch.stack([at.double(), ratios[at]]).tolist()
        known = self.results.get((test, scope))
        if known is None or not ratio <= known.ratio:
            first = int(place) * step
            column = int(place) if step == 0 else -1
            self.results[test, scope] = SumResult(ratio, head, first, column)
        return bool(ratio <= 1)

    def judge(self, name: str, head: int, rows: JudgedRows, common: CommonErrors | None) -> bool:
        """Judges the slopes of tiles and of a head on the exact gradient, and the sums of its
        columns; whether all are surely within. ``common`` is of dK or dV.
        """
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
        )
        longest = x.square().sum(1).sqrt()
        padding = -x.shape[0] % TILE_ROWS
        padded = torch.nn.functional.pad(of_rows, (0, padding)).reshape(3, -1, TILE_ROWS)
        of_tiles = torch.nn.functional.pad(longest, (0, padding)).view(-1, TILE_ROWS).amax(1)
        norm = 0.0 if common is None else common.norm
        is_within = self._meet_slope("tile", head, padded.sum(2), (of_tiles * norm).square())
        of_head = 0.0
        if common is not None:
            of_head = common.of_weights if name == "dk" else float(common.columns.sum())
        is_within &= self._meet_slope(
            "head", head, of_rows.sum(1, keepdim=True), longest.max().square() * of_head
        )
        columns = 0.0 if common is None else common.columns
        squares = limits.deviation.square().sum(0) + columns
        tolerance = (limits.systematic - rows.radius).sum(0) + self.deviations * squares.sqrt()
        return is_within & self.meet("sum", "head", head, errors.sum(0), tolerance, 0)

    def _meet_slope(self, scope: str, head: int, sums: Tensor, common: Tensor) -> bool:
        signed, systematic, squares = sums
        tolerance = systematic + self.deviations * (squares + common).sqrt()
        return self.meet("scale", scope, head, signed, tolerance, TILE_ROWS)


@dataclass
class Pairing:
    """⟨Q, dQ⟩ or ⟨K, dK⟩ of a head of K: ``pairingStatistics``."""

    total: float = 0.0
    sizes: float = 0.0
    systematic: float = 0.0
    squares: float = 0.0

    def add(self, rows: JudgedRows, tensor: Tensor) -> None:
        """Adds a gradient of ``tensor``."""
        size, limits = tensor.abs(), rows.limits
        terms = rows.given * tensor
        sums = [
            terms.sum(),
            terms.abs().sum(),
            (limits.systematic * size).sum(),
            (limits.deviation * size).sum(1).square().sum(),
        ]
        total, sizes, systematic, squares = torch.stack(sums).tolist()
        self.total += total
        self.sizes += sizes
        self.systematic += systematic
        self.squares += squares


def judge_pairing(test: SumTest, head: int, queries: Pairing, keys: Pairing) -> bool:
    """Whether ⟨Q, dQ⟩ and ⟨K, dK⟩ are surely as near as roundings leave them."""
    of_both = (
        one.systematic + test.deviations * one.squares**0.5 + _OWN_ERROR * one.sizes
        for one in (queries, keys)
    )
    difference = torch.tensor([queries.total - keys.total], dtype=torch.float64)
    tolerance = torch.tensor([sum(of_both)], dtype=torch.float64)
    return test.meet("pairing", "head", head, difference, tolerance, 1)
