"""Exact weights of a block of queries, in fp64, with what they leave of O and the LSE: the
device's oracle.

Its radius is Theorem 13 of docs/theory/bounds.md, which holds for sums in any order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from .addends import Addends, addends_of
from .features import of_heads
from .formats import FORMATS, NumberFormat
from .masks import VisibleKeys, hidden_keys, largest_seen, visible_keys
from .problem import AttentionProblem, Shape
from .scores import engine_of
from .selection import kept_where
from .sinks import SunkRows, sunk_rows

ROUNDOFF = 2.0**-53
"""The unit roundoff of fp64."""
EXP2_ERROR = 4 * ROUNDOFF
"""Largest relative error taken of exp2: two ulp, an assumption (CUDA: tests; SLEEF: 1.0)."""
TANH_ERROR = 4 * ROUNDOFF
"""The same of fp64's tanh."""
_SUMMED = 256
_WEIGHTLESS = 1200
"""Exponents so far below the row's largest leave no weight in fp64."""
LN2 = math.log(2)
LOG2E = 1 / LN2


def gamma(operations: float) -> float:
    """n·u / (1 − n·u): what n roundings come to (Higham, *Accuracy and Stability*, Lemma 3.1)."""
    return operations * ROUNDOFF / (1 - operations * ROUNDOFF)


@dataclass(frozen=True)
class HeadTensors:
    """Some query heads with the keys and values that each reads, in fp64, and how large they are."""

    shape: Shape
    """Of the whole problem."""
    numbers: range
    """The heads, counted over [batch, heads]."""
    q: Tensor
    """[heads, queries, dim]"""
    k: Tensor
    v: Tensor
    query_norm: Tensor
    """[heads, queries]: Euclidean norms, rounded up."""
    key_norm: Tensor
    query_unit: Tensor
    """[heads, queries]: the same where numbers below the smallest normal one count as that; so errors
    of scores are scaled.
    """
    key_unit: Tensor
    largest_key_norm: Tensor
    """[heads, queries]: the largest that each query sees; 0 for one that sees none."""
    largest_key_unit: Tensor
    largest_value: Tensor
    value_sums: Tensor
    """[heads, keys + 1, v dim]: Σ |v| of the keys before each."""

    value_powers: Tensor
    """[heads, keys, 3 · v dim]: v, |v| and v²."""

    @property
    def value_squares(self) -> Tensor:
        """[heads, keys, v dim]: v²."""
        return self.value_powers[:, :, -self.v.shape[2] :]

    @property
    def count(self) -> int:
        """How many heads."""
        return len(self.q)


def _norm(x: Tensor) -> Tensor:
    # Rounded up, as the library has it. Inputs are at most fp32, whose squares fp64 holds.
    return x.square().sum(-1).sqrt() * (1 + 2.0**-40)


def _unit(x: Tensor, number_format: NumberFormat, factor: Tensor | None) -> Tensor:
    """``factor`` is what the numbers of the format were multiplied by."""
    size, least = x.abs(), number_format.smallest_normal
    large = size.clamp(min=least) if factor is None else torch.maximum(size, factor.abs() * least)
    return _norm(torch.where(size == 0, size, large))


def head_tensors(
    problem: AttentionProblem, shape: Shape, heads: range, keys: VisibleKeys | None = None
) -> HeadTensors:
    """Some query heads, counted over [batch, heads], which all see ``keys``: by default those of the
    first.
    """
    group = shape.heads // shape.kv_heads
    q = problem.q.flatten(0, 1)[heads.start : heads.stop : heads.step].double()
    of_keys = [head // group for head in heads]
    low = of_keys[0]
    k, v = (x.flatten(0, 1)[low : of_keys[-1] + 1].double() for x in (problem.k, problem.v))
    if len(of_keys) != k.shape[0]:
        places = torch.tensor(of_keys, device=q.device) - low
        k, v = k[places], v[places]
    # Products of an fp32 factor and a number of a shorter format are exact in fp64.
    of_q, of_k, of_v = (
        None if x is None else of_heads(x, numbers, count).double()
        for x, numbers, count in zip(
            problem.features.factors,
            (list(heads), of_keys, of_keys),
            (shape.heads, shape.kv_heads, shape.kv_heads),
            strict=True,
        )
    )
    q, k, v = (x if by is None else x * by for x, by in ((q, of_q), (k, of_k), (v, of_v)))
    inputs = FORMATS[problem.q.dtype]
    key_norm, key_unit = _norm(k), _unit(k, inputs, of_k)
    sizes = torch.stack([key_norm, key_unit, v.abs().amax(-1)])
    if keys is None:
        keys = visible_keys(problem, shape, q.device, heads.start)
    largest = largest_seen(sizes, keys)
    sums = torch.zeros(
        len(heads), shape.keys + 1, shape.v_dim, dtype=torch.float64, device=v.device
    )
    sums[:, 1:] = _sums_so_far(v.abs())
    return HeadTensors(
        shape,
        heads,
        q,
        k,
        v,
        _norm(q),
        key_norm,
        _unit(q, inputs, of_q),
        key_unit,
        largest[0],
        largest[1],
        largest[2],
        sums,
        torch.cat([v, v.abs(), v.square()], 2),
    )


def _sums_so_far(x: Tensor) -> Tensor:
    """Sums up to each of the keys of [heads, keys, columns]: in blocks, since a GPU adds up columns one
    number after the other.
    """
    keys = x.shape[1]
    blocks = torch.nn.functional.pad(x, (0, 0, 0, -keys % _SUMMED)).unflatten(1, (-1, _SUMMED))
    within = blocks.cumsum(2)
    before = within[:, :, -1].cumsum(1) - within[:, :, -1]
    return (within + before[:, :, None]).flatten(1, 2)[:, :keys]


@dataclass(frozen=True)
class WeightBlock:
    """Some queries of some heads against the keys from ``first_key`` on, in fp64: [heads, rows, keys]; and
    [rows, …] for the rows of all heads, head by head.
    """

    heads: int
    first_row: int
    first_key: int
    seen: VisibleKeys
    """The keys that the queries of one head see."""
    keys: VisibleKeys
    """Those of the rows."""
    exponents: Tensor
    """log2 e · score; −∞ or any other number for a key that the row does not see."""
    maximum: Tensor
    """[rows]: the largest exponent; 0 for a row without keys."""
    weights: Tensor
    """w = 2^(exponent − maximum) / Σ; 0 for a key that the row does not see."""
    total: Tensor
    """[rows]: Σ 2^(exponent − maximum); 0 for a row without keys."""
    out: Tensor
    """[rows, v dim]: O = Σ w v."""
    magnitude: Tensor
    """[rows, v dim]: Σ w |v|."""
    squares: Tensor
    """[rows, v dim]: Σ w v²."""
    lse: Tensor
    """[rows]: natural logarithm; −∞ for a row without keys."""
    trust: Tensor
    """[rows]: the largest relative error of a weight before the division."""
    added: Addends | None = None
    """What was added to scores."""
    sunk: SunkRows | None = None
    """The rows' sinks, which ``total`` and the weights of keys alone do not have."""
    key_weights: Tensor | None = None
    """The weights relative to the keys' row sum, where a sink has a part of it."""

    @property
    def is_plain(self) -> bool:
        """Whether rows see whole ranges of keys, whose scores are those of Q and K alone."""
        return self.added is None and self.seen.holes is None

    @property
    def weights_of_keys(self) -> Tensor:
        """Weights relative to the row sum of the keys."""
        return self.weights if self.key_weights is None else self.key_weights

    @property
    def whole(self) -> Tensor:
        """[rows]: Σ 2^(exponent − maximum) with the sink; 0 for a row without keys."""
        return self.total if self.sunk is None else kept_where(self.total > 0, self.sunk.whole)

    @cached_property
    def hidden(self) -> Tensor | None:
        """Keys that the queries of a head do not see, [rows, keys]."""
        return hidden_keys(self.seen, self.first_key, self.weights.shape[2])

    @property
    def queries(self) -> slice:
        """The rows of each head."""
        return slice(self.first_row, self.first_row + self.weights.shape[1])

    @property
    def columns(self) -> slice:
        """The keys."""
        return slice(self.first_key, self.first_key + self.weights.shape[2])

    def by_head(self, x: Tensor) -> Tensor:
        """Numbers of all rows as [heads, rows of each, …]."""
        return x.unflatten(0, (self.heads, self.weights.shape[1]))

    @cached_property
    def out_radius(self) -> Tensor:
        """|out − O| is at most this: Theorem 13."""
        terms = self.weights.shape[2]
        relative = 2 * self.trust + gamma(2.0 * terms + 3)
        radius = (relative * (1 + 2.0**-8))[:, None] * self.magnitude + 2.0**-900
        return kept_where(self.total[:, None] > 0, radius)

    @cached_property
    def out_distance(self) -> Tensor:
        """How far the command line's exact O may be: it has a radius of 2^-40 Σ w|v| itself."""
        return self.out_radius + 2.0**-40 * self.magnitude

    @cached_property
    def lse_distance(self) -> Tensor:
        """The same of the LSE, whose radius is 2^-34 there, or 2^-52 of a large one."""
        own = 2.0**-34 + 2.0**-52 * self.lse.abs()
        return self.lse_radius + kept_where(self.total > 0, own)

    @cached_property
    def lse_radius(self) -> Tensor:
        """|lse − LSE| is at most this: Theorem 13."""
        terms = self.weights.shape[2]
        size = self.lse.abs() + self.maximum.abs() + 2 * self.whole.log().abs() + 1
        radius = (self.trust + gamma(float(terms))) * (1 + 2.0**-8) + 8 * ROUNDOFF * size
        return kept_where(self.total > 0, radius)


def weigh_block(
    problem: AttentionProblem,
    head: HeadTensors,
    keys: VisibleKeys,
    first_row: int,
    lowest: int,
    highest: int,
) -> WeightBlock:
    """The weights of the rows from ``first_row`` on that ``keys`` says, none of which sees a key
    outside lowest … highest.
    """
    count = keys.begin.shape[0]
    q = head.q[:, first_row : first_row + count]
    k, v = head.k[:, lowest:highest], head.v[:, lowest:highest]
    exponents = _exponents(problem, q, k)
    rows, columns = slice(first_row, first_row + count), slice(lowest, highest)
    added = addends_of(problem, head.shape, head.numbers, rows, columns)
    if added is not None:
        exponents.add_(added.value, alpha=LOG2E)
    is_plain = added is None and keys.holes is None
    weighed = engine_of(q.device, is_plain=is_plain).weigh(exponents, keys, lowest)
    maximum, total = weighed.maximum.flatten(), weighed.total.flatten()
    sunk = sunk_rows(problem, head.shape, head.numbers, weighed.maximum, weighed.total)
    weights, of_keys = weighed.weights, None
    if sunk is not None:
        of_keys = weights
        weights = weights * sunk.share.unflatten(0, (head.count, count))[:, :, None]
    sums = torch.bmm(weights, head.value_powers[:, lowest:highest]).flatten(0, 1)
    out, magnitude, squares = sums.split(v.shape[2], 1)
    return WeightBlock(
        head.count,
        first_row,
        lowest,
        keys,
        keys.repeated(head.count),
        exponents,
        maximum,
        weights,
        total,
        out,
        magnitude,
        squares,
        _lse(maximum, total, sunk),
        _trust(problem, head, keys, rows, (exponents, weighed.maximum), added, sunk),
        added,
        sunk,
        of_keys,
    )


def _lse(maximum: Tensor, total: Tensor, sunk: SunkRows | None) -> Tensor:
    if sunk is None or not sunk.is_in_lse:
        return (maximum + total.log2()) * LN2
    alone = torch.where(sunk.is_there, sunk.exponent, -math.inf)
    return torch.where(total > 0, maximum + sunk.whole.log2(), alone) * LN2


def _exponents(problem: AttentionProblem, q: Tensor, k: Tensor) -> Tensor:
    scale, softcap = problem.used_scale, problem.softcap
    exponents = torch.bmm(q, k.transpose(1, 2))
    if softcap is None:
        return exponents.mul_(scale * LOG2E)
    return exponents.mul_(scale / softcap).tanh_().mul_(softcap * LOG2E)


def _trust(
    problem: AttentionProblem,
    head: HeadTensors,
    keys: VisibleKeys,
    rows: slice,
    of_scores: tuple[Tensor, Tensor],
    added: Addends | None,
    sunk: SunkRows | None,
) -> Tensor:
    """Theorem 13: how far a weight, or a sink's, may be off, relatively, before the division by the row
    sum. ``of_scores`` are exponents, and the largest of each row [heads, rows].
    """
    exponents, largest = of_scores
    maximum = largest.flatten()
    norms = head.query_norm[:, rows] * head.largest_key_norm[:, rows]
    score = abs(problem.used_scale) * norms.flatten()
    dot = gamma(float(head.q.shape[2])) * score
    size = score
    if problem.softcap is not None:
        size = score.clamp(max=problem.softcap)
        # The slope of a softcap is at most 1; its quotient, tanh and product round.
        dot = dot + 4 * ROUNDOFF * score + (TANH_ERROR + 2 * ROUNDOFF) * problem.softcap
    if added is not None:
        size = size + _largest_that_counts(exponents, largest, added).flatten()
    # Two constants and a product of an exponent, an addend's two, their sum, and its difference from the maximum.
    steps = 6 if added is None else 10
    exponent = dot + steps * ROUNDOFF * (size + maximum.abs() * LN2) + 2.0**-900
    if sunk is not None:
        own = steps * ROUNDOFF * (sunk.size + maximum.abs()) * LN2
        exponent = torch.maximum(exponent, own)
    relative = (exponent + exponent.square()) * (1 + 2.0**-8) + EXP2_ERROR
    return relative.masked_fill(~(exponent < 2.0**-10), math.inf)


def _largest_that_counts(exponents: Tensor, largest: Tensor, added: Addends) -> Tensor:
    """The largest size of an addend of a key that may have any weight in fp64, [heads, rows]."""
    least = largest[:, :, None] - _WEIGHTLESS
    may_count = exponents + 2.0**-40 * LOG2E * added.size > least
    return kept_where(may_count, added.size).amax(-1)
