"""Holds a kernel's gradients against exact ones and what any correct kernel may make of them, group of
heads by group and block of queries by block.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import torch
from torch import Tensor

from ..elements import LimitTest, LostTest, Place, hold_against
from ..formats import FORMATS
from ..gradients import PairErrors, pair_errors
from ..kernel_rows import kernel_rows
from ..limits import SURE
from ..masks import VisibleKeys, visible_keys
from ..measure import Room, key_span
from ..problem import AttentionProblem, Shape, shape_of
from ..selection import kept_where
from ..spread import HeadEnergies, SpreadTest, energies_of, spread_rates
from ..structure_results import alarm_deviations
from ..weights import HeadTensors, WeightBlock, gamma, head_tensors, weigh_block
from .common import CommonErrors, add_to_keys, add_to_values, mean_variances
from .limits import GradientLimits, KeySums, KeyTerms, limits_of_queries
from .pair_law import PairLaw, PairMatrices, Rows
from .pair_passes import pairs_of
from .premises import PairArithmetic, pair_arithmetic
from .problem import KernelGradients
from .rows import row_errors
from .statistics import JudgedRows, Pairing, SumTest, judge_pairing

_SURE = 1 - 2.0**-12
_TILE = 128
_UP = 1 + 2.0**-5


@dataclass
class GradientFindings:
    """What the tests of one gradient found."""

    elements: LimitTest
    spread: SpreadTest
    sums: SumTest
    lost: LostTest = field(default_factory=LostTest)
    open_heads: set[int] = field(default_factory=set)
    """Heads of it, over [batch, heads], of which a test is not surely passed."""


@dataclass
class BackwardFindings:
    """What the tests on the device found of all gradients."""

    shape: Shape
    dq: GradientFindings
    dk: GradientFindings
    dv: GradientFindings
    open_pairings: set[int] = field(default_factory=set)

    @property
    def open_groups(self) -> set[int]:
        """Heads of K, over [batch, kv heads], of whose gradients a test is not surely passed."""
        group = self.shape.heads // self.shape.kv_heads
        of_queries = {
            head // self.shape.heads * self.shape.kv_heads + head % self.shape.heads // group
            for head in self.dq.open_heads
        }
        return of_queries | self.dk.open_heads | self.dv.open_heads | self.open_pairings

    @property
    def worst_ratio(self) -> float:
        """The largest share of its bound that an element uses."""
        return max(x.elements.worst.ratio for x in (self.dq, self.dk, self.dv))


def _findings(shape: Shape, rate: float) -> BackwardFindings:
    sizes = {
        "dq": (shape.heads, shape.queries, shape.qk_dim),
        "dk": (shape.kv_heads, shape.keys, shape.qk_dim),
        "dv": (shape.kv_heads, shape.keys, shape.v_dim),
    }
    statistics = shape.batch * shape.kv_heads
    for heads, rows, dim in sizes.values():
        statistics += shape.batch * heads * (-(-rows // _TILE) + 1 + dim)
    deviations = alarm_deviations(statistics, rate / 2)

    def of(name: str) -> GradientFindings:
        heads, rows, dim = sizes[name]
        own = Shape(shape.batch, heads, heads, rows, rows, dim, dim)
        # Half of the false alarms for the spread, the same for each gradient.
        spread = SpreadTest(own, spread_rates(own, rate / 2 / len(sizes)))
        return GradientFindings(LimitTest(), spread, SumTest(deviations))

    return BackwardFindings(shape, of("dq"), of("dk"), of("dv"))


def _judge_heads(
    found: GradientFindings, name: str, rows: JudgedRows, common: CommonErrors | None
) -> None:
    """All tests of a gradient of some heads, but for the pairing."""
    limits, radius = rows.limits, rows.radius
    errors = (rows.given - rows.exact).abs()
    place = Place(rows.heads, 0, errors.shape[0] // len(rows.heads))
    total, spread = limits.total * _SURE, found.spread.limits_of(limits) * _SURE
    is_open = hold_against(found.elements, errors, radius, (total, total), limits.is_judged, place)
    found.lost.meet(rows.exact, radius, total, limits.is_judged)
    is_open |= hold_against(
        found.spread.elements, errors, radius, (spread, spread), limits.is_judged, place
    )
    for test in (found.elements, found.spread.elements, found.lost):
        test.settle()
    # An exact 0, of a key that no query sees, has no radius.
    reach = kept_where((errors > 0) | (limits.total > 0), errors + radius)
    energies = energies_of(reach, limits, torch.zeros_like(radius))
    units = torch.arange(errors.shape[0], device=errors.device)
    found.spread.judge_heads(rows.heads, HeadEnergies(energies, energies), units)
    found.open_heads |= found.sums.judge(name, rows, common)
    found.open_heads |= found.spread.open_heads
    open_places = rows.by_head(is_open).any(1).nonzero()[:, 0].tolist()
    found.open_heads |= {rows.heads[place] for place in open_places}


@dataclass(frozen=True)
class _Judged:
    problem: AttentionProblem
    dout: Tensor
    stored_out: Tensor | None
    given: dict[str, Tensor]
    """dq, dk and dv."""
    shape: Shape
    arithmetic: PairArithmetic
    keys: VisibleKeys
    keys_here: VisibleKeys
    """The same, where they can be read without a wait for a GPU."""
    found: BackwardFindings
    room: Room

    @property
    def is_stored(self) -> bool:
        """Whether a kernel may store a head's share of dK and dV in the output's format."""
        own = self.arithmetic.output.unit_roundoff > self.arithmetic.premises.elementwise
        return self.shape.heads > self.shape.kv_heads and own


def _of_heads(x: Tensor, heads: range) -> Tensor:
    """Those of some heads in fp64, [heads, …]."""
    return x.flatten(0, 1)[heads.start : heads.stop : heads.step].double()


@dataclass
class _Groups:
    """Sums of some heads of K."""

    dk: KeySums
    dv: KeySums
    of_dk: CommonErrors
    of_dv: CommonErrors
    pairing: Pairing


@dataclass(frozen=True)
class _QueryRows:
    """Exact dQ of a block of queries, its radius, and its limits."""

    exact: Tensor
    radius: Tensor
    limits: GradientLimits


_VECTORS = 160
"""About how many numbers there are at once for an element of a row of dQ, dK or dV."""


def measure_gradients(
    problem: AttentionProblem,
    given: KernelGradients,
    stored_out: Tensor | None,
    false_alarm_rate: float,
) -> BackwardFindings:
    """Holds gradients against the bounds of any correct kernel. All of it is covered: see
    ``why_gradients_not_covered``. ``stored_out`` is what the kernel's forward stored, [batch, heads,
    queries, v dim]; None where that is not known.
    """
    if given.dq is None or given.dk is None or given.dv is None:
        raise ValueError("dq, dk and dv are judged together; give all three")
    shape = shape_of(problem)
    arithmetic = pair_arithmetic(
        FORMATS[problem.q.dtype], FORMATS[given.dq.dtype], shape, problem.used_scale
    )
    keys = visible_keys(problem, shape, problem.q.device)
    # Heads that see the same keys.
    alike = problem.features.groups_alike(shape)
    found = _findings(shape, false_alarm_rate)
    gradients = {"dq": given.dq, "dk": given.dk, "dv": given.dv}
    room = Room.on(problem.q.device, "gradients", is_plain=keys.holes is None)
    judged = _Judged(
        problem,
        given.dout,
        stored_out,
        gradients,
        shape,
        arithmetic,
        keys,
        keys.here(),
        found,
        room,
    )
    group = shape.heads // shape.kv_heads
    by_column = _VECTORS * max(shape.qk_dim, shape.v_dim) // room.matrices
    at_once = room.heads(alike, shape.queries, shape.keys + (0 if room.free is None else by_column))
    for start in range(0, shape.batch * shape.kv_heads, alike):
        if start > 0:
            keys = visible_keys(problem, shape, problem.q.device, start * group)
            judged = replace(judged, keys=keys, keys_here=keys.here())
        for first in range(start, start + alike, at_once):
            _measure_groups(judged, range(first, min(first + at_once, start + alike)))
    return found


def _measure_groups(judged: _Judged, groups: range) -> None:
    """Judges the gradients of some heads of K and of their queries."""
    shape, arithmetic = judged.shape, judged.arithmetic
    group = shape.heads // shape.kv_heads
    k, v = (_of_heads(x, groups) for x in (judged.problem.k, judged.problem.v))
    sums = _Groups(
        KeySums.nothing(k, arithmetic.scale),
        KeySums.nothing(v, 1.0),
        CommonErrors.nothing(k),
        CommonErrors.nothing(v),
        Pairing.nothing(k),
    )
    for number in range(group):
        # One head of each group, so that none adds to the sums of another.
        heads = range(groups.start * group + number, groups.stop * group, group)
        _measure_heads(judged, heads, sums)
        sums.dk.end_head(arithmetic, judged.is_stored)
        sums.dv.end_head(arithmetic, judged.is_stored)
    pairing = Pairing.nothing(k)
    for name, found, of, common in (
        ("dk", judged.found.dk, sums.dk, sums.of_dk),
        ("dv", judged.found.dv, sums.dv, sums.of_dv),
    ):
        given = _of_heads(judged.given[name], groups).flatten(0, 1)
        rows = JudgedRows(groups, given, *of.finish(arithmetic, judged.is_stored))
        _judge_heads(found, name, rows, common)
        if name == "dk":
            pairing.add(rows, k.flatten(0, 1))
    judged.found.open_pairings |= judge_pairing(judged.found.dk.sums, groups, sums.pairing, pairing)


def _measure_heads(judged: _Judged, heads: range, sums: _Groups) -> None:
    shape = judged.shape
    head = head_tensors(judged.problem, shape, heads, judged.keys)
    step = judged.room.rows(shape.keys)
    parts = [
        _measure_block(judged, head, Place(heads, first, min(step, shape.queries - first)), sums)
        for first in range(0, shape.queries, step)
    ]

    def joined(x: list[Tensor]) -> Tensor:
        return torch.cat([part.unflatten(0, (len(heads), -1)) for part in x], 1).flatten(0, 1)

    limits = GradientLimits(
        *(joined([getattr(x.limits, one.name) for x in parts]) for one in fields(GradientLimits))
    )
    given = _of_heads(judged.given["dq"], heads).flatten(0, 1)
    exact, radius = joined([x.exact for x in parts]), joined([x.radius for x in parts])
    rows = JudgedRows(heads, given, exact, radius, limits)
    _judge_heads(judged.found.dq, "dq", rows, None)
    sums.pairing.add(rows, head.q.flatten(0, 1))


def _measure_block(judged: _Judged, head: HeadTensors, place: Place, sums: _Groups) -> _QueryRows:
    """Adds a block to the sums of its groups; returns its part of dQ."""
    shape, arithmetic = judged.shape, judged.arithmetic
    seen = judged.keys.rows(place.first_row, place.rows)
    rows = slice(place.first_row, place.first_row + place.rows)
    span = key_span(judged.keys_here.rows(place.first_row, place.rows))
    block = weigh_block(judged.problem, head, seen, place.first_row, *span)
    keys, k, v = block.columns, head.k[:, block.columns], head.v[:, block.columns]
    douts = _of_heads(judged.dout, place.heads)[:, rows]
    dout = douts.flatten(0, 1)
    stored = judged.stored_out
    law = PairLaw.of(arithmetic, head, block, dout)
    pairs = pairs_of(law, block.exponents, block.weights, torch.bmm(douts, v.transpose(1, 2)))
    found = pairs.sums(with_scatter=stored is None)
    exact = pair_errors(block, dout, v, found.size)
    of = row_errors(
        arithmetic,
        block,
        kernel_rows(judged.problem, head, shape, arithmetic.premises, block),
        found,
        law.are_in_range().flatten() & exact.is_bounded,
        dout,
        None if stored is None else _of_heads(stored, place.heads)[:, rows].flatten(0, 1),
    )
    matrices = pairs.matrices(of)
    largest = arithmetic.working.max_finite * (1 - SURE) / max(1.0, abs(arithmetic.scale))
    of.is_judged.logical_and_((matrices.largest < largest) | (block.total == 0))
    _add_to_keys(sums, keys, (block, exact, matrices, of), head.q[:, rows], douts, shape)
    of_mean = mean_variances(arithmetic, block, found, dout, head.v.abs().amax(1))
    add_to_keys(sums.of_dk, arithmetic, of, of_mean, head.q[:, rows])
    add_to_values(sums.of_dv, of, douts)
    value, radius = _exact_queries(arithmetic.scale, block, matrices, exact, k)
    limits = limits_of_queries(arithmetic, matrices, of, block, k, (value, radius))
    return _QueryRows(value, radius, limits)


def _exact_queries(
    scale: float, block: WeightBlock, pairs: PairMatrices, exact: PairErrors, keys: Tensor
) -> tuple[Tensor, Tensor]:
    """dQ of a block and its radius: Theorem 23."""
    of_size, of_weight = exact.share_errors
    sizes = keys.abs()
    radius = (of_size + gamma(float(keys.shape[1])))[:, None] * torch.bmm(
        pairs.size, sizes
    ).flatten(0, 1)
    radius += of_weight[:, None] * torch.bmm(block.weights, sizes).flatten(0, 1)
    value = scale * torch.bmm(pairs.share, keys).flatten(0, 1)
    radius = radius * abs(scale) * _UP + value.abs() * 2.0**-53 + 2.0**-500 * max(1.0, abs(scale))
    return value, radius


def _add_to_keys(
    sums: _Groups,
    keys: slice,
    of_block: tuple[WeightBlock, PairErrors, PairMatrices, Rows],
    queries: Tensor,
    dout: Tensor,
    shape: Shape,
) -> None:
    """Adds the pairs of a block to dK and dV; ``queries`` and ``dout`` are [heads, rows, dim]."""
    block, exact, pairs, of = of_block
    sums_of_keys = gamma(2.0 * shape.queries * (shape.heads // shape.kv_heads) + 2)
    of_size, of_weight = (block.by_head(x) for x in exact.share_errors)
    row_systematic = block.by_head(of.typical_weight)
    sums.dk.add(
        keys,
        KeyTerms(
            pairs.share,
            pairs.size,
            pairs.whole,
            pairs.key_systematic,
            pairs.key_variance,
            row_systematic,
            of_size + sums_of_keys,
            queries,
        ),
    )
    of_weights = of_weight[:, :, None] * queries.abs()
    sums.dk.radius[:, keys] += torch.bmm(block.weights.transpose(1, 2), of_weights)
    sums.dv.add(
        keys,
        KeyTerms(
            block.weights,
            block.weights,
            pairs.weight_worst,
            pairs.weight_systematic,
            pairs.weight_variance,
            row_systematic,
            block.by_head(exact.weight_errors) + sums_of_keys,
            dout,
            pairs.weight_known,
            pairs.weight_open,
        ),
    )
    is_judged = block.by_head(of.is_judged)
    for each in (sums.dk, sums.dv):
        each.leave_out(is_judged, block.weights, keys)
