"""What independent roundings add up to: elements, and root mean squares of tiles of 128 queries
and of heads.

``src/audit/spread-test.ts``; the proofs are in docs/bounds.md, "The spread".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .bounds import BlockBounds
from .elements import LimitTest, hold_against
from .limits import SURE, Limits
from .problem import Shape
from .weights import WeightBlock

TILE_ROWS = 128


@dataclass(frozen=True)
class SpreadResult:
    """The root mean square error of some rows of a head."""

    scope: str
    head: int
    first_row: int
    rows: int
    measured: float
    expected: float
    limit: float
    sure: bool
    """Whether it is within its limit, whatever fp64 leaves open."""

    @property
    def ratio(self) -> float:
        """The share of the limit that is used."""
        return 0.0 if self.measured == 0 else self.measured / self.limit


@dataclass(frozen=True)
class SpreadRates:
    """How far statistics may deviate, for a probability of a false alarm in all of a problem."""

    deviations: float
    tile: float
    head: float


def spread_rates(shape: Shape, false_alarm_rate: float) -> SpreadRates:
    """Half of the rate for the elements, a quarter each for tiles and heads, where two things may
    go wrong.
    """
    heads = shape.batch * shape.heads
    tiles = -(-shape.queries // TILE_ROWS)
    elements = heads * shape.queries * shape.v_dim
    return SpreadRates(
        math.sqrt(2 * math.log(4 * max(elements, 1) / false_alarm_rate)),
        math.log(8 * max(heads * tiles, 1) / false_alarm_rate),
        math.log(8 * max(heads, 1) / false_alarm_rate),
    )


@dataclass(frozen=True)
class _Energies:
    """Sums of squares over the columns of each row, [rows]."""

    measured: Tensor
    systematic: Tensor
    known: Tensor
    random: Tensor

    def rows(self, first: int, count: int) -> _Energies:
        pick = slice(first, first + count)
        return _Energies(
            self.measured[pick], self.systematic[pick], self.known[pick], self.random[pick]
        )


def _energies(errors: Tensor, limits: Limits, radius: Tensor) -> _Energies:
    known = limits.known.square()
    random = (limits.deviation.square() - known).clamp(min=0)
    systematic = (limits.systematic + radius).square()
    return _Energies(*(x.sum(1) for x in (errors.square(), systematic, known, random)))


def _most(energies: _Energies, unit: Tensor, t: float) -> tuple[float, float]:
    """The sum of squares that is exceeded with probability 2·e^-t, and its expectation.

    Hsu, Kakade and Zhang 2012, Theorem 2.1; rows of one unit count as one.
    """
    names, place = torch.unique(unit, return_inverse=True)
    random = torch.zeros(names.shape[0], dtype=torch.float64, device=unit.device).scatter_add_(
        0, place, energies.random
    )
    known = torch.zeros_like(random).scatter_add_(0, place, energies.known)
    all_known, all_random = float(known.sum()), float(random.sum())
    squares, products = float(random.square().sum()), float((known * random).sum())
    spread = all_random + 2 * math.sqrt(squares * t) + 2 * float(random.max()) * t
    most = all_known + 2 * math.sqrt(2 * t * products) + spread
    return (
        math.sqrt(most) + math.sqrt(float(energies.systematic.sum()))
    ) ** 2, all_known + all_random


@dataclass
class SpreadTest:
    """Collects what the spread of an output comes to, head after head."""

    shape: Shape
    rates: SpreadRates
    elements: LimitTest = field(default_factory=LimitTest)
    results: dict[str, SpreadResult] = field(default_factory=dict)
    """By scope the result that uses most of its limit."""
    open_heads: set[int] = field(default_factory=set)
    """Heads of which a tile or the whole is not surely within its limit."""
    measured: float = 0.0
    expected: float = 0.0

    def _limits(self, limits: Limits) -> Tensor:
        known = limits.known
        random = (limits.deviation.square() - known.square()).clamp(min=0)
        # No element is allowed less than if its known part were a random one of the row's size.
        of_row = known.square().mean(1, keepdim=True)
        deviations = self.rates.deviations
        spread = torch.maximum(
            known + deviations * random.sqrt(), deviations * (random + of_row).sqrt()
        )
        return torch.minimum(limits.total, limits.systematic + spread)

    def judge_block(
        self, block: WeightBlock, bounds: BlockBounds, out: Tensor, head: int
    ) -> tuple[Tensor, HeadEnergies]:
        """Tests the elements of a block; returns rows that are not surely within, and what tiles
        are judged by.
        """
        errors = (out - block.out).abs()
        radius = block.out_radius
        stated, sure = self._limits(bounds.stated) + radius, self._limits(bounds.sure)
        failing = hold_against(
            self.elements,
            errors,
            block.out_distance,
            (stated, sure),
            bounds.is_judged,
            (head, block.first_row),
        )
        energies = HeadEnergies(
            _energies(errors, bounds.stated, radius),
            _energies(errors + block.out_distance, bounds.sure, torch.zeros_like(radius)),
        )
        return failing, energies

    def judge_head(self, head: int, blocks: list[HeadEnergies], unit: Tensor) -> None:
        """Judges tiles and the head, by the energies of its blocks and its rows' units."""
        stated = _joined([block.stated for block in blocks])
        sure = _joined([block.sure for block in blocks])
        queries = self.shape.queries
        spans = [
            ("tile", first, min(TILE_ROWS, queries - first))
            for first in range(0, queries, TILE_ROWS)
        ]
        for scope, first, rows in [*spans, ("head", 0, queries)]:
            result = self._judge(scope, head, first, rows, stated, sure, unit)
            if not result.sure:
                self.open_heads.add(head)
            if scope not in self.results or result.ratio > self.results[scope].ratio:
                self.results[scope] = result
        self.measured += float(stated.measured.sum())
        self.expected += float((stated.known + stated.random).sum())

    def _judge(
        self,
        scope: str,
        head: int,
        first: int,
        rows: int,
        stated: _Energies,
        sure: _Energies,
        unit: Tensor,
    ) -> SpreadResult:
        t = self.rates.tile if scope == "tile" else self.rates.head
        elements = rows * self.shape.v_dim
        units = unit[first : first + rows]
        of_rows = stated.rows(first, rows)
        most, expected = _most(of_rows, units, t)
        measured = float(of_rows.measured.sum())
        sure_rows = sure.rows(first, rows)
        least, _ = _most(sure_rows, units, t)
        found = float(sure_rows.measured.sum())
        return SpreadResult(
            scope,
            head,
            first,
            rows,
            math.sqrt(measured / elements),
            math.sqrt(expected / elements),
            math.sqrt(most / elements),
            measured == 0 or found <= least * (1 - 4 * SURE),
        )


@dataclass(frozen=True)
class HeadEnergies:
    """The energies of a block's rows: as stated, and those that limits are surely no less than."""

    stated: _Energies
    sure: _Energies


def _joined(parts: list[_Energies]) -> _Energies:
    return _Energies(
        torch.cat([part.measured for part in parts]),
        torch.cat([part.systematic for part in parts]),
        torch.cat([part.known for part in parts]),
        torch.cat([part.random for part in parts]),
    )
