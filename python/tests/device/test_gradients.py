"""Theorem 23: the radius of the device's gradients holds, and is small."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
import torch
from problems import drawn

from flashproof.device import AttentionProblem, exact_gradients

Rows = list[list[Decimal]]


def decimal(x: float | Fraction) -> Decimal:
    exact = Fraction(x)
    return Decimal(exact.numerator) / Decimal(exact.denominator)


def dot(a: list[Decimal], b: list[Decimal]) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def rows_of(x: torch.Tensor) -> Rows:
    return [[decimal(y) for y in row] for row in x.double().tolist()]


def sees(problem: AttentionProblem, row: int, key: int) -> bool:
    """Causal and window masks in words of their definition."""
    offset = key - (row + problem.k.shape[2] - problem.q.shape[2])
    left, right = problem.window or (-1, -1)
    return not (
        (problem.causal and offset > 0)
        or (right >= 0 and offset > right)
        or (left >= 0 and offset < -left)
    )


def add_exact_head(
    problem: AttentionProblem, dout: torch.Tensor, head: int, into: tuple[Rows, Rows, Rows]
) -> None:
    """Adds what a head of the only batch entry has of dQ, dK and dV, to fifty digits."""
    kv = head // (problem.q.shape[1] // problem.k.shape[1])
    q, k, v, d = (
        rows_of(x) for x in (problem.q[0, head], problem.k[0, kv], problem.v[0, kv], dout[0, head])
    )
    scale = decimal(problem.used_scale)
    for i, query in enumerate(q):
        seen = [j for j in range(len(k)) if sees(problem, i, j)]
        if not seen:
            continue
        scores = [scale * dot(query, k[j]) for j in seen]
        powers = [(s - max(scores)).exp() for s in scores]
        p = [x / sum(powers, Decimal(0)) for x in powers]
        x = [dot(d[i], v[j]) for j in seen]
        delta = dot(p, x)
        for j, weight, value in zip(seen, p, x, strict=True):
            share = scale * weight * (value - delta)
            for c in range(len(query)):
                into[0][i][c] += share * k[j][c]
                into[1][j][c] += share * query[c]
            for c, y in enumerate(d[i]):
                into[2][j][c] += weight * y


def zeros(rows: int, columns: int) -> Rows:
    return [[Decimal(0)] * columns for _ in range(rows)]


@pytest.mark.parametrize("size", [0.1, 1.0, 8.0, 100.0])
@pytest.mark.parametrize(
    ("causal", "window"), [(False, None), (True, None), (False, (2, 1)), (True, (3, -1))]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_radius_holds(
    size: float, causal: bool, window: tuple[int, int] | None, dtype: torch.dtype
) -> None:
    # With more queries than keys some rows see no key under a causal mask.
    problem = drawn((1, 2, 1, 9, 7, 8), dtype, 3, size=size, causal=causal, window=window)
    dout = torch.randn(1, 2, 9, 8, generator=torch.Generator().manual_seed(4)).to(dtype)
    found = exact_gradients(problem, dout)
    with localcontext() as context:
        context.prec = 50
        dk, dv = zeros(7, 8), zeros(7, 8)
        pairs = []
        for head in range(2):
            dq = zeros(9, 8)
            add_exact_head(problem, dout, head, (dq, dk, dv))
            pairs.append((dq, found.dq, head))
        for exact, gradient, head in [*pairs, (dk, found.dk, 0), (dv, found.dv, 0)]:
            values, radii = gradient.values[0, head].tolist(), gradient.radius[0, head].tolist()
            for row, numbers in enumerate(exact):
                for c, number in enumerate(numbers):
                    error = abs(Decimal(values[row][c]) - number)
                    assert error <= Decimal(radii[row][c])
    # A radius that says nothing would hold as well.
    for gradient in (found.dq, found.dk, found.dv):
        largest = gradient.values.abs().max()
        assert float(gradient.radius.max()) <= 2.0**-34 * max(1.0, size) ** 3 * max(
            1.0, float(largest)
        )


def test_blocks_of_rows_make_the_gradients_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = drawn((2, 4, 2, 50, 60, 16), torch.bfloat16, 5, causal=True)
    dout = torch.randn(2, 4, 50, 16, generator=torch.Generator().manual_seed(6)).bfloat16()
    whole = exact_gradients(problem, dout)
    monkeypatch.setattr("flashproof.device.gradients.Room.rows", lambda room, keys: 7)
    blocks = exact_gradients(problem, dout)
    for name in ("dq", "dk", "dv"):
        a, b = getattr(whole, name), getattr(blocks, name)
        assert bool(((a.values - b.values).abs() <= a.radius + b.radius).all())


def test_a_scale_off_by_a_billionth_is_told_apart() -> None:
    problem = drawn((1, 2, 1, 9, 30, 16), torch.bfloat16, 3)
    dout = torch.randn(1, 2, 9, 16, generator=torch.Generator().manual_seed(4)).bfloat16()
    moved = AttentionProblem(problem.q, problem.k, problem.v, problem.used_scale * (1 + 2.0**-30))
    first, second = exact_gradients(problem, dout), exact_gradients(moved, dout)
    for name in ("dq", "dk", "dv"):
        a, b = getattr(first, name), getattr(second, name)
        assert bool(((a.values - b.values).abs() > a.radius + b.radius).any())


def test_scores_beyond_the_theorem_have_no_radius() -> None:
    problem = drawn((1, 1, 1, 3, 4, 8), torch.float32, 3, size=2.0**22)
    dout = torch.ones(1, 1, 3, 8)
    found = exact_gradients(problem, dout)
    for gradient in (found.dq, found.dk, found.dv):
        assert bool(gradient.radius.isinf().all())


def test_what_is_not_covered_is_said() -> None:
    problem = drawn((1, 1, 1, 3, 4, 8), torch.float32, 3, softcap=5.0)
    with pytest.raises(ValueError, match="softcap"):
        exact_gradients(problem, torch.ones(1, 1, 3, 8))
    problem = drawn((1, 1, 1, 3, 4, 8), torch.float32, 3)
    with pytest.raises(ValueError, match="dout has shape"):
        exact_gradients(problem, torch.ones(1, 1, 4, 8))
    with pytest.raises(ValueError, match="dout holds infinities"):
        exact_gradients(problem, torch.full((1, 1, 3, 8), float("nan")))
