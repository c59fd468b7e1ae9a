"""What independent roundings add up to: elements, and root mean squares of tiles of 128 queries
and of heads.

``src/audit/spread-test.ts``; the proofs are in docs/theory/bounds.md, "The spread".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol

import torch
from torch import Tensor

from .bounds import BlockBounds
from .elements import LimitTest, Place, hold_against
from .limits import SURE
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
        if self.measured == 0:
            return 0.0
        return self.measured / self.limit if self.limit > 0 else math.inf


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


class SpreadLimits(Protocol):
    """What errors spread by, [rows, columns]: of ``Limits``, or of a gradient's."""

    @property
    def total(self) -> Tensor:
        """The worst case."""

    @property
    def systematic(self) -> Tensor:
        """What of the error does not average out."""

    @property
    def known(self) -> Tensor:
        """The error of elements whose rounding is known; else 0."""

    @property
    def deviation(self) -> Tensor:
        """√ of the variance of the whole error, ``known`` included."""


@dataclass(frozen=True)
class Energies:
    """Sums of squares over the columns of each row, [rows]."""

    measured: Tensor
    systematic: Tensor
    known: Tensor
    random: Tensor


def energies_of(errors: Tensor, limits: SpreadLimits, radius: Tensor) -> Energies:
    """The sums of the rows of ``errors`` [rows, columns]; ``radius`` is systematic too."""
    known = limits.known.square()
    random = (limits.deviation.square() - known).clamp(min=0)
    systematic = (limits.systematic + radius).square()
    return Energies(*(x.sum(1) for x in (errors.square(), systematic, known, random)))


def _most(
    energies: Energies, unit: Tensor, span: Tensor, spans: int, t: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Of each span of rows the sum of squares that is exceeded with probability 2·e^-t, its
    expectation, and what was measured, [spans].

    Hsu, Kakade and Zhang 2012, Theorem 2.1; rows of one unit count as one. ``unit`` and ``span``
    are numbers of each row.
    """
    names, place = torch.unique(span * (int(unit.max()) + 1) + unit, return_inverse=True)
    of_names = torch.zeros_like(names).scatter_(0, place, span)

    def by(index: Tensor, count: int, x: Tensor) -> Tensor:
        sums = torch.zeros(count, dtype=torch.float64, device=x.device)
        return sums.scatter_add_(0, index, x)

    def of_spans(x: Tensor) -> Tensor:
        return by(of_names, spans, x)

    units = names.shape[0]
    random, known = (by(place, units, x) for x in (energies.random, energies.known))
    largest = torch.zeros(spans, dtype=torch.float64, device=unit.device)
    largest.scatter_reduce_(0, of_names, random, "amax")
    all_known, all_random = of_spans(known), of_spans(random)
    spread = all_random + 2 * (of_spans(random.square()) * t).sqrt() + 2 * largest * t
    most = all_known + 2 * (2 * t * of_spans(known * random)).sqrt() + spread
    systematic = by(span, spans, energies.systematic)
    return (
        (most.sqrt() + systematic.sqrt()).square(),
        all_known + all_random,
        by(span, spans, energies.measured),
    )


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

    def limits_of(self, limits: SpreadLimits) -> Tensor:
        """How far each element's error spreads at most, [rows, columns]."""
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
        self, block: WeightBlock, bounds: BlockBounds, out: Tensor, place: Place
    ) -> tuple[Tensor, HeadEnergies]:
        """Tests the elements of a block; returns rows that are not surely within, and what tiles
        are judged by.
        """
        errors = (out - block.out).abs()
        radius = block.out_radius
        stated, sure = self.limits_of(bounds.stated) + radius, self.limits_of(bounds.sure)
        failing = hold_against(
            self.elements,
            errors,
            block.out_distance,
            (stated, sure),
            bounds.is_judged,
            place,
        )
        energies = HeadEnergies(
            energies_of(errors, bounds.stated, radius),
            energies_of(errors + block.out_distance, bounds.sure, torch.zeros_like(radius)),
        )
        return failing, energies

    def judge_heads(self, heads: range, energies: HeadEnergies, unit: Tensor) -> None:
        """Judges tiles and heads, by the energies of their rows [rows], head by head, and the rows'
        units.
        """
        queries = self.shape.queries
        row = torch.arange(unit.shape[0], device=unit.device)
        head, query = row // queries, row % queries
        tiles = -(-queries // TILE_ROWS)
        self._judge("tile", heads, energies, unit, head * tiles + query // TILE_ROWS)
        self._judge("head", heads, energies, unit, head)
        stated = energies.stated
        self.measured += float(stated.measured.sum())
        self.expected += float((stated.known + stated.random).sum())

    def _judge(
        self, scope: str, heads: range, energies: HeadEnergies, unit: Tensor, span: Tensor
    ) -> None:
        """Judges all spans of rows of one scope."""
        queries = self.shape.queries
        rows = TILE_ROWS if scope == "tile" else queries
        t = self.rates.tile if scope == "tile" else self.rates.head
        of_head = -(-queries // rows)
        spans = unit.shape[0] // queries * of_head
        of_stated = _most(energies.stated, unit, span, spans, t)
        least, _, found = _most(energies.sure, unit, span, spans, t)
        numbers = torch.stack([*of_stated, least, found], 1).tolist()
        for place, (most, expected, measured, least_most, most_found) in enumerate(numbers):
            head, first = heads[place // of_head], place % of_head * rows
            count = min(rows, queries - first)
            elements = count * self.shape.v_dim
            result = SpreadResult(
                scope,
                head,
                first,
                count,
                math.sqrt(measured / elements),
                math.sqrt(expected / elements),
                math.sqrt(most / elements),
                measured == 0 or most_found <= least_most * (1 - 4 * SURE),
            )
            if not result.sure:
                self.open_heads.add(head)
            if scope not in self.results or result.ratio > self.results[scope].ratio:
                self.results[scope] = result


@dataclass(frozen=True)
class HeadEnergies:
    """The energies of a block's rows: as stated, and those that limits are surely no less than."""

    stated: Energies
    sure: Energies

    @classmethod
    def joined(cls, parts: Sequence[HeadEnergies], heads: int) -> HeadEnergies:
        """Blocks of rows of so many heads as the rows of the heads, head by head."""

        def of(energies: list[Energies]) -> Energies:
            def member(name: str) -> Tensor:
                rows = [getattr(x, name).unflatten(0, (heads, -1)) for x in energies]
                return torch.cat(rows, 1).flatten()

            return Energies(*(member(one.name) for one in fields(Energies)))

        return cls(of([part.stated for part in parts]), of([part.sure for part in parts]))
