"""What roundings leave near zero and a bug does not: sums of a kernel's error over rows, tiles of
128 queries and heads.

The tests are those of ``src/audit/structure``, whose proofs are in docs/bounds.md, "The
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
        self._judge_rows(index, rows)
        queries = self._shape.queries
        for first in range(0, queries, TILE_ROWS):
            tile = rows.rows(first, min(TILE_ROWS, queries - first)).summed()
            self._judge_sum(
                "tile", (SCALE, LIGHT_SCALE, BIAS), self.limits.tile, index, first, tile
            )
        self._judge_sum(
            "head",
            (SCALE, LIGHT_SCALE, BIAS, TRUNCATION),
            self.limits.head,
            index,
            0,
            rows.summed(),
        )
        self._judge_dispersion(index, rows)
        self._judge_lse(index, rows)

    def _judge_rows(self, index: int, rows: RowSums) -> None:
        tolerance = _tolerance(rows, self.limits.row, 1.0)
        for d in (SCALE, BIAS):
            ratios = _ratios(rows.signed[d].abs() + rows.slack[d], tolerance[d])
            margins = torch.where(rows.is_open, OPEN_MARGIN, MARGIN)
            # Rows that are open are held to less: the one that is worst of all is reported, any
            # that fails counts.
            if bool((ratios > margins).any()):
                self.findings.open_heads.add(index)
            at = int(ratios.argmax())
            self._meet(
                d,
                "row",
                index,
                at,
                (rows.signed[d, at], rows.norm[d, at], tolerance[d, at]),
                False,
            )

    def _judge_sum(
        self,
        scope: str,
        tests: tuple[int, ...],
        deviations: float,
        index: int,
        first: int,
        sums: RowSums,
    ) -> None:
        tolerance = (_tolerance(sums, deviations, _MEAN_SQUARED_HALF_ULP) - sums.slack).clamp(min=0)
        is_open = bool(sums.is_open.any())
        for d in tests:
            self._meet(
                d,
                scope,
                index,
                first,
                (sums.signed[d, 0], sums.norm[d, 0], tolerance[d, 0]),
                is_open,
            )

    def _meet(
        self,
        d: int,
        scope: str,
        index: int,
        first: int,
        numbers: tuple[Tensor, Tensor, Tensor],
        is_open: bool,
    ) -> None:
        signed, norm, tolerance = (float(x) for x in numbers)
        if norm == 0 or not math.isfinite(norm):
            return
        result = StructureResult(
            _TESTS[d], scope, index, first, signed / norm, tolerance / abs(norm)
        )
        self.findings.meet(result, is_open)

    def _judge_dispersion(self, index: int, rows: RowSums) -> None:
        """How far the slopes of rows scatter: ``SlopeDispersion``."""
        weight = rows.norm[SCALE]
        counts = weight > 0
        if not bool(counts.any()):
            return
        weight = weight[counts]
        of_rest = (_MEAN_SQUARED_HALF_ULP * rows.weights + rows.others)[SCALE][counts] / weight
        each = of_rest + rows.outputs[SCALE][counts] / weight
        t = math.log(max(self._shape.batch * self._shape.heads, 1) / self.limits.share)
        most = (
            float(each.sum())
            + 2 * math.sqrt(float(each.square().sum()) * t)
            + 2 * float(each.max()) * t
        )
        systematic = float((rows.systematic[SCALE][counts].square() / weight).sum())
        found = (rows.signed[SCALE].abs() + rows.slack[SCALE])[counts].square() / weight
        total = float(weight.sum())
        threshold = (math.sqrt(most) + math.sqrt(systematic)) / math.sqrt(total)
        statistic = math.sqrt(float(found.sum()) / total)
        result = StructureResult("dispersion", "head", index, 0, statistic, threshold)
        self.findings.meet(result, bool(rows.is_open.any()))

    def _judge_lse(self, index: int, rows: RowSums) -> None:
        """The mean error of the LSE: ``testMeanLse``."""
        count, error, systematic, random, distance = rows.lse
        number = float(count.sum())
        if number == 0:
            return
        amplitude = self.limits.head / ROOT3 * math.sqrt(float(random.square().sum())) / number
        threshold = (
            float(systematic.sum() - distance.sum()) / number
            + self._premises.exponential / 8
            + amplitude
        )
        result = StructureResult(
            "lse-mean", "head", index, 0, float(error.sum()) / number, threshold
        )
        self.findings.meet(result, bool(rows.is_open.any()))


_TESTS = {SCALE: "scale", LIGHT_SCALE: "scale", BIAS: "bias", TRUNCATION: "truncation"}


def _ratios(sizes: Tensor, limits: Tensor) -> Tensor:
    return torch.where(sizes == 0, 0.0, sizes / limits)
