"""Kernels of Triton against operations of PyTorch: on a GPU, or anywhere by Triton's interpreter where
TRITON_INTERPRET=1 is set (which takes numpy before 2.4). Both engines stand under Theorem 13.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal, localcontext
from typing import Any

import pytest
import torch
from problems import ALL_OUTPUTS, drawn, read_capture, textbook, textbook_gradients

from flashproof.device import AttentionProblem, KernelGradients, KernelOutputs
from flashproof.device.backward import measure_gradients
from flashproof.device.backward.pair_law import PairLaw, PairMatrices, PairSums, Rows
from flashproof.device.backward.pair_passes import pairs_of
from flashproof.device.backward.premises import pair_arithmetic
from flashproof.device.backward.rows import row_errors
from flashproof.device.formats import FORMATS
from flashproof.device.kernel_rows import kernel_rows
from flashproof.device.masks import VisibleKeys, visible_keys
from flashproof.device.measure import key_span, measure
from flashproof.device.premises import premises_of
from flashproof.device.problem import shape_of
from flashproof.device.row_errors import row_totals
from flashproof.device.scores import engine_of, runs_triton, use_engine
from flashproof.device.weights import EXP2_ERROR, ROUNDOFF, head_tensors, weigh_block

HAS_GPU = torch.cuda.is_available()
IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cuda" if HAS_GPU else "cpu")
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or not (HAS_GPU or IS_INTERPRETED),
    reason="needs Triton, and a GPU or TRITON_INTERPRET=1",
)
needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")

Case = tuple[tuple[int, int, int, int, int, int], torch.dtype, dict[str, Any]]
CASES: dict[str, Case] = {
    "plain": ((1, 2, 2, 20, 70, 16), torch.bfloat16, {}),
    "causal": ((1, 1, 1, 70, 130, 16), torch.float16, {"causal": True}),
    "window": ((1, 1, 1, 60, 200, 16), torch.bfloat16, {"window": (30, 5), "size": 3.0}),
    "rows without keys": ((1, 2, 1, 70, 60, 8), torch.bfloat16, {"causal": True}),
}
OF_OUTPUTS: dict[str, Case] = {
    **CASES,
    "fp32": ((1, 1, 1, 40, 150, 16), torch.float32, {"window": (20, -1)}),
    "e4m3 under a softcap": ((1, 1, 1, 30, 90, 16), torch.float8_e4m3fn, {"softcap": 3.0}),
    "many keys": ((1, 1, 1, 2, 2100, 8), torch.bfloat16, {}),
}


@pytest.fixture
def engines() -> Iterator[tuple[str, str]]:
    yield "eager", "triton"


def problem_of(case: Case) -> AttentionProblem:
    sizes, dtype, settings = case
    problem = drawn(sizes, dtype, 3, **settings)
    return moved(problem)


def moved(x: Any) -> Any:
    """Tensors of a record on the device of these tests."""
    members = {
        name: of.to(DEVICE) if isinstance(of, torch.Tensor) else of for name, of in vars(x).items()
    }
    return type(x)(**members)


def assert_near(found: object, wanted: object, name: str, relative: float = 2.0**-40) -> None:
    if wanted is None or found is None:
        assert found is wanted, name
        return
    assert isinstance(found, torch.Tensor) and isinstance(wanted, torch.Tensor)
    a, b = found.double(), wanted.double()
    # What cancels is near 0 in both; an LSE without keys is −∞ in both.
    floor = relative * float(b.masked_fill(~torch.isfinite(b), 0.0).abs().max())
    assert bool(((a == b) | ((a - b).abs() <= relative * b.abs() + floor)).all()), name


@needs_triton
@pytest.mark.parametrize("name", list(OF_OUTPUTS))
def test_kernels_make_the_sums_of_scores(name: str, engines: tuple[str, str]) -> None:
    problem = problem_of(OF_OUTPUTS[name])
    shape = shape_of(problem)
    premises = premises_of(FORMATS[problem.q.dtype], FORMATS[problem.v.dtype])
    keys = visible_keys(problem, shape, DEVICE)
    head = head_tensors(problem, shape, range(shape.heads))
    generator = torch.Generator().manual_seed(1)
    sizes = (2, shape.heads, shape.queries, shape.v_dim)
    directions = torch.randn(sizes, generator=generator, dtype=torch.float64).to(DEVICE)
    found = []
    for engine in engines:
        with use_engine(engine):
            block = weigh_block(problem, head, keys, 0, *key_span(keys))
            units = head.key_unit[:, block.columns]
            totals = row_totals(problem, head, shape, premises, block, units)
            moments = engine_of(DEVICE).moments(
                directions, head.v[:, block.columns], block.weights, keys.after(block.first_key)
            )
        found.append((block, totals, moments))
    (eager, *of_eager), (fused, *of_fused) = found
    for member in ("maximum", "total", "weights", "out", "magnitude", "lse"):
        assert_near(getattr(fused, member), getattr(eager, member), member)
    is_empty = eager.by_head(eager.total == 0)
    for theirs, mine in zip(of_eager, of_fused, strict=True):
        for one in fields(theirs):
            a, b = getattr(mine, one.name), getattr(theirs, one.name)
            if one.name == "units":
                for x, y in zip(a, b, strict=True):
                    assert_near(x, y, one.name)
            elif one.name in ("is_tied", "heaviest"):
                assert torch.equal(a[~is_empty], b[~is_empty]), one.name
            else:
                assert_near(a, b, one.name)


@needs_triton
@pytest.mark.parametrize("with_scatter", [False, True])
@pytest.mark.parametrize("name", list(CASES))
def test_kernels_make_the_errors_of_pairs(
    name: str, with_scatter: bool, engines: tuple[str, str]
) -> None:
    problem = problem_of(CASES[name])
    shape, number_format = shape_of(problem), FORMATS[problem.q.dtype]
    arithmetic = pair_arithmetic(number_format, number_format, shape, problem.used_scale)
    keys = visible_keys(problem, shape, DEVICE)
    head = head_tensors(problem, shape, range(shape.heads))
    generator = torch.Generator().manual_seed(1)
    douts = torch.randn(shape.heads, shape.queries, shape.v_dim, generator=generator)
    douts = douts.to(problem.q.dtype).double().to(DEVICE)
    dout = douts.flatten(0, 1)
    rows: Rows | None = None
    found: list[tuple[PairSums, PairMatrices]] = []
    for engine in engines:
        with use_engine(engine):
            block = weigh_block(problem, head, keys, 0, *key_span(keys))
            law = PairLaw.of(arithmetic, head, block, dout)
            products = torch.bmm(douts, head.v[:, block.columns].transpose(1, 2))
            pairs = pairs_of(law, block.exponents, block.weights, products)
            sums = pairs.sums(with_scatter=with_scatter)
            if rows is None:
                kernel = kernel_rows(problem, head, shape, arithmetic.premises, block)
                judged = torch.ones_like(block.total, dtype=torch.bool)
                stored = None if with_scatter else block.out
                rows = row_errors(arithmetic, block, kernel, sums, judged, dout, stored)
            found.append((sums, pairs.matrices(rows)))
    for theirs, mine in zip(*found, strict=True):
        for one in fields(theirs):
            # Differences from D cancel where one key has all the weight.
            of_mean = "scatter" in one.name or one.name in ("share", "size")
            relative = 2.0**-20 if of_mean else 2.0**-36
            assert_near(getattr(mine, one.name), getattr(theirs, one.name), one.name, relative)


@needs_gpu
def test_exp2_of_the_kernels_is_within_two_ulp() -> None:
    """A row of the exponents x and 0 has weights 2^x / Σ and 1 / Σ, whose quotient rounds thrice."""
    generator = torch.Generator().manual_seed(5)
    x = torch.rand(2**20, generator=generator, dtype=torch.float64) * -60
    exponents = torch.stack([x, torch.zeros_like(x)], 1)[None].to(DEVICE)
    seen = torch.zeros(2**20, dtype=torch.int64, device=DEVICE)
    with use_engine("triton"):
        weights = engine_of(DEVICE).weigh(exponents, VisibleKeys(seen, seen + 2), 0).weights[0]
    powers = (weights[:, 0] / weights[:, 1]).cpu()
    allowed = EXP2_ERROR + 3 * ROUNDOFF
    with localcontext() as context:
        context.prec = 50
        for argument, power in zip(x[:4000].tolist(), powers[:4000].tolist(), strict=True):
            exact = Decimal(2) ** Decimal(argument)
            assert abs(Decimal(power) - exact) <= Decimal(allowed) * exact
    # The CPU's own is within two ulp of the exact one (test_oracle.py).
    exact_enough = x.exp2()
    assert bool(((powers - exact_enough).abs() <= (allowed + EXP2_ERROR) * exact_enough).all())


Damage = tuple[str, float]
DAMAGES: list[Damage] = [("none", 1.0), ("rows", 1.02), ("all", 1.002)]


def damaged(x: torch.Tensor, damage: Damage) -> torch.Tensor:
    """Some rows, or all, times a factor."""
    where, factor = damage
    changed = x.clone()
    rows = slice(3, 20) if where == "rows" else slice(None)
    if where != "none":
        changed[0, 0, rows] = (changed[0, 0, rows].float() * factor).to(x.dtype)
    return changed


@needs_gpu
@pytest.mark.parametrize("damage", DAMAGES, ids=[x[0] for x in DAMAGES])
@pytest.mark.parametrize(("capture", "kernel"), ALL_OUTPUTS)
def test_engines_find_the_same_of_captures(capture: str, kernel: str, damage: Damage) -> None:
    problem, outputs = read_capture(capture, kernel)
    given = moved(KernelOutputs(damaged(outputs.out, damage), outputs.lse))
    problem = moved(problem)
    with use_engine("eager"):
        eager = measure(problem, given, 1e-9)
    with use_engine("triton"):
        fused = measure(problem, given, 1e-9)
    assert fused.open_heads == eager.open_heads
    assert fused.is_surely_beyond == eager.is_surely_beyond
    assert fused.open_rows == eager.open_rows
    assert fused.lost.may_be_all == eager.lost.may_be_all
    assert fused.elements.worst.ratio == pytest.approx(eager.elements.worst.ratio, rel=1e-7)
    for scope, result in eager.spread.results.items():
        assert fused.spread.results[scope].ratio == pytest.approx(result.ratio, rel=1e-7)
    for test, one in eager.structure.results.items():
        # A statistic of 0 is fp64's own roundings.
        assert fused.structure.results[test].ratio == pytest.approx(one.ratio, rel=1e-6, abs=1e-6)


@needs_gpu
@pytest.mark.parametrize("damage", DAMAGES, ids=[x[0] for x in DAMAGES])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("settings", [{}, {"causal": True}, {"window": (70, 20)}])
def test_engines_find_the_same_of_gradients(
    settings: dict[str, Any], dtype: torch.dtype, damage: Damage
) -> None:
    problem = drawn((2, 4, 2, 300, 400, 64), dtype, 7, **settings)
    outputs = textbook(problem, dtype, dtype)
    dout = torch.randn(outputs.out.shape, generator=torch.Generator().manual_seed(3)).to(dtype)
    gradients = textbook_gradients(problem, outputs, dout)
    assert gradients.dq is not None and gradients.dk is not None and gradients.dv is not None
    changed = (damaged(x, damage) for x in (gradients.dq, gradients.dk, gradients.dv))
    given = moved(KernelGradients(dout, *changed))
    problem, out = moved(problem), outputs.out.to(DEVICE)
    for stored in (out, None):
        found = []
        for engine in ("eager", "triton"):
            with use_engine(engine):
                found.append(measure_gradients(problem, given, stored, 1e-9))
        eager, fused = found
        assert fused.open_groups == eager.open_groups
        assert fused.worst_ratio == pytest.approx(eager.worst_ratio, rel=1e-6)


def test_an_engine_is_chosen_by_name() -> None:
    with use_engine("eager"):
        assert not runs_triton(DEVICE)
    with use_engine("triton"):
        assert runs_triton(torch.device("cpu"))
    with pytest.raises(ValueError, match="name eager or triton"), use_engine("cuda"):
        pass
    assert not runs_triton(torch.device("cpu"))
