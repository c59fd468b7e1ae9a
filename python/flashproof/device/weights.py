"""Exact weights of a block of queries, in fp64, with what they leave of O and the LSE: the
device's oracle.

Its radius is Theorem 13 of docs/theory/bounds.md, which holds for sums in any order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .formats import FORMATS, NumberFormat
from .masks import RangeMaxima, VisibleKeys
from .problem import AttentionProblem, Shape

ROUNDOFF = 2.0**-53
"""The unit roundoff of fp64."""
EXP2_ERROR = 4 * ROUNDOFF
"""Largest relative error taken of exp2: two ulp, an assumption (CUDA: tests; SLEEF: 1.0)."""
TANH_ERROR = 4 * ROUNDOFF
"""The same of fp64's tanh."""
LN2 = math.log(2)
LOG2E = 1 / LN2


def gamma(operations: float) -> float:
    """n·u / (1 − n·u): what n roundings come to (Higham, *Accuracy and Stability*, Lemma 3.1)."""
    return operations * ROUNDOFF / (1 - operations * ROUNDOFF)


@dataclass(frozen=True)
class HeadTensors:
    """One query head with the keys and values that it reads, in fp64, and how large they are."""

    q: Tensor
    k: Tensor
    v: Tensor
    query_norm: Tensor
    """[queries]: Euclidean norms, rounded up."""
    key_norm: Tensor
    query_unit: Tensor
    """[queries]: the same where numbers below the smallest normal one count as that; so errors of
    scores are scaled.
    """
    key_unit: Tensor
    largest_key_norm: RangeMaxima
    largest_key_unit: RangeMaxima
    largest_value: RangeMaxima
    value_sums: Tensor
    """[keys + 1, v dim]: Σ |v| of the keys before each."""


def _norm(x: Tensor) -> Tensor:
    # Rounded up, as the library has it. Inputs are at most fp32, whose squares fp64 holds.
    return x.square().sum(-1).sqrt() * (1 + 2.0**-40)


def _unit(x: Tensor, number_format: NumberFormat) -> Tensor:
    size = x.abs()
    return _norm(torch.where(size == 0, size, size.clamp(min=number_format.smallest_normal)))


def head_tensors(problem: AttentionProblem, shape: Shape, batch: int, head: int) -> HeadTensors:
    """Query head ``head`` of batch entry ``batch``."""
    kv = head // (shape.heads // shape.kv_heads)
    q, k, v = (
        x.double() for x in (problem.q[batch, head], problem.k[batch, kv], problem.v[batch, kv])
    )
    inputs = FORMATS[problem.q.dtype]
    key_norm, key_unit = _norm(k), _unit(k, inputs)
    sums = torch.zeros(shape.keys + 1, shape.v_dim, dtype=torch.float64, device=v.device)
    torch.cumsum(v.abs(), 0, out=sums[1:])
    return HeadTensors(
        q,
        k,
        v,
        _norm(q),
        key_norm,
        _unit(q, inputs),
        key_unit,
        RangeMaxima(key_norm),
        RangeMaxima(key_unit),
        RangeMaxima(v.abs().amax(-1)),
        sums,
    )


@dataclass(frozen=True)
class WeightBlock:
    """Some queries of one head against the keys from ``first_key`` on: [rows, keys] and [rows, …],
    fp64.
    """

    first_row: int
    first_key: int
    keys: VisibleKeys
    exponents: Tensor
    """log2 e · score; −∞ for a key that the row does not see."""
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
    units: Tensor
    """[rows, 4]: Σ w u^n for n = 1 … 4, u the keys' units."""
    lse: Tensor
    """[rows]: natural logarithm; −∞ for a row without keys."""
    trust: Tensor
    """[rows]: the largest relative error of a weight before the division."""
    hidden: Tensor | None
    """Where a row does not see a key; None where all see all."""

    @property
    def out_radius(self) -> Tensor:
        """|out − O| is at most this: Theorem 13."""
        terms = self.weights.shape[1]
        relative = 2 * self.trust + gamma(2.0 * terms + 3)
        radius = (relative * (1 + 2.0**-8))[:, None] * self.magnitude + 2.0**-900
        return torch.where(self.total[:, None] > 0, radius, 0.0)

    @property
    def out_distance(self) -> Tensor:
        """How far the command line's exact O may be: it has a radius of 2^-40 Σ w|v| itself."""
        return self.out_radius + 2.0**-40 * self.magnitude

    @property
    def lse_distance(self) -> Tensor:
        """The same of the LSE, whose radius is 2^-34 there, or 2^-52 of a large one."""
        own = 2.0**-34 + 2.0**-52 * self.lse.abs()
        return self.lse_radius + torch.where(self.total > 0, own, 0.0)

    @property
    def lse_radius(self) -> Tensor:
        """|lse − LSE| is at most this: Theorem 13."""
        terms = self.weights.shape[1]
        size = self.lse.abs() + self.maximum.abs() + 2 * self.total.log().abs() + 1
        radius = (self.trust + gamma(float(terms))) * (1 + 2.0**-8) + 8 * ROUNDOFF * size
        return torch.where(self.total > 0, radius, 0.0)


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
    q = head.q[first_row : first_row + keys.begin.shape[0]]
    k, v = head.k[lowest:highest], head.v[lowest:highest]
    scale, softcap = problem.used_scale, problem.softcap
    exponents = q @ k.T
    if softcap is None:
        exponents.mul_(scale * LOG2E)
    else:
        exponents.mul_(scale / softcap).tanh_().mul_(softcap * LOG2E)
    place = torch.arange(lowest, highest, device=q.device)
    hidden = None
    if bool(((keys.begin > lowest) | (keys.end < highest)).any()):
        hidden = (place < keys.begin[:, None]) | (place >= keys.end[:, None])
        exponents.masked_fill_(hidden, -math.inf)
    maximum = exponents.amax(-1)
    maximum = torch.where(maximum > -math.inf, maximum, 0.0)
    weights = (exponents - maximum[:, None]).exp2_()
    total = weights.sum(-1)
    weights.div_(torch.where(total > 0, total, 1.0)[:, None])
    unit = head.key_unit[lowest:highest]
    columns = torch.cat([v, v.abs(), v.square(), torch.stack([unit**n for n in range(1, 5)], 1)], 1)
    out, magnitude, squares, units = torch.split(weights @ columns, [v.shape[1]] * 3 + [4], 1)
    lse = (maximum + total.log2()) * LN2
    return WeightBlock(
        first_row,
        lowest,
        keys,
        exponents,
        maximum,
        weights,
        total,
        out,
        magnitude,
        squares,
        units,
        lse,
        _trust(problem, head, keys, first_row, maximum),
        hidden,
    )


def _trust(
    problem: AttentionProblem,
    head: HeadTensors,
    keys: VisibleKeys,
    first_row: int,
    maximum: Tensor,
) -> Tensor:
    """Theorem 13: how far a weight may be off, relatively, before the division by the row sum."""
    norm = head.query_norm[first_row : first_row + maximum.shape[0]]
    score = abs(problem.used_scale) * norm * head.largest_key_norm.over(keys)
    dot = gamma(float(head.q.shape[1])) * score
    size = score
    if problem.softcap is not None:
        size = score.clamp(max=problem.softcap)
        # The slope of a softcap is at most 1; its quotient, tanh and product round.
        dot = dot + 4 * ROUNDOFF * score + (TANH_ERROR + 2 * ROUNDOFF) * problem.softcap
    # Two constants and a product of an exponent, and its difference from the maximum.
    exponent = dot + 6 * ROUNDOFF * (size + maximum.abs() * LN2) + 2.0**-900
    relative = (exponent + exponent.square()) * (1 + 2.0**-8) + EXP2_ERROR
    return torch.where(exponent < 2.0**-10, relative, math.inf)
