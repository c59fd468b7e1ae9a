"""What roundings leave near zero and a bug does not: sums of a kernel's error over rows, tiles of
128 queries and heads.

The tests are those of ``src/audit/structure``, whose proofs are in docs/bounds.md, "The
structure". Limits here count all roundings as independent and leave out what weights, rows or
outputs may have in common, so that none is larger than the command line's: what is within them is
within those. What is not is left to the command line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .formats import NumberFormat, ulp
from .instruments import BIAS, LIGHT_SCALE, ROOT3, SCALE, TRUNCATION, Instruments
from .kernel_rows import KernelRows, tanh_error
from .premises import Premises
from .problem import AttentionProblem, Shape
from .spread import TILE_ROWS
from .weights import HeadTensors, WeightBlock

_MARGIN = 1 - 2.0**-10
"""Of a limit no statistic relies on the rest."""
_OPEN_MARGIN = 0.5
"""The same where fp64 leaves a direction open."""
_LARGEST_RANDOM_ERROR = 2.0**-4
"""Weights that may be off by more are not taken to err at random."""
_DOMINATED = 1 - 2.0**-4
"""A row whose Σ w² is more is that of one key."""
_TRUNCATED_ADDITION = 2.0**-26
_CLOSE = 1 - 2.0**-20
_ENTRIES = 13
"""Tests by scope and instrument that the rate of false alarms is divided among:
``structureLimits``.
"""
_MEAN_SQUARED_HALF_ULP = sum(4 ** (-i / 32) for i in range(32)) / 32
"""The mean square of half an ulp of numbers, relative to its largest: at least this for the worst
common offset.
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
        return 0.0 if self.statistic == 0 else abs(self.statistic) / self.threshold


@dataclass
class StructureFindings:
    """Per test and scope the result that uses most of its limit."""

    results: dict[tuple[str, str], StructureResult] = field(default_factory=dict)
    open_heads: set[int] = field(default_factory=set)
    """Heads of which a statistic is not within its limit."""

    def meet(self, result: StructureResult, is_open: bool) -> None:
        """Meets a result; ``is_open`` where fp64 leaves a direction open."""
        if not result.ratio <= (_OPEN_MARGIN if is_open else _MARGIN):
            self.open_heads.add(result.head)
        known = self.results.get((result.test, result.scope))
        if known is None or not result.ratio <= known.ratio:
            self.results[result.test, result.scope] = result


@dataclass(frozen=True)
class RowSums:
    """Projections of rows' errors on four directions, and of what may cause them: [4, rows] unless
    said otherwise.

    Sums over rows are those of a tile or a head. ``weights``, ``outputs``, ``others`` and
    ``accumulated`` are variances.
    """

    signed: Tensor
    norm: Tensor
    slack: Tensor
    """How far the command line's ``signed`` may be."""
    systematic: Tensor
    weights_worst: Tensor
    output_worst: Tensor
    weights: Tensor
    outputs: Tensor
    others: Tensor
    accumulated: Tensor
    is_open: Tensor
    """[rows]"""
    lse: Tensor
    """[5, rows]: whether the row's LSE counts, its error, what is systematic, random, and the
    distance of the command line's exact one.
    """

    def rows(self, first: int, count: int) -> RowSums:
        """Those of some rows."""
        return RowSums(*(getattr(self, name)[..., first : first + count] for name in _NAMES))

    @staticmethod
    def joined(parts: list[RowSums]) -> RowSums:
        """The rows of all parts."""
        return RowSums(
            *(torch.cat([getattr(part, name) for part in parts], -1) for name in _NAMES)
        )


_NAMES = tuple(RowSums.__dataclass_fields__)


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


def _summed(sums: RowSums) -> RowSums:
    """One row that is the sum of all."""
    return RowSums(*(getattr(sums, name).double().sum(-1, keepdim=True) for name in _NAMES))


class StructureTest:
    """Collects the sums of a problem, head after head, and judges them."""

    def __init__(
        self, problem: AttentionProblem, shape: Shape, premises: Premises, rate: float
    ) -> None:
        """``rate`` is the probability of a false alarm in all structure tests."""
        self.limits = structure_limits(shape, rate)
        self.findings = StructureFindings()
        self._problem, self._shape, self._premises = problem, shape, premises

    def collect(
        self,
        head: HeadTensors,
        block: WeightBlock,
        kernel: KernelRows,
        instruments: Instruments,
        out: Tensor,
        lse: tuple[Tensor, NumberFormat] | None,
    ) -> RowSums:
        """The sums of a block's rows; ``out`` [rows, v dim] in fp64, ``lse`` [rows] with the
        format that it is stored in.
        """
        premises, shape = self._premises, self._shape
        is_used = (block.total > 0) & ~kernel.is_coarse
        directions = torch.where(is_used[None, :, None], instruments.directions, 0.0)
        moments = self._weight_moments(head, block, directions)
        own = (directions * block.out).sum(2)
        sizes = directions.abs()
        truncates = premises.weight_format.name != "fp32"
        addition = premises.accumulation if truncates else min(premises.accumulation, 2.0**-24)
        root = kernel.keys.sqrt()
        typical, e, r = kernel.typical_weight, premises.exponential, premises.elementwise
        of_sum = math.sqrt(shape.qk_dim) * premises.accumulation
        random = e + (typical - e).clamp(min=0) / (of_sum + 4 * r) * math.hypot(
            math.sqrt(shape.qk_dim) * addition, 2 * r
        )
        mass_squares = block.weights.square().sum(1)
        shared = (moments.squares - 2 * own * moments.crossed + own.square() * mass_squares).clamp(
            min=0
        )
        others = (
            (random * random) * shared * _CLOSE
            + (own * 2 * r).square()
            + (own * root * addition).square()
        )
        half, of_sums = instruments.half_ulp, root[:, None] * addition * block.magnitude
        output_worst = (half * sizes).sum(2)
        coarse = torch.where(typical * _CLOSE > _LARGEST_RANDOM_ERROR, typical, 0.0)
        dominated = (mass_squares * _CLOSE > _DOMINATED).double()
        floor = (
            kernel.keys + 2
        ) * premises.underflow + kernel.keys * 2.0**-126 * kernel.largest_value
        truncated = (
            kernel.keys * premises.accumulation / 4 if truncates else torch.zeros_like(root)
        )
        systematic = (
            floor * sizes.sum(2)
            + truncated * (sizes * block.out.abs()).sum(2)
            + dominated * output_worst
            + r * own.abs()
            + (tanh_error(self._problem, premises) + coarse)
            * (moments.absolute + own.abs() * block.weights.sum(1))
        )
        rounding = kernel.weight_rounding
        return RowSums(
            signed=((out - block.out) * directions).sum(2),
            norm=(instruments.patterns * directions).sum(2),
            slack=(block.out_distance * sizes).sum(2),
            systematic=systematic,
            weights_worst=rounding * moments.absolute,
            output_worst=output_worst,
            weights=rounding**2 / 3 * moments.squares,
            outputs=((half.square() + of_sums.square()) * sizes.square()).sum(2) / 3,
            others=others / 3,
            accumulated=(of_sums * sizes).sum(2).square() / 3,
            is_open=instruments.is_open | ((typical - 0.5).abs() < 2.0**-20),
            lse=self._lse_sums(block, kernel, lse),
        )

    @staticmethod
    def _weight_moments(
        head: HeadTensors, block: WeightBlock, directions: Tensor
    ) -> _WeightMoments:
        values = head.v[block.first_key : block.first_key + block.weights.shape[1]].T
        squares, crossed, absolute = [], [], []
        for direction in directions:
            products = (direction @ values).mul_(block.weights)
            squares.append(products.square().sum(1))
            crossed.append((products * block.weights).sum(1))
            absolute.append(products.abs_().sum(1))
        return _WeightMoments(torch.stack(squares), torch.stack(crossed), torch.stack(absolute))

    def _lse_sums(
        self, block: WeightBlock, kernel: KernelRows, lse: tuple[Tensor, NumberFormat] | None
    ) -> Tensor:
        """See ``sumLseErrors`` of ``src/audit/structure/head-tests.ts``."""
        premises = self._premises
        counts = (block.total > 0) & ~kernel.is_coarse
        if lse is None:
            return torch.zeros(5, counts.shape[0], dtype=torch.float64, device=counts.device)
        given, stored = lse
        exact = torch.where(counts, block.lse, 0.0)
        size = exact.abs() + block.maximum.abs() * math.log(2)
        typical, r = kernel.typical_weight, premises.elementwise
        coarse = torch.where(typical * _CLOSE > _LARGEST_RANDOM_ERROR, typical, 0.0)
        rounding = ulp(stored, exact.abs() * _CLOSE) / 2
        systematic = (
            r * size + premises.logarithm + rounding + tanh_error(self._problem, premises) + coarse
        )
        if self._problem.q.dtype != torch.float32:
            systematic = (
                systematic + kernel.keys * _TRUNCATED_ADDITION + (kernel.weight - typical) / 8
            )
        random = (
            typical
            - premises.exponential
            + 4 * r * size
            + (3 * kernel.keys).sqrt() * premises.accumulation
        ).clamp(min=0)
        rows = [torch.ones_like(exact), given - exact, systematic, random, block.lse_distance]
        return torch.stack([torch.where(counts, x, 0.0) for x in rows])

    def judge_head(self, index: int, parts: list[RowSums]) -> None:
        """Judges the rows of a head, its tiles, and itself."""
        rows = RowSums.joined(parts)
        self._judge_rows(index, rows)
        queries = self._shape.queries
        for first in range(0, queries, TILE_ROWS):
            tile = _summed(rows.rows(first, min(TILE_ROWS, queries - first)))
            self._judge_sum(
                "tile", (SCALE, LIGHT_SCALE, BIAS), self.limits.tile, index, first, tile
            )
        self._judge_sum(
            "head",
            (SCALE, LIGHT_SCALE, BIAS, TRUNCATION),
            self.limits.head,
            index,
            0,
            _summed(rows),
        )
        self._judge_dispersion(index, rows)
        self._judge_lse(index, rows)

    def _judge_rows(self, index: int, rows: RowSums) -> None:
        tolerance = _tolerance(rows, self.limits.row, 1.0)
        for d in (SCALE, BIAS):
            ratios = _ratios(rows.signed[d].abs() + rows.slack[d], tolerance[d])
            margins = torch.where(rows.is_open, _OPEN_MARGIN, _MARGIN)
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
        tolerance = (_tolerance(sums, deviations, _MEAN_SQUARED_HALF_ULP) - sums.slack).clamp(
            min=0
        )
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


@dataclass(frozen=True)
class _WeightMoments:
    """Of c = w·X·v over the keys, [4, rows]: Σ c², Σ c·w, Σ |c|."""

    squares: Tensor
    crossed: Tensor
    absolute: Tensor


def _ratios(sizes: Tensor, limits: Tensor) -> Tensor:
    return torch.where(sizes == 0, 0.0, sizes / limits)
