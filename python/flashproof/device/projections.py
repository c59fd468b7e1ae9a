"""Projections of rows' errors on directions, and of what may cause them:
``src/audit/structure/row-collector.ts``.

All roundings count as independent: what weights, outputs and rows may have in common is left out,
which makes limits smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .formats import NumberFormat, ulp
from .instruments import LIGHT_SCALE, SCALE, Instruments
from .kernel_rows import KernelRows, tanh_error
from .premises import Premises
from .problem import AttentionProblem, Shape
from .scores import Moments, engine_of
from .selection import kept_where, zero_where
from .sums import Sums
from .tested_rows import TestedRows
from .weights import WeightBlock

_LARGEST_RANDOM_ERROR = 2.0**-4
"""Weights that may be off by more are not taken to err at random."""
_DOMINATED = 1 - 2.0**-4
"""A row whose Σ w² is more is that of one key."""
_TRUNCATED_ADDITION = 2.0**-26
"""Mean loss of one addition to a sum that a tensor core truncates, relative to the sum."""
_CLOSE = 1 - 2.0**-20
_OTHERWISE = 4
"""By how much a component of a direction may grow where its half ulp is left open: the square of
two.
"""


@dataclass(frozen=True)
class ProjectedProblem:
    """What all rows are projected by."""

    problem: AttentionProblem
    shape: Shape
    premises: Premises


@dataclass(frozen=True)
class RowSums(Sums):
    """Projections of rows' errors on four directions, and of what may cause them: [4, rows], or [4,
    heads, rows of each], unless said otherwise.

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
    loose: Tensor
    """How far ``signed`` may be from the command line's where a direction is left open."""
    known_norm: Tensor
    """The part of ``norm`` of which the direction is not left open."""
    is_open: Tensor
    """[rows]: whether fp64 leaves directions open, in a column."""
    is_tied: Tensor
    """[rows]: whether it is open which key is the heaviest."""
    is_at_half: Tensor
    """[rows]: whether it is open if the row counts at all, as one whose weights may be off by half
    does not.
    """
    lse: Tensor
    """[5, rows]: whether the row's LSE counts, its error, what is systematic, random, and the
    distance of the command line's exact one.
    """

    def surely(self) -> RowSums:
        """The rows as any direction that is left open makes them: of those rows no tolerance
        counts, and what the sums may be at most is in ``slack``.
        """

        def closed(x: Tensor) -> Tensor:
            return zero_where(self.is_open, x)

        return replace(
            self,
            slack=self.slack + kept_where(self.is_open, self.loose),
            **{name: closed(getattr(self, name)) for name in _TOLERANCES},
        )

    def tiles(self, rows: int) -> RowSums:
        """Sums of so many rows each, the last of what is left."""
        count = self.is_open.shape[-1]
        padding = -count % rows

        def summed(member: Tensor) -> Tensor:
            padded = torch.nn.functional.pad(member.double(), (0, padding))
            return padded.reshape(*member.shape[:-1], -1, rows).sum(-1)

        return self.mapped(summed)


_TOLERANCES = (
    "systematic",
    "weights_worst",
    "output_worst",
    "weights",
    "outputs",
    "others",
    "accumulated",
)
"""Members of which more is more tolerance."""


def project_rows(
    judged: ProjectedProblem, tested: TestedRows, lse: tuple[Tensor, NumberFormat] | None
) -> RowSums:
    """The sums of a block's rows; ``lse`` is [rows] with the format that it is stored in."""
    premises, shape = judged.premises, judged.shape
    block, kernel, instruments = tested.block, tested.kernel, tested.instruments
    out = tested.out
    is_used = (block.total > 0) & ~kernel.is_coarse
    directions = kept_where(is_used[None, :, None], instruments.directions)
    moments = _moments(tested, directions)
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
    mass_squares = tested.errors.squares
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
    coarse = kept_where(typical * _CLOSE > _LARGEST_RANDOM_ERROR, typical)
    dominated = (mass_squares * _CLOSE > _DOMINATED).double()
    floor = (kernel.keys + 2) * premises.underflow + kernel.keys * 2.0**-126 * kernel.largest_value
    truncated = kernel.keys * premises.accumulation / 4 if truncates else torch.zeros_like(root)
    systematic = (
        floor * sizes.sum(2)
        + truncated * (sizes * block.out.abs()).sum(2)
        + dominated * output_worst
        + r * own.abs()
        + (tanh_error(judged.problem, premises) + coarse)
        * (moments.absolute + own.abs() * _key_mass(tested))
    )
    rounding = kernel.weight_rounding
    products, norms = (out - block.out) * directions, instruments.patterns * directions
    signed = products.sum(2)
    loose = _open_sums(block, instruments, out - block.out, directions)
    return RowSums(
        signed=signed,
        norm=norms.sum(2),
        slack=(block.out_distance * sizes).sum(2),
        systematic=systematic,
        weights_worst=rounding * moments.absolute,
        output_worst=output_worst,
        weights=rounding**2 / 3 * moments.squares,
        outputs=((half.square() + of_sums.square()) * sizes.square()).sum(2) / 3,
        others=others / 3,
        accumulated=(of_sums * sizes).sum(2).square() / 3,
        loose=loose,
        known_norm=norms.masked_fill(instruments.open_columns, 0.0).sum(2),
        is_open=instruments.open_columns.any(1),
        is_tied=instruments.is_tied & is_used,
        is_at_half=(typical - 0.5).abs() < 2.0**-20,
        lse=_lse_sums(judged, block, kernel, lse),
    )


def _open_sums(
    block: WeightBlock,
    instruments: Instruments,
    errors: Tensor,
    directions: Tensor,
) -> Tensor:
    """How far Σ r·X may be off where columns are left open, [4, rows].

    A column that grows by δ moves a direction without the heaviest key's value v by δ(e − v_j v/|v|²).
    """
    is_open = instruments.open_columns
    reach = errors.abs() + block.out_distance
    loose = _OTHERWISE * (reach * directions.abs()).masked_fill(~is_open, 0.0).sum(2)
    axis = instruments.heaviest
    along = (errors * axis).sum(1).abs() + (block.out_distance * axis.abs()).sum(1)
    moved = directions[SCALE].abs() * (reach + axis.abs() * along[:, None])
    loose[LIGHT_SCALE] = _OTHERWISE * moved.masked_fill(~is_open, 0.0).sum(1)
    return loose


def _key_mass(tested: TestedRows) -> Tensor:
    """Σ w of the keys, [rows]."""
    sunk = tested.block.sunk
    return tested.errors.mass if sunk is None else tested.errors.mass - sunk.weight


def _moments(tested: TestedRows, directions: Tensor) -> Moments:
    """Of directions [4, rows, v dim], [4, rows] each."""
    head, block = tested.head, tested.block
    engine = engine_of(directions.device, is_plain=block.is_plain)
    found = engine.moments(
        directions.unflatten(1, block.weights.shape[:2]),
        head.v[:, block.columns],
        block.weights,
        block.seen.after(block.first_key),
    )
    return Moments(*(x.flatten(1) for x in (found.squares, found.crossed, found.absolute)))


def _lse_sums(
    judged: ProjectedProblem,
    block: WeightBlock,
    kernel: KernelRows,
    lse: tuple[Tensor, NumberFormat] | None,
) -> Tensor:
    """See ``sumLseErrors`` of ``src/audit/structure/head-tests.ts``."""
    premises = judged.premises
    counts = (block.total > 0) & ~kernel.is_coarse
    if lse is None:
        return torch.zeros(5, counts.shape[0], dtype=torch.float64, device=counts.device)
    given, stored = lse
    exact = kept_where(counts, block.lse)
    size = exact.abs() + block.maximum.abs() * math.log(2)
    typical, r = kernel.typical_weight, premises.elementwise
    coarse = kept_where(typical * _CLOSE > _LARGEST_RANDOM_ERROR, typical)
    rounding = ulp(stored, exact.abs() * _CLOSE) / 2
    systematic = (
        r * size + premises.logarithm + rounding + tanh_error(judged.problem, premises) + coarse
    )
    if judged.problem.q.dtype != torch.float32:
        systematic = systematic + kernel.keys * _TRUNCATED_ADDITION + (kernel.weight - typical) / 8
    random = (
        typical
        - premises.exponential
        + 4 * r * size
        + (3 * kernel.keys).sqrt() * premises.accumulation
    ).clamp(min=0)
    rows = [torch.ones_like(exact), given - exact, systematic, random, block.lse_distance]
    return torch.stack([kept_where(counts, x) for x in rows])
