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
from .instruments import BIAS, LIGHT_SCALE, ROOT3, SCALE, TRUNCATION, Instruments
from .kernel_rows import KernelRows
from .premises import Premises
from .problem import AttentionProblem, Shape
from .projections import ProjectedProblem, RowSums, project_rows
from .spread import TILE_ROWS
from .structure_results import (
    MARGIN,
    OPEN_MARGIN,
    StructureFindings,
    StructureResult,
    structure_limits,
)
from .weights import HeadTensors, WeightBlock

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

    def collect(
        self,
        head: HeadTensors,
        block: WeightBlock,
        kernel: KernelRows,
        instruments: Instruments,
        out: Tensor,
        lse: tuple[Tensor, NumberFormat] | None,
    ) -> RowSums:
        """The sums of a block's rows: see ``project_rows``."""
        return project_rows(self._judged, head, block, kernel, instruments, out, lse)

    def judge_head(self, index: int, parts: list[RowSums]) -> None:
        """Judges the rows of a head, its tiles, and itself."""
        rows = RowSums.joined(parts)
        if bool(rows.is_at_half.any()):
            self.findings.open_heads.add(index)
        self._judge_rows(index, rows)
        rows = rows.surely()
        self._judge_sums(
            "tile", (SCALE, LIGHT_SCALE, BIAS), self.limits.tile, index, rows.tiles(TILE_ROWS)
        )
        everything = rows.tiles(self._shape.queries)
        tests = (SCALE, LIGHT_SCALE, BIAS, TRUNCATION)
        self._judge_sums("head", tests, self.limits.head, index, everything)
        self._judge_dispersion(index, rows)
        self._judge_lse(index, rows)

    def _judge_rows(self, index: int, rows: RowSums) -> None:
        tolerance = _tolerance(rows, self.limits.row, 1.0)
        sizes = rows.signed.abs() + rows.slack
        # Rows that are open are held to less: the one that is worst of all is reported, any
        # that fails counts.
        margins = torch.where(rows.is_open, OPEN_MARGIN, MARGIN)
        for d in (SCALE, BIAS):
            ratios = _ratios(sizes[d], tolerance[d])
            at = ratios.argmax()
            fails = (ratios > margins).any().double()
            found = [fails, at.double(), rows.signed[d, at], rows.norm[d, at], tolerance[d, at]]
            failed, row, signed, norm, limit = torch.stack(found).tolist()
            if failed:
                self.findings.open_heads.add(index)
            self._meet(d, "row", index, int(row), (signed, norm, limit))

    def _judge_sums(
        self, scope: str, tests: tuple[int, ...], deviations: float, index: int, sums: RowSums
    ) -> None:
        tolerance = (_tolerance(sums, deviations, _MEAN_SQUARED_HALF_ULP) - sums.slack).clamp(min=0)
        tolerance[LIGHT_SCALE] *= torch.where(sums.is_tied > 0, OPEN_MARGIN, 1.0)
        numbers = torch.stack([sums.signed, sums.norm, tolerance], -1).tolist()
        for d in tests:
            for place, (signed, norm, limit) in enumerate(numbers[d]):
                self._meet(d, scope, index, place * TILE_ROWS, (signed, norm, limit))

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

    def _judge_dispersion(self, index: int, rows: RowSums) -> None:
        """How far the slopes of rows scatter: ``SlopeDispersion``.

        ``rows`` are those of ``surely``; rows that are open may have any direction.
        """
        weight = torch.where(rows.is_open, rows.known_norm[SCALE], rows.norm[SCALE])
        counts = weight > 0
        inverse = torch.where(counts, 1 / torch.where(counts, weight, 1.0), 0.0)
        each = (_MEAN_SQUARED_HALF_ULP * rows.weights + rows.others + rows.outputs)[SCALE] * inverse
        found = (rows.signed[SCALE].abs() + rows.slack[SCALE]).square() * inverse
        sums = [
            each.sum(),
            each.square().sum(),
            each.max(),
            (rows.systematic[SCALE].square() * inverse).sum(),
            found.sum(),
            torch.where(counts, weight, 0.0).sum(),
            (~counts & rows.is_open & (rows.loose[SCALE] > 0)).any().double(),
        ]
        mean, squares, largest, systematic, scatter, total, unknown = torch.stack(sums).tolist()
        if unknown:
            self.findings.open_heads.add(index)
        if total == 0:
            return
        t = math.log(max(self._shape.batch * self._shape.heads, 1) / self.limits.share)
        most = mean + 2 * math.sqrt(squares * t) + 2 * largest * t
        threshold = (math.sqrt(most) + math.sqrt(systematic)) / math.sqrt(total)
        statistic = math.sqrt(scatter / total)
        self.findings.meet(StructureResult("dispersion", "head", index, 0, statistic, threshold))

    def _judge_lse(self, index: int, rows: RowSums) -> None:
        """The mean error of the LSE: ``testMeanLse``."""
        count, error, systematic, random, distance = rows.lse
        sums = [count, error, systematic - distance, random.square()]
        number, signed, allowed, squares = torch.stack(sums).sum(1).tolist()
        if number == 0:
            return
        amplitude = self.limits.head / ROOT3 * math.sqrt(squares) / number
        threshold = allowed / number + self._premises.exponential / 8 + amplitude
        result = StructureResult("lse-mean", "head", index, 0, signed / number, max(threshold, 0.0))
        self.findings.meet(result)


def _ratios(sizes: Tensor, limits: Tensor) -> Tensor:
    return torch.where(sizes == 0, 0.0, sizes / limits)
