"""The device against ``flashproof audit``: its statistics, its limits, and above all its verdict.

The law: what is within every limit on the device passes on the command line.
``DEVICE_OUTPUTS=all`` tries every output of every capture, not one of each.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from problems import (
    ALL_OUTPUTS,
    CAPTURES,
    DIST,
    audit,
    drawn,
    kernels_of,
    needs_library,
    read_capture,
    textbook,
)

from flashproof.device import (
    AttentionProblem,
    AuditReport,
    CommandLineError,
    KernelOutputs,
    judge,
    run_command_line,
)
from flashproof.device.formats import FORMATS, ulp
from flashproof.device.measure import DeviceFindings, measure

RELATIVE = 2.0**-20
RATE = 1e-9

OUTPUTS = (
    ALL_OUTPUTS
    if os.environ.get("DEVICE_OUTPUTS") == "all"
    else [
        (capture, kernels_of(capture)[i % len(kernels_of(capture))])
        for i, capture in enumerate(CAPTURES)
    ]
)

CLUSTERED = ("06-constant", "08-threshold", "12-tiny")
"""Captures most of whose weights round alike, in all rows: sums of their errors are the command
line's to judge.
"""


def no_auditor(dump: Path, options: Sequence[str]) -> AuditReport:
    raise AssertionError(f"the command line was asked: {dump} {options}")


def library_auditor() -> Any:
    """The command line of this repository."""
    needs_library()
    return run_command_line(["node", str(DIST / "src/cli/main.js")])


def assert_agrees(found: DeviceFindings, report: dict[str, Any]) -> None:
    """Asserts that statistics are those of the report, and limits no larger."""
    outputs = {one["name"]: one for one in report["outputs"]}
    out = outputs["out"]
    assert out["elements"]["worstRatio"] == pytest.approx(found.elements.worst.ratio, rel=RELATIVE)
    assert out["elements"]["outside"] == found.elements.outside
    if found.lse is not None:
        assert outputs["lse"]["numbers"]["worstRatio"] == pytest.approx(
            found.lse.worst.ratio, rel=2.0**-16, abs=1e-9
        )
    spread = out["spread"]
    assert spread["worstRatio"] == pytest.approx(found.spread.elements.worst.ratio, rel=2.0**-16)
    for result in spread["results"]:
        mine = found.spread.results[result["scope"]]
        place = (result["head"], result["firstRow"])
        if (mine.head, mine.first_row) == place:
            for name in ("measured", "expected", "limit"):
                assert result[name] == pytest.approx(getattr(mine, name), rel=2.0**-16)
        else:
            assert mine.ratio == pytest.approx(result["measured"] / result["limit"], rel=2.0**-16)
    for one in outputs.values():
        for result in one["structure"]:
            mine_too = found.structure.results[result["test"], result["scope"]]
            used = abs(result["statistic"]) / result["threshold"]
            assert used <= mine_too.ratio * (1 + RELATIVE) + 1e-12, result
            keys = (mine_too.head, mine_too.first_row, mine_too.first_key)
            # Slopes of tiles and heads are looked for with two instruments, and either may be
            # reported.
            is_one = result["test"] != "scale" or result["scope"] == "row"
            if is_one and keys == (result["head"], result["firstRow"], result["firstKey"]):
                size = abs(result["threshold"])
                assert mine_too.threshold <= size * (1 + RELATIVE)
                # Projections cancel: their roundings are relative to what is projected, which
                # limits are of.
                assert abs(result["statistic"] - mine_too.statistic) <= 2.0**-10 * size + RELATIVE


@pytest.mark.parametrize(("capture", "kernel"), OUTPUTS)
def test_captures_are_judged_as_the_command_line_does(
    capture: str, kernel: str, tmp_path: Path
) -> None:
    problem, outputs = read_capture(capture, kernel)
    found = measure(problem, outputs, RATE)
    report: Any = audit(problem, outputs, tmp_path)
    assert_agrees(found, report)
    if not found.open_heads:
        assert report["verdict"]["pass"]
    # A device that leaves everything open would be right as well, and of no use.
    assert bool(found.open_heads) == any(name in capture for name in CLUSTERED)


def damages(out: torch.Tensor, lse: torch.Tensor | None) -> dict[str, KernelOutputs]:
    """What bugs make of an output [batch, heads, queries, v dim]: gross ones and slight ones."""
    wide = out.double()
    unit = ulp(FORMATS[out.dtype], wide)

    def kept(changed: torch.Tensor) -> KernelOutputs:
        return KernelOutputs(changed.to(out.dtype), lse)

    one, zeros, tile, sign, rows = (wide.clone() for _ in range(5))
    one[0, 0, 7, 5] += 4 * unit[0, 0, 7, 5]
    zeros[0, -1, -16:] = 0
    tile[0, 0, 32:64] = wide[0, 0, :32]
    sign[0, 0, :, 3] *= -1
    rows[:, :, 1:] = wide[:, :, :-1]
    found = {
        "scaled by 1 %": kept(wide * 1.01),
        "scaled by 1/1000": kept(wide * 1.001),
        "an element 4 ulp off": kept(one),
        "half an ulp upwards": kept(wide + 0.6 * unit),
        "zeros at the end": kept(zeros),
        "a tile of other rows": kept(tile),
        "a column's sign": kept(sign),
        "rows one further": kept(rows),
    }
    if lse is not None:
        found["the LSE in base 2"] = KernelOutputs(out, lse / 0.6931471805599453)
        found["the LSE 1e-4 off"] = KernelOutputs(out, lse + 1e-4)
    return found


DAMAGED = [
    "attention/01-normal-384x384-d128-bf16-causal.safetensors",
    "attention/09-normal-200x300-d64-bf16.safetensors",
    "attention/11-large-256x256-d64-fp16-causal.safetensors",
    "features/grouped-heads.safetensors",
    "features/plain-fp32.safetensors",
    "features/softcap.safetensors",
    "features/window.safetensors",
]


@pytest.mark.parametrize("capture", DAMAGED)
def test_what_the_command_line_fails_never_passes_on_the_device(
    capture: str, tmp_path: Path
) -> None:
    problem, outputs = read_capture(capture, kernels_of(capture)[-1])
    passed = []
    for name, damaged in damages(outputs.out, outputs.lse).items():
        found = measure(problem, damaged, RATE)
        if found.open_heads:
            continue
        passed.append(name)
        report: Any = audit(problem, damaged, tmp_path)
        assert report["verdict"]["pass"], name
        assert_agrees(found, report)
    gross = {
        "scaled by 1 %",
        "a tile of other rows",
        "a column's sign",
        "rows one further",
        "the LSE in base 2",
    }
    assert not gross & set(passed)


def test_slight_errors_are_followed_up_to_the_very_limit(tmp_path: Path) -> None:
    """Outputs that come ever closer to failing: the device never passes what the command line
    fails.
    """
    problem = drawn((1, 1, 1, 130, 140, 32), torch.float32, 3, causal=True)
    outputs = textbook(problem, torch.float32, torch.float32)
    verdicts = []
    for power in range(-24, -11, 2):
        scaled = KernelOutputs((outputs.out.double() * (1 + 2.0**power)).float(), outputs.lse)
        found = measure(problem, scaled, RATE)
        report: Any = audit(problem, scaled, tmp_path)
        passed = report["verdict"]["pass"]
        assert passed or found.open_heads
        verdicts.append((passed, not found.open_heads))
    assert verdicts[0] == (True, True)
    assert verdicts[-1] == (False, False)


@pytest.mark.parametrize(
    ("dtype", "settings"),
    [
        (torch.bfloat16, {}),
        (torch.float16, {"window": (70, 20)}),
        (torch.float32, {"softcap": 3.0}),
        (torch.float8_e4m3fn, {"causal": True}),
        (torch.float8_e5m2, {"window": (30, -1), "causal": True}),
    ],
)
def test_drawn_problems_pass_on_the_device(
    dtype: torch.dtype, settings: dict[str, Any], tmp_path: Path
) -> None:
    problem = drawn((2, 4, 2, 150, 300, 32), dtype, 7, **settings)
    outputs = textbook(problem, torch.bfloat16 if dtype.itemsize == 1 else dtype, dtype)
    verdict = judge(problem, outputs, auditor=no_auditor)
    assert verdict.passed
    assert verdict.decided_by == "device"
    assert verdict.findings is not None
    assert_agrees(verdict.findings, audit(problem, outputs, tmp_path))


def test_one_head_that_is_wrong_is_asked_about_and_fails() -> None:
    problem = drawn((1, 4, 2, 140, 200, 32), torch.bfloat16, 5)
    outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
    out = outputs.out.clone()
    out[0, 2, 10:40] = outputs.out[0, 3, 10:40]
    verdict = judge(problem, KernelOutputs(out, outputs.lse), auditor=library_auditor())
    assert not verdict.passed
    assert verdict.decided_by == "command line"
    assert verdict.sentence.startswith("FAIL")
    assert verdict.findings is not None
    assert verdict.findings.open_heads == {2}
    assert {row for _, row in verdict.findings.open_rows} >= set(range(10, 40))


def test_a_head_whose_weights_are_alike_is_asked_about_alone() -> None:
    problem = drawn((1, 2, 2, 140, 200, 32), torch.bfloat16, 5)
    q = problem.q.clone()
    # All weights of the second head are nearly equal.
    q[0, 1] *= 2.0**-8
    v = problem.v.clone()
    v[0, 1] = v[0, 1].abs() + 1
    problem = AttentionProblem(q, problem.k, v, problem.scale)
    asked: list[Sequence[str]] = []
    auditor = library_auditor()

    def counted(dump: Path, options: Sequence[str]) -> AuditReport:
        asked.append(options)
        report: AuditReport = auditor(dump, options)
        assert report.report["problem"]["heads"] == 1
        return report

    verdict = judge(problem, textbook(problem, torch.bfloat16, torch.bfloat16), auditor=counted)
    assert verdict.passed
    assert verdict.decided_by == "command line"
    assert len(asked) == 1


def test_what_is_not_covered_is_said() -> None:
    problem = drawn((1, 1, 1, 20, 30, 16), torch.float32, 5)
    outputs = textbook(problem, torch.float32, torch.float32)
    auditor = library_auditor()
    wide = AttentionProblem(
        problem.q.double(), problem.k.double(), problem.v.double(), problem.scale
    )
    assert (
        judge(wide, outputs, auditor=auditor).handed_over
        == "q is float64, which is not judged on the device"
    )
    broken = outputs.out.clone()
    broken[0, 0, 3, 4] = float("nan")
    verdict = judge(problem, KernelOutputs(broken, outputs.lse), auditor=auditor)
    assert (verdict.passed, verdict.handed_over) == (False, "out holds infinities or NaNs")
    unseen = AttentionProblem(problem.q, problem.k, problem.v, problem.scale, window=(0, 0))
    nothing = AttentionProblem(unseen.q, unseen.k[..., :0, :], unseen.v[..., :0, :], problem.scale)
    with pytest.raises(CommandLineError, match="no verdict"):
        judge(nothing, outputs, auditor=run_command_line(["false"]))


def test_tensors_that_ask_for_gradients_are_judged_like_others() -> None:
    problem = drawn((1, 2, 1, 20, 30, 16), torch.float32, 5)
    outputs = textbook(problem, torch.float32, torch.float32)
    q, k, v = (x.clone().requires_grad_() for x in (problem.q, problem.k, problem.v))
    asking = AttentionProblem(q, k, v, problem.scale)
    assert outputs.lse is not None
    given = KernelOutputs(outputs.out.clone().requires_grad_(), outputs.lse.clone())
    verdict = judge(asking, given, auditor=no_auditor)
    assert verdict.passed
    assert asking.q.grad is None


def test_heads_without_a_batch_are_judged_like_others() -> None:
    problem = drawn((1, 2, 1, 20, 30, 16), torch.float32, 5)
    outputs = textbook(problem, torch.float32, torch.float32)
    assert outputs.lse is not None
    flat = AttentionProblem(problem.q[0], problem.k[0], problem.v[0])
    verdict = judge(flat, KernelOutputs(outputs.out[0], outputs.lse[0]), auditor=no_auditor)
    assert verdict.sentence.startswith("PASS: the output and the LSE stay within")


def test_what_does_not_fit_is_refused() -> None:
    problem = drawn((1, 2, 1, 20, 30, 16), torch.float32, 5)
    outputs = textbook(problem, torch.float32, torch.float32)
    with pytest.raises(ValueError, match="out has shape"):
        judge(problem, KernelOutputs(outputs.out[:, :1]), auditor=no_auditor)
    with pytest.raises(ValueError, match="scale is inf"):
        judge(
            AttentionProblem(problem.q, problem.k, problem.v, float("inf")),
            outputs,
            auditor=no_auditor,
        )
    with pytest.raises(ValueError, match="false_alarm_rate"):
        judge(problem, outputs, false_alarm_rate=0, auditor=no_auditor)
    with pytest.raises(CommandLineError, match="cannot be started"):
        judge(
            problem,
            KernelOutputs(outputs.out * 2),
            auditor=run_command_line(["/nonexistent/flashproof"]),
        )


def test_a_device_without_room_leaves_a_problem_to_the_command_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> DeviceFindings:
        raise torch.cuda.OutOfMemoryError

    # The package's own ``judge`` has the module's name.
    monkeypatch.setattr(sys.modules[judge.__module__], "measure", full)
    problem = drawn((1, 1, 1, 30, 30, 16), torch.float32, 3)
    outputs = textbook(problem, torch.float32, torch.float32)
    verdict = judge(problem, outputs, auditor=library_auditor())
    assert (verdict.passed, verdict.decided_by) == (True, "command line")
    assert verdict.handed_over == "its memory has no room left for judging"
