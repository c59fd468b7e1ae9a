"""What roundings leave near zero and a bug does not: sums of a kernel's error over rows, tiles of
128 queries and heads.

The tests are those of ``src/audit/structure``, whose proofs are in docs/theory/bounds.md, "The
structure". Limits here count all roundings as independent and leave out what weights, rows or
outputs may have in common, so that none is larger than the command line's: what is within them is
within those. What is not is left to the command line.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .formats import NumberFormat
from .instruments import BIAS, LIGHT_SCALE, ROOT3, SCALE, TRUNCATION
from .premises import Premises
from .problem import AttentionProblem, Shape
from .projections import ProjectedProblem, RowSums, project_rows
from .selection import kept_where, zero_where
from .spread import TILE_ROWS
from .structure_results import (
    MARGIN,
    OPEN_MARGIN,
    StructureFindings,
    StructureResult,
    structure_limits,
)
from .tested_rows import TestedRows

_MEAN_SQUARED_HALF_ULP = sum(4 ** (-i / 32) for i in range(32)) / 32
"""The mean square of half an ulp of numbers, relative to its largest: at least this for the worst
common offset.
"""
_TESTS = {SCALE: "scale", LIGHT_SCALE: "scale", BIAS: "bias", TRUNCATION: "truncation"}


def _tolerance(sums: RowSums, deviations: float, share: float) -> Tensor:
    """What |Σ r·X| of rows exceeds with probability at most 2·exp(-deviations²/2), or less:
    ``leastTolerance``.
    """
    options = []
    for of_weights, weights in ((0.0, share * sums.weights), (sums.weights_worst, 0.0)):
        for of_outputs, outputs in ((0.0, sums.outputs), (sums.output_worst, sums.accumulated)):
            options.append(
                of_weights + of_outputs + deviations * (sums.others + weights + outputs).sqrt()
            )
    least: Tensor = torch.stack(options).amin(0)
    return sums.systematic + least


class StructureTest:
    """Collects the sums of a problem, head after head, and judges them."""

    def __init__(
        self, problem: AttentionProblem, shape: Shape, premises: Premises, rate: float
    ) -> None:
        """``rate`` is the probability of a false alarm in all structure tests."""
        self.limits = structure_limits(shape, rate)
        self.findings = StructureFindings()
        self._judged = ProjectedProblem(problem, shape, premises)
        self._shape, self._premises = shape, premises

    def collect(self, tested: TestedRows, lse: tuple[Tensor, NumberFormat] | None) -> RowSums:
        """The sums of a block's rows, [.., heads, rows of each]: see ``project_rows``."""
        rows = project_rows(self._judged, tested, lse)
        return rows.mapped(lambda x: x.unflatten(-1, tested.block.weights.shape[:2]))

    def judge_heads(self, first_head: int, parts: list[RowSums]) -> None:
        """Judges the rows of heads, their tiles, and the heads."""
        rows = RowSums.joined(parts)
        for head in rows.is_at_half.any(1).nonzero()[:, 0].tolist():
            self.findings.open_heads.add(first_head + head)
        self._judge_rows(first_head, rows)
        rows = rows.surely()
        self._judge_sums(
            "tile", (SCALE, LIGHT_SCALE, BIAS), self.limits.tile, first_head, rows.tiles(TILE_ROWS)
        )
        everything = rows.tiles(self._shape.queries)
        tests = (SCALE, LIGHT_SCALE, BIAS, TRUNCATION)
        self._judge_sums("head", tests, self.limits.head, first_head, everything)
        self._judge_dispersion(first_head, rows)
        self._judge_lse(first_head, rows)

    def _judge_rows(self, first_head: int, rows: RowSums) -> None:
        tolerance = _tolerance(rows, self.limits.row, 1.0)
        sizes = rows.signed.abs() + rows.slack
        # Rows that are open are held to less: the one that is worst of all is reported, any
        # that fails counts.
        margins = MARGIN - (MARGIN - OPEN_MARGIN) * rows.is_open.double()
        for d in (SCALE, BIAS):
            ratios = _ratios(sizes[d], tolerance[d])
            at = ratios.argmax(1, keepdim=True)
            fails = (ratios > margins).any(1).double()
            worst = [x[d].gather(1, at)[:, 0] for x in (rows.signed, rows.norm, tolerance)]
            found = torch.stack([fails, at[:, 0].double(), *worst], 1).tolist()
            for head, (failed, row, signed, norm, limit) in enumerate(found, first_head):
                if failed:
                    self.findings.open_heads.add(head)
                self._meet(d, "row", head, int(row), (signed, norm, limit))

    def _judge_sums(
        self, scope: str, tests: tuple[int, ...], deviations: float, first_head: int, sums: RowSums
    ) -> None:
        tolerance = (_tolerance(sums, deviations, _MEAN_SQUARED_HALF_ULP) - sums.slack).clamp(min=0)
        tolerance[LIGHT_SCALE] *= 1 - (1 - OPEN_MARGIN) * (sums.is_tied > 0).double()
        numbers = torch.stack([sums.signed, sums.norm, tolerance], -1).tolist()
        for d in tests:
            for head, of_head in enumerate(numbers[d], first_head):
                for place, (signed, norm, limit) in enumerate(of_head):
                    self._meet(d, scope, head, place * TILE_ROWS, (signed, norm, limit))

    def _meet(
        self, d: int, scope: str, index: int, first: int, numbers: tuple[float, float, float]
    ) -> None:
        signed, norm, tolerance = numbers
        if norm == 0 or not math.isfinite(norm):
            return
        result = StructureResult(
            _TESTS[d], scope, index, first, signed / norm, tolerance / abs(norm)
        )
        self.findings.meet(result)

    def _judge_dispersion(self, first_head: int, rows: RowSums) -> None:
        """How far the slopes of rows scatter: ``SlopeDispersion``.

        ``rows`` are those of ``surely``; rows that are open may have any direction.
        """
        weight = torch.where(rows.is_open, rows.known_norm[SCALE], rows.norm[SCALE])
        counts = weight > 0
        inverse = kept_where(counts, 1 / weight.masked_fill(~counts, 1.0))
        each = (_MEAN_SQUARED_HALF_ULP * rows.weights + rows.others + rows.outputs)[SCALE] * inverse
        found = (rows.signed[SCALE].abs() + rows.slack[SCALE]).square() * inverse
        sums = [
            each.sum(1),
            each.square().sum(1),
            each.amax(1),
            (rows.systematic[SCALE].square() * inverse).sum(1),
            found.sum(1),
            kept_where(counts, weight).sum(1),
            (~counts & rows.is_open & (rows.loose[SCALE] > 0)).any(1).double(),
        ]
        for head, numbers in enumerate(torch.stack(sums, 1).tolist(), first_head):
            self._meet_dispersion(head, numbers)

    def _meet_dispersion(self, head: int, numbers: list[float]) -> None:
        mean, squares, largest, systematic, scatter, total, unknown = numbers
        if unknown:
            self.findings.open_heads.add(head)
        if total == 0:
            return
        t = math.log(max(self._shape.batch * self._shape.heads, 1) / self.limits.share)
        most = mean + 2 * math.sqrt(squares * t) + 2 * largest * t
        threshold = (math.sqrt(most) + math.sqrt(systematic)) / math.sqrt(total)
        statistic = math.sqrt(scatter / total)
        self.findings.meet(StructureResult("dispersion", "head", head, 0, statistic, threshold))

    def _judge_lse(self, first_head: int, rows: RowSums) -> None:
        """The mean error of the LSE: ``testMeanLse``."""
        count, error, systematic, random, distance = rows.lse
        sums = torch.stack([count, error, systematic - distance, random.square()]).sum(2)
        for head, (number, signed, allowed, squares) in enumerate(sums.T.tolist(), first_head):
            if number == 0:
                continue
            amplitude = self.limits.head / ROOT3 * math.sqrt(squares) / number
            threshold = allowed / number + self._premises.exponential / 8 + amplitude
            result = StructureResult(
                "lse-mean", "head", head, 0, signed / number, max(threshold, 0.0)
            )
            self.findings.meet(result)


def _ratios(sizes: Tensor, limits: Tensor) -> Tensor:
    return zero_where(sizes == 0, sizes / limits)
