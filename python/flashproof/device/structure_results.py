"""Results of the structure tests, and how far their statistics may deviate."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .problem import Shape
from .spread import TILE_ROWS

MARGIN = 1 - 2.0**-10
"""Of a limit no statistic relies on the rest."""
OPEN_MARGIN = 0.5
"""The same of a single row of which fp64 leaves a direction open."""
_ENTRIES = 13
"""Tests by scope and instrument that the rate of false alarms is divided among:
``structureLimits`` of ``src/audit/structure/structure-entries.ts``.
"""


def alarm_deviations(count: int, rate: float) -> float:
    """Standard deviations that a sub-Gaussian statistic exceeds with this probability in any of
    ``count`` tests.
    """
    return math.sqrt(2 * math.log(2 * max(count, 1) / rate))


@dataclass(frozen=True)
class StructureLimits:
    """How far statistics may deviate."""

    share: float
    """The probability of a false alarm of one test and scope."""
    row: float
    tile: float
    head: float


def structure_limits(shape: Shape, rate: float) -> StructureLimits:
    """The limits of a whole problem, for a probability of a false alarm in all structure tests."""
    heads = shape.batch * shape.heads
    share = rate / _ENTRIES
    tiles = -(-shape.queries // TILE_ROWS)
    return StructureLimits(
        share,
        alarm_deviations(heads * shape.queries, share),
        alarm_deviations(heads * tiles, share),
        alarm_deviations(heads, share),
    )


@dataclass(frozen=True)
class StructureResult:
    """One statistic, and a limit that is no more than the command line's."""

    test: str
    scope: str
    head: int
    """Counted over [batch, heads]."""
    first_row: int
    statistic: float
    threshold: float
    first_key: int | None = None
    """Of a tile of keys."""

    @property
    def ratio(self) -> float:
        """The share of the limit that is used."""
        if self.statistic == 0:
            return 0.0
        return abs(self.statistic) / self.threshold if self.threshold != 0 else math.inf


@dataclass
class StructureFindings:
    """Per test and scope the result that uses most of its limit."""

    results: dict[tuple[str, str], StructureResult] = field(default_factory=dict)
    open_heads: set[int] = field(default_factory=set)
    """Heads of which a statistic is not within its limit."""

    def meet(self, result: StructureResult) -> None:
        """Meets a result."""
        if not result.ratio <= MARGIN:
            self.open_heads.add(result.head)
        known = self.results.get((result.test, result.scope))
        if known is None or not result.ratio <= known.ratio:
            self.results[result.test, result.scope] = result
