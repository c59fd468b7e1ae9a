"""Theorem 13: the radius of the device's oracle holds for sums in any order, and two ulp hold for
its exponential.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
import torch
from problems import drawn

from flashproof.device.formats import FORMATS, nearest, ulp
from flashproof.device.masks import RangeMaxima, VisibleKeys, visible_keys
from flashproof.device.measure import key_span
from flashproof.device.problem import AttentionProblem, shape_of
from flashproof.device.weights import (
    EXP2_ERROR,
    TANH_ERROR,
    WeightBlock,
    head_tensors,
    weigh_block,
)


def block_of(problem: AttentionProblem) -> WeightBlock:
    """The first head of a small problem, all rows."""
    shape = shape_of(problem)
    keys = visible_keys(problem, shape, problem.q.device)
    return weigh_block(problem, head_tensors(problem, shape, range(1)), keys, 0, *key_span(keys))


def exact_row(problem: AttentionProblem, row: int) -> tuple[list[Decimal], Decimal]:
    """O and the LSE of a row of the first head, to fifty digits."""
    q = [Fraction(x) for x in problem.q[0, 0, row].double().tolist()]
    scores, values = [], problem.v[0, 0].double().tolist()
    end = (
        row + 1 + problem.k.shape[2] - problem.q.shape[2] if problem.causal else problem.k.shape[2]
    )
    for key in problem.k[0, 0, :end].double().tolist():
        dot = sum(a * Fraction(b) for a, b in zip(q, key, strict=True)) * Fraction(
            problem.used_scale
        )
        score = Decimal(dot.numerator) / Decimal(dot.denominator)
        if problem.softcap is not None:
            e = (2 * score / Decimal(problem.softcap)).exp()
            score = Decimal(problem.softcap) * (e - 1) / (e + 1)
        scores.append(score)
    largest = max(scores)
    weights = [(score - largest).exp() for score in scores]
    total = sum(weights, Decimal(0))
    columns = range(len(values[0]))
    out = [
        sum((w * Decimal(values[j][c]) for j, w in enumerate(weights)), Decimal(0)) / total
        for c in columns
    ]
    return out, largest + total.ln()


@pytest.mark.parametrize("size", [0.1, 1.0, 8.0, 100.0])
@pytest.mark.parametrize("softcap", [None, 5.0])
@pytest.mark.parametrize("causal", [False, True])
def test_the_radius_holds(size: float, softcap: float | None, causal: bool) -> None:
    problem = drawn(
        (1, 1, 1, 4, 40, 16), torch.float32, 3, size=size, softcap=softcap, causal=causal
    )
    block = block_of(problem)
    with localcontext() as context:
        context.prec = 50
        for row in range(4):
            out, lse = exact_row(problem, row)
            for c, exact in enumerate(out):
                error = abs(Decimal(float(block.out[row, c])) - exact)
                assert error <= Decimal(float(block.out_radius[row, c]))
            assert abs(Decimal(float(block.lse[row])) - lse) <= Decimal(
                float(block.lse_radius[row])
            )
    # A radius that says nothing would hold as well.
    assert bool((block.out_radius <= 2.0**-36 * max(1, size) ** 2 * block.magnitude).all())


def test_the_radius_is_of_some_use() -> None:
    """Values that differ by a thousandth of what bounds allow are told apart by far."""
    problem = drawn((1, 1, 1, 4, 40, 16), torch.bfloat16, 3)
    moved = AttentionProblem(problem.q, problem.k, problem.v, problem.used_scale * (1 + 2.0**-24))
    first, second = block_of(problem), block_of(moved)
    assert bool(
        (
            (first.out - second.out).abs().amax(1) > (first.out_radius + second.out_radius).amax(1)
        ).all()
    )


def test_exp2_and_tanh_are_within_two_ulp() -> None:
    generator = torch.Generator().manual_seed(5)
    x = torch.rand(2000, generator=generator, dtype=torch.float64) * -60
    with localcontext() as context:
        context.prec = 50
        for argument, power in zip(x.tolist(), x.exp2().tolist(), strict=True):
            exact = Decimal(2) ** Decimal(argument)
            assert abs(Decimal(power) - exact) <= Decimal(EXP2_ERROR) * exact
        for argument, value in zip((x / 20).tolist(), (x / 20).tanh().tolist(), strict=True):
            e = (2 * Decimal(argument)).exp()
            exact = (e - 1) / (e + 1)
            assert abs(Decimal(value) - exact) <= Decimal(TANH_ERROR) * abs(exact)


@pytest.mark.parametrize("dtype", list(FORMATS))
def test_formats_round_as_pytorch_does(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(9)
    number_format = FORMATS[dtype]
    exponents = torch.rand(4000, generator=generator, dtype=torch.float64) * 20 - 12
    x = (torch.rand(4000, generator=generator, dtype=torch.float64) - 0.5) * exponents.exp2()
    # To fp64's neighbours of fp32 first, since PyTorch rounds to short formats by way of it.
    x = x.float().double().clamp(-number_format.max_finite / 2, number_format.max_finite / 2)
    assert torch.equal(nearest(number_format, x), x.to(dtype).double())
    unit = ulp(number_format, x)
    stored = nearest(number_format, x)
    assert bool(((x - stored).abs() <= unit / 2).all())


def test_range_maxima() -> None:
    values = torch.rand(37, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    pairs = [(a, b) for a in range(38) for b in range(a, 38)]
    keys = VisibleKeys(torch.tensor([a for a, _ in pairs]), torch.tensor([b for _, b in pairs]))
    found = RangeMaxima(values).over(keys).tolist()
    assert found == [max(values[a:b].tolist(), default=0.0) for a, b in pairs]
    assert math.isclose(max(found), float(values.max()))
