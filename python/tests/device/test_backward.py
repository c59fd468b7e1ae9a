"""Gradients on the device against ``flashproof audit``: limits element by element, and verdicts.

The law: what is within every limit on the device passes on the command line.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from problems import DIST, ROOT, drawn, gradient_bounds, needs_library, textbook, textbook_gradients
from safetensors import safe_open

from flashproof.device import (
    AttentionProblem,
    AuditReport,
    Features,
    KernelGradients,
    KernelOutputs,
    judge,
    run_command_line,
)
from flashproof.device.backward import measure as module
from flashproof.device.backward import measure_gradients
from flashproof.device.backward.limits import GradientLimits
from flashproof.device.backward.statistics import JudgedRows
from flashproof.device.command_line import audit_dump
from flashproof.device.problem import batched

RATE = 1e-9
RELATIVE = 2.0**-20

CAPTURES = [
    ("normal-128", "torch_flash"),
    ("normal-128", "torch_math"),
    ("large-128", "torch_efficient"),
    ("normal-130-200", "torch_cudnn"),
    ("grouped-heads", "torch_flash"),
    ("grouped-heads", "triton_flex"),
    ("window", "triton_flex"),
]
"""Captured gradients whose problems the device covers."""

Backward = tuple[AttentionProblem, KernelOutputs, KernelGradients]


@functools.cache
def unpacked(folder: Path) -> Path:
    needs_library()
    names = sorted({name for name, _ in CAPTURES})
    command = ["node", str(ROOT / "fixtures/gradients/unpack.mjs"), str(folder), *names]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the captured gradients."""
    return unpacked(tmp_path_factory.mktemp("gradients"))


def read(path: Path, kernel: str) -> Backward:
    """A capture's problem with what one kernel gave."""
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    window = metadata.get("window")
    left, right = (int(x) for x in window.split(",")) if window else (-1, -1)
    problem = batched(
        AttentionProblem(
            tensors["q"],
            tensors["k"],
            tensors["v"],
            float(metadata["scale"]),
            metadata.get("causal") == "true",
            (left, right) if window else None,
        )
    )

    def batch(name: str) -> torch.Tensor:
        x = tensors[name]
        return x if x.dim() == 4 else x.unsqueeze(0)

    of_kernel = (batch(f"{kernel}.{name}") for name in ("dq", "dk", "dv"))
    gradients = KernelGradients(batch("dout"), *of_kernel)
    return problem, KernelOutputs(batch(f"{kernel}.out")), gradients


def drawn_backward(
    sizes: tuple[int, int, int, int, int, int], dtype: torch.dtype, seed: int, **settings: Any
) -> Backward:
    """A drawn problem, and what a textbook kernel makes of it."""
    features = settings.pop("features", Features())
    problem = replace(drawn(sizes, dtype, seed, **settings), features=features)
    outputs = textbook(problem, dtype, dtype)
    generator = torch.Generator().manual_seed(seed + 1)
    dout = torch.randn(outputs.out.shape, generator=generator).to(dtype)
    return problem, outputs, textbook_gradients(problem, outputs, dout)


def limits_of(
    case: Backward, monkeypatch: pytest.MonkeyPatch, *, with_output: bool
) -> dict[str, list[JudgedRows]]:
    """What each head of each gradient is judged by."""
    seen: dict[str, dict[int, JudgedRows]] = {}
    original = module._judge_heads

    def spy(found: Any, name: str, rows: JudgedRows, common: Any) -> None:
        for place, head in enumerate(rows.heads):
            seen.setdefault(name, {})[head] = one_head(rows, place)
        original(found, name, rows, common)

    monkeypatch.setattr(module, "_judge_heads", spy)
    problem, outputs, gradients = case
    measure_gradients(problem, gradients, outputs.out if with_output else None, RATE)
    return {name: [heads[head] for head in sorted(heads)] for name, heads in seen.items()}


def one_head(rows: JudgedRows, place: int) -> JudgedRows:
    """What one of some heads is judged by."""

    def of(x: torch.Tensor) -> torch.Tensor:
        return rows.by_head(x)[place]

    limits = GradientLimits(*(of(x) for x in vars(rows.limits).values()))
    heads = rows.heads[place : place + 1]
    return JudgedRows(heads, of(rows.given), of(rows.exact), of(rows.radius), limits)


def assert_limits_agree(
    case: Backward, folder: Path, monkeypatch: pytest.MonkeyPatch, *, with_output: bool = True
) -> None:
    """Asserts that exact values agree within their radii, and that limits are the command line's,
    or less where fp64 leaves something open.
    """
    problem, outputs, gradients = case
    library = gradient_bounds(problem, outputs if with_output else None, gradients, folder)
    for name, heads in limits_of(case, monkeypatch, with_output=with_output).items():
        exact, radius = (
            torch.cat([getattr(x, of).flatten() for x in heads]) for of in ("exact", "radius")
        )
        judged = torch.cat(
            [x.limits.is_judged[:, None].expand_as(x.exact).flatten() for x in heads]
        )
        assert bool(judged.all())
        distance = (exact - library[f"{name}.exact"]).abs()
        assert bool((distance <= radius + library[f"{name}.radius"]).all())
        for of in ("total", "systematic", "known", "deviation"):
            mine = torch.cat([getattr(x.limits, of).flatten() for x in heads])
            theirs = library[f"{name}.{of}"]
            assert bool((mine <= theirs * (1 + RELATIVE)).all()), (name, of)
            if of == "known":
                continue
            # Binades of single roundings may be left open, and little else.
            share = (mine >= theirs * (1 - 2.0**-10)).double().mean()
            assert share > 0.99, (name, of, float(share))


@pytest.mark.parametrize(("capture", "kernel"), CAPTURES[:4:2])
def test_limits_are_those_of_the_command_line(
    capture: str, kernel: str, captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = read(captures / f"{capture}.safetensors", kernel)
    assert_limits_agree(case, tmp_path, monkeypatch)


@pytest.mark.parametrize("with_output", [True, False])
@pytest.mark.parametrize(
    ("dtype", "sizes", "settings"),
    [
        (torch.bfloat16, (1, 2, 1, 40, 60, 16), {}),
        (torch.float16, (1, 1, 1, 70, 50, 24), {"causal": True}),
        (torch.bfloat16, (2, 2, 2, 33, 80, 16), {"window": (20, 5)}),
        (torch.bfloat16, (1, 4, 2, 30, 30, 16), {"causal": True, "window": (9, -1)}),
    ],
)
def test_limits_of_drawn_problems_are_those_of_the_command_line(
    dtype: torch.dtype,
    sizes: tuple[int, int, int, int, int, int],
    settings: dict[str, Any],
    with_output: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = drawn_backward(sizes, dtype, 3, **settings)
    assert_limits_agree(case, tmp_path, monkeypatch, with_output=with_output)


def command_line() -> Any:
    needs_library()
    return run_command_line(["node", str(DIST / "src/cli/main.js")])


def no_auditor(dump: Path, options: Sequence[str]) -> AuditReport:
    raise AssertionError(f"the command line was asked: {dump} {options}")


def audited(case: Backward) -> bool:
    """Whether the command line passes it."""
    problem, outputs, gradients = case
    return audit_dump(problem, outputs, command_line(), [], gradients).passed


@pytest.mark.parametrize(("capture", "kernel"), CAPTURES)
def test_captured_gradients_pass_on_the_device(capture: str, kernel: str, captures: Path) -> None:
    problem, outputs, gradients = read(captures / f"{capture}.safetensors", kernel)
    found = measure_gradients(problem, gradients, outputs.out, RATE)
    assert not found.open_groups


def damages(gradients: KernelGradients) -> dict[str, KernelGradients]:
    """What bugs make of gradients: gross ones and slight ones."""
    dq, dk, dv = gradients.dq, gradients.dk, gradients.dv
    assert dq is not None and dk is not None and dv is not None

    def changed(x: torch.Tensor, factor: float) -> torch.Tensor:
        return (x.double() * factor).to(x.dtype)

    shifted, zeros, other, swapped, bit = (
        dk.clone(),
        dv.clone(),
        dq.clone(),
        dk.clone(),
        dv.clone(),
    )
    shifted[..., 1:, :] = dk[..., :-1, :]
    zeros[..., -1:, :] = 0
    other[..., :8, :] = dq[..., 8:16, :]
    swapped[..., 3] *= -1
    bit[0, 0, 5, 3] *= 1.5
    return {
        "dQ scaled by 1 %": replace(gradients, dq=changed(dq, 1.01)),
        "dK scaled by 1/1000": replace(gradients, dk=changed(dk, 1.001)),
        "dV scaled by 1/10^4": replace(gradients, dv=changed(dv, 1.0001)),
        "dK one row further": replace(gradients, dk=shifted),
        "dV without its last key": replace(gradients, dv=zeros),
        "dQ of other rows": replace(gradients, dq=other),
        "a column's sign": replace(gradients, dk=swapped),
        "an element of dV": replace(gradients, dv=bit),
        "dK without a factor": replace(gradients, dk=changed(dk, 8.0)),
        "nothing": gradients,
    }


DAMAGED = [
    (torch.bfloat16, (1, 2, 1, 60, 70, 16), {}),
    (torch.float16, (1, 2, 2, 64, 64, 16), {"causal": True}),
]


@pytest.mark.parametrize(("dtype", "sizes", "settings"), DAMAGED)
def test_what_the_command_line_fails_never_passes_on_the_device(
    dtype: torch.dtype, sizes: tuple[int, int, int, int, int, int], settings: dict[str, Any]
) -> None:
    problem, outputs, gradients = drawn_backward(sizes, dtype, 11, **settings)
    passed = set()
    for name, damaged in damages(gradients).items():
        found = measure_gradients(problem, damaged, outputs.out, RATE)
        if found.open_groups:
            continue
        passed.add(name)
        assert audited((problem, outputs, damaged)), name
    assert passed <= {"nothing", "dV scaled by 1/10^4", "dK scaled by 1/1000"}
    assert "nothing" in passed


def test_slight_errors_are_followed_up_to_the_very_limit() -> None:
    problem, outputs, gradients = drawn_backward((1, 1, 1, 50, 60, 16), torch.bfloat16, 5)
    assert gradients.dq is not None
    verdicts = []
    for power in range(-14, -3, 2):
        scaled = (gradients.dq.double() * (1 + 2.0**power)).to(torch.bfloat16)
        given = replace(gradients, dq=scaled)
        found = measure_gradients(problem, given, outputs.out, RATE)
        passed = audited((problem, outputs, given))
        assert passed or found.open_groups
        verdicts.append((passed, not found.open_groups))
    assert verdicts[0] == (True, True)
    assert verdicts[-1] == (False, False)


def test_an_output_and_its_gradients_have_one_verdict() -> None:
    problem, outputs, gradients = drawn_backward((1, 4, 2, 140, 150, 16), torch.bfloat16, 5)
    verdict = judge(problem, outputs, gradients, auditor=no_auditor)
    assert verdict.passed and verdict.decided_by == "device"
    assert "dQ, dK and dV stay within" in verdict.sentence
    assert gradients.dk is not None
    dk = gradients.dk.clone()
    dk[0, 1] = gradients.dk[0, 0]
    wrong = judge(problem, outputs, replace(gradients, dk=dk), auditor=command_line())
    assert not wrong.passed and wrong.decided_by == "command line"
    assert wrong.gradients is not None and wrong.gradients.open_groups == {1}
    assert wrong.handed_over == (
        "the output or the gradients are not surely within their limits, in 2 of 4 heads"
    )


def test_what_is_not_covered_is_said() -> None:
    problem, outputs, gradients = drawn_backward((1, 2, 1, 20, 30, 16), torch.bfloat16, 5)
    ask = command_line()

    def reason(problem: AttentionProblem, gradients: KernelGradients) -> str | None:
        return judge(problem, outputs, gradients, auditor=ask).handed_over

    assert reason(replace(problem, softcap=50.0), gradients) == (
        "gradients under a softcap are not judged on the device"
    )
    assert reason(problem, replace(gradients, dk=None)) == "dk is not given"
    ones = replace(gradients, dout=torch.ones_like(gradients.dout))
    assert reason(problem, ones) == "rows of dout are equal, whose errors are alike"
    assert gradients.dv is not None
    broken = gradients.dv.clone()
    broken[0, 0, 2, 3] = float("inf")
    assert reason(problem, replace(gradients, dv=broken)) == "dv holds infinities or NaNs"
    assert reason(replace(problem, scale=2.0), gradients) == (
        "the scale is 2, by which roundings of dS are known"
    )
    with pytest.raises(ValueError, match="dq has shape"):
        judge(problem, outputs, replace(gradients, dq=gradients.dk), auditor=no_auditor)


def _seen_between(first: list[int], end: list[int]) -> torch.Tensor:
    """[B, 1, 1, 90]: true from a key up to another of each entry."""
    keys = torch.arange(90)
    rows = [(keys >= a) & (keys < b) for a, b in zip(first, end, strict=True)]
    return torch.stack(rows)[:, None, None]


MASKED: dict[str, tuple[Features, dict[str, Any]]] = {
    "padding": (Features(mask=_seen_between([20, 0], [90, 70])), {"causal": True}),
    "holes": (
        Features(mask=torch.rand(70, 90, generator=torch.Generator().manual_seed(2)) < 0.7),
        {},
    ),
    "documents": (
        Features(segments=(torch.arange(70) // 30, torch.arange(90) // 40)),
        {"window": (50, 20)},
    ),
    "prefix": (Features(prefix=15), {"causal": True}),
}


@pytest.mark.parametrize("name", MASKED)
def test_masks_have_the_limits_of_the_library(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, settings = MASKED[name]
    case = drawn_backward((2, 4, 2, 70, 90, 32), torch.bfloat16, 21, features=features, **settings)
    assert_limits_agree(case, tmp_path, monkeypatch)


@pytest.mark.parametrize("settings", [{}, {"causal": True}], ids=str)
def test_packed_sequences_have_the_limits_of_the_library(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = ((0, 50, 0, 40), (50, 1, 40, 90), (51, 99, 130, 99))
    case = drawn_backward(
        (1, 4, 2, 150, 229, 32),
        torch.float16,
        22,
        features=Features(sequences=runs),
        **settings,
    )
    assert_limits_agree(case, tmp_path, monkeypatch)


@pytest.mark.parametrize("seed", [30, 36, 37])
def test_weights_next_to_a_power_of_two_round_as_on_the_command_line(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of these a weight with its error reaches into the next binade, or does not."""
    case = drawn_backward((1, 4, 2, 99, 99, 32), torch.float16, seed)
    assert_limits_agree(case, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", ["padding", "documents", "packed"])
def test_gradients_under_masks_have_the_verdict_of_the_command_line(name: str) -> None:
    runs = ((0, 50, 0, 40), (50, 30, 40, 60), (80, 70, 100, 129))
    packed = Features(sequences=runs), {"causal": True}
    features, settings = packed if name == "packed" else MASKED[name]
    sizes = (1, 4, 2, 150, 229, 32) if name == "packed" else (2, 4, 2, 70, 90, 32)
    problem, outputs, gradients = drawn_backward(
        sizes, torch.bfloat16, 23, features=features, **settings
    )
    assert judge(problem, outputs, gradients, auditor=no_auditor).passed
    assert gradients.dv is not None
    wrong = gradients.dv.clone()
    wrong[0, 1, 30, 5] += 0.5
    damaged = replace(gradients, dv=wrong)
    auditor = run_command_line(["node", str(DIST / "src/cli/main.js")])
    verdict = judge(problem, outputs, damaged, auditor=auditor)
    assert not verdict.passed
    assert verdict.decided_by == "command line"


def test_keys_that_no_query_sees_have_gradients_of_zero() -> None:
    keys = torch.arange(400)
    mask = torch.stack([keys < 130, keys >= 260])[:, None, None]
    case = drawn_backward((2, 2, 2, 90, 400, 32), torch.bfloat16, 24, features=Features(mask=mask))
    problem, outputs, gradients = case
    assert judge(problem, outputs, gradients, auditor=no_auditor).passed
    assert gradients.dk is not None
    wrong = gradients.dk.clone()
    wrong[0, 0, 390, 3] = 2.0**-100
    asked: list[Path] = []

    def auditor(dump: Path, options: Sequence[str]) -> AuditReport:
        asked.append(dump)
        return run_command_line(["node", str(DIST / "src/cli/main.js")])(dump, options)

    verdict = judge(problem, outputs, replace(gradients, dk=wrong), auditor=auditor)
    assert asked and verdict.decided_by == "command line"
