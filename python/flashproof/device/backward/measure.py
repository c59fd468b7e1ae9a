"""Holds a kernel's gradients against exact ones and what any correct kernel may make of them, group of
heads by group and block of queries by block.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import torch
from torch import Tensor

from ..elements import LimitTest, LostTest, hold_against
from ..formats import FORMATS
from ..gradients import exact_pairs
from ..kernel_rows import kernel_rows
from ..masks import VisibleKeys, visible_keys
from ..measure import block_rows, free_bytes, key_span
from ..problem import AttentionProblem, Shape, shape_of
from ..spread import HeadEnergies, SpreadTest, energies_of, spread_rates
from ..structure_results import alarm_deviations
from ..weights import HeadTensors, gamma, head_tensors, weigh_block
from .common import CommonErrors, add_to_keys, add_to_values, mean_variances
from .limits import GradientLimits, KeySums, limits_of_queries
from .pairs import err_derivatives, err_weights, row_errors, weigh_pairs
from .premises import PairArithmetic, pair_arithmetic
from .problem import KernelGradients
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


def _judge_head(
    found: GradientFindings, name: str, head: int, rows: JudgedRows, common: CommonErrors | None
) -> None:
    """All tests of a gradient of one head, but for the pairing."""
    limits, radius = rows.limits, rows.radius
    errors = (rows.given - rows.exact).abs()
    place = (head, 0)
    total, spread = limits.total * _SURE, found.spread.limits_of(limits) * _SURE
    is_open = hold_against(found.elements, errors, radius, (total, total), limits.is_judged, place)
    found.lost.meet(rows.exact, radius, total, limits.is_judged)
    is_open |= hold_against(
        found.spread.elements, errors, radius, (spread, spread), limits.is_judged, place
    )
    energies = energies_of(errors + radius, limits, torch.zeros_like(radius))
    units = torch.arange(errors.shape[0], device=errors.device)
    found.spread.judge_head(head, [HeadEnergies(energies, energies)], units)
    is_within = found.sums.judge(name, head, rows, common)
    if bool(is_open.any()) or not is_within or head in found.spread.open_heads:
        found.open_heads.add(head)


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
    found: BackwardFindings

    @property
    def is_stored(self) -> bool:
        """Whether a kernel may store a head's share of dK and dV in the output's format."""
        own = self.arithmetic.output.unit_roundoff > self.arithmetic.premises.elementwise
        return self.shape.heads > self.shape.kv_heads and own


@dataclass
class _Group:
    """Sums of a head of K."""

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
    found = _findings(shape, false_alarm_rate)
    gradients = {"dq": given.dq, "dk": given.dk, "dv": given.dv}
    judged = _Judged(problem, given.dout, stored_out, gradients, shape, arithmetic, keys, found)
    for index in range(shape.batch * shape.kv_heads):
        _measure_group(judged, index)
    return found


def _measure_group(judged: _Judged, index: int) -> None:
    shape, arithmetic = judged.shape, judged.arithmetic
    batch, kv = divmod(index, shape.kv_heads)
    group = shape.heads // shape.kv_heads
    device = judged.problem.q.device
    sums = _Group(
        KeySums.nothing(shape.keys, shape.qk_dim, arithmetic.scale, device),
        KeySums.nothing(shape.keys, shape.v_dim, 1.0, device),
        CommonErrors.nothing(shape.qk_dim, device),
        CommonErrors.nothing(shape.v_dim, device),
        Pairing(),
    )
    for number in range(kv * group, (kv + 1) * group):
        _measure_head(judged, batch, number, sums)
        sums.dk.end_head(arithmetic, judged.is_stored)
        sums.dv.end_head(arithmetic, judged.is_stored)
    pairing = Pairing()
    for name, found, of, common in (
        ("dk", judged.found.dk, sums.dk, sums.of_dk),
        ("dv", judged.found.dv, sums.dv, sums.of_dv),
    ):
        given = judged.given[name][batch, kv].double()
        rows = JudgedRows(given, *of.finish(arithmetic, judged.is_stored))
        _judge_head(found, name, index, rows, common)
        if name == "dk":
            pairing.add(rows, judged.problem.k[batch, kv].double())
    if not judge_pairing(judged.found.dk.sums, index, sums.pairing, pairing):
        judged.found.open_pairings.add(index)


def _measure_head(judged: _Judged, batch: int, number: int, sums: _Group) -> None:
    shape = judged.shape
    head = head_tensors(judged.problem, shape, batch, number)
    step = block_rows(shape.keys, free_bytes(head.q.device))
    parts = [
        _measure_block(judged, head, (batch, number), first, min(step, shape.queries - first), sums)
        for first in range(0, shape.queries, step)
    ]
    exact = torch.cat([part.exact for part in parts])
    radius = torch.cat([part.radius for part in parts])
    limits = GradientLimits(
        *(
            torch.cat([getattr(part.limits, one.name) for part in parts])
            for one in fields(GradientLimits)
        )
    )
    rows = JudgedRows(judged.given["dq"][batch, number].double(), exact, radius, limits)
    _judge_head(judged.found.dq, "dq", batch * shape.heads + number, rows, None)
    sums.pairing.add(rows, head.q)


def _measure_block(
    judged: _Judged,
    head: HeadTensors,
    place: tuple[int, int],
    first: int,
    count: int,
    sums: _Group,
) -> _QueryRows:
    """Adds a block to the sums of its group; returns its part of dQ."""
    shape, arithmetic = judged.shape, judged.arithmetic
    seen = judged.keys.rows(first, count)
    low, high = key_span(seen)
    rows, keys = slice(first, first + count), slice(low, high)
    block = weigh_block(judged.problem, head, seen, first, low, high)
    kernel = kernel_rows(judged.problem, head, shape, arithmetic.premises, block)
    dout = judged.dout[(*place, rows)].double()
    exact = exact_pairs(block, dout, head.v[keys])
    pairs, is_judged = weigh_pairs(arithmetic, head, block, dout, exact)
    of = row_errors(
        arithmetic,
        block,
        kernel,
        pairs,
        exact.delta,
        is_judged & exact.is_bounded,
        dout,
        None if judged.stored_out is None else judged.stored_out[(*place, rows)].double(),
    )
    of_weights, roundings = err_weights(arithmetic, pairs, of)
    of_shares = err_derivatives(arithmetic, pairs, of, roundings.worst)
    of.is_judged.logical_and_(of_shares.is_within | (block.total == 0))
    # Theorem 23: what the exact values here may be off by.
    queries, group = head.q[rows], shape.heads // shape.kv_heads
    key_sizes = head.k[keys].abs()
    sums_of_keys = gamma(2.0 * shape.queries * group + 2)
    of_size, of_weight = exact.share_errors
    of_sizes = of_shares.of_queries.size @ key_sizes
    radius = (of_size + gamma(float(high - low)))[:, None] * of_sizes
    radius += of_weight[:, None] * (block.weights @ key_sizes)
    sums.dk.add(keys, of_shares.of_keys, None, of_size + sums_of_keys, queries)
    sums.dk.radius[keys] += block.weights.T @ (of_weight[:, None] * queries.abs())
    sums.dv.add(keys, of_weights, roundings, exact.weight_errors + sums_of_keys, dout)
    for each in (sums.dk, sums.dv):
        each.leave_out(of.is_judged, block.weights, keys)
    largest = head.v.abs().amax(0)
    of_mean = mean_variances(arithmetic, block, pairs, dout, largest)
    add_to_keys(sums.of_dk, arithmetic, of, of_mean, queries)
    add_to_values(sums.of_dv, of, dout)
    scale = arithmetic.scale
    value = scale * (exact.shares @ head.k[keys])
    radius = radius * abs(scale) * _UP + value.abs() * 2.0**-53 + 2.0**-500 * max(1.0, abs(scale))
    limits = limits_of_queries(
        arithmetic,
        of_shares.of_queries,
        of,
        seen.count.double(),
        block.weights,
        head.k[keys],
        of_sizes,
        (value, radius),
    )
    return _QueryRows(value, radius, limits)
