"""Numbers so small that underflow may take them: what the command line does not judge is no pass
on the device.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from problems import DIST, drawn, needs_library, textbook, textbook_gradients

from flashproof.device import (
    AttentionProblem,
    Auditor,
    AuditReport,
    KernelGradients,
    KernelOutputs,
    judge,
    run_command_line,
)
from flashproof.device.elements import LostTest

REASON = "nothing in the output is surely larger than what underflow may take"


def command_line() -> Auditor:
    needs_library()
    return run_command_line(["node", str(DIST / "src/cli/main.js")])


def no_auditor(dump: Path, options: object) -> AuditReport:
    raise AssertionError(f"the command line was asked: {dump} {options}")


def of_size(size: float, keys: int = 60) -> AttentionProblem:
    problem = drawn((1, 2, 1, 40, keys, 16), torch.bfloat16, 5)
    return replace(problem, v=(problem.v.double() * size).to(torch.bfloat16))


def variants(out: torch.Tensor) -> dict[str, torch.Tensor]:
    """What is as good as an output that underflow may take, and the output."""
    return {
        "zeros": torch.zeros_like(out),
        "negated": -out,
        "rotated": out.roll(1, -2),
        "right": out,
    }


@pytest.mark.parametrize("kind", ["negated", "zeros", "rotated", "right"])
def test_an_output_that_underflow_may_take_is_no_pass(kind: str) -> None:
    problem = of_size(1e-36, keys=400)
    outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
    out = variants(outputs.out)[kind]
    verdict = judge(problem, KernelOutputs(out, outputs.lse), auditor=command_line())
    assert not verdict.passed
    assert (verdict.decided_by, verdict.handed_over) == ("command line", REASON)
    assert verdict.sentence.startswith("NOT JUDGED: nothing in the output is larger than underflow")


def test_every_size_has_the_verdict_of_the_command_line() -> None:
    ask = command_line()
    decided = set()
    for power in (-122, -112, -102):
        problem = of_size(2.0**power)
        outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
        for kind in ("negated", "right"):
            given = KernelOutputs(variants(outputs.out)[kind], outputs.lse)
            verdict = judge(problem, given, auditor=ask)
            decided.add((verdict.decided_by, verdict.passed))
            if verdict.decided_by == "device":
                assert kind == "right", (kind, power)
    # From some size on the device judges by itself, and below nothing passes.
    assert ("device", True) in decided and ("command line", False) in decided


@pytest.mark.parametrize("kind", ["negated", "zeros", "rotated"])
def test_gradients_that_underflow_may_take_are_no_pass(kind: str) -> None:
    problem = of_size(1.0)
    outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
    generator = torch.Generator().manual_seed(6)
    dout = (torch.randn(outputs.out.shape, generator=generator) * 1e-37).to(torch.bfloat16)
    right = textbook_gradients(problem, outputs, dout)
    names = ("dq", "dk", "dv")
    wrong = {name: variants(getattr(right, name))[kind] for name in names}
    given = KernelGradients(dout, **wrong)
    verdict = judge(problem, outputs, given, auditor=command_line())
    assert not verdict.passed
    assert verdict.decided_by == "command line"
    assert verdict.handed_over is not None and "underflow may take" in verdict.handed_over
    assert "NOT JUDGED" in verdict.sentence and "is larger than underflow" in verdict.sentence


def test_small_elements_beside_usual_ones_are_judged_on_the_device() -> None:
    problem = drawn((1, 2, 1, 40, 60, 16), torch.bfloat16, 5)
    v = problem.v.clone()
    v[..., 3] = (v[..., 3].double() * 1e-36).to(v.dtype)
    small = replace(problem, v=v)
    outputs = textbook(small, torch.bfloat16, torch.bfloat16)
    verdict = judge(small, outputs, auditor=no_auditor)
    assert verdict.passed and verdict.decided_by == "device"
    assert verdict.findings is not None and verdict.findings.lost.has_small


def test_what_is_lost_is_told_by_size_and_bound() -> None:
    judged = torch.tensor([True])
    nothing = torch.zeros(1, 1, dtype=torch.float64)

    def met(exact: float, total: float, is_judged: torch.Tensor = judged) -> LostTest:
        test = LostTest()
        test.meet(nothing + exact, nothing, nothing + total, is_judged)
        test.settle()
        return test

    # One operation loses 2^-126; a bound of 2^-62 is none of underflow.
    assert met(2.0**-120, 2.0**-120).may_be_all
    assert met(0.0, 2.0**-120).may_be_all
    assert not met(2.0**-117, 2.0**-120).may_be_all
    assert not met(2.0**-63, 2.0**-62).may_be_all
    # A row without keys, and one that is left open.
    assert not met(0.0, 0.0).may_be_all
    assert met(1.0, 2.0**-10, ~judged).may_be_all


def test_gradients_by_a_short_lse_are_left_to_the_command_line() -> None:
    problem = of_size(1.0)
    outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
    assert outputs.lse is not None
    dout = torch.randn(outputs.out.shape, generator=torch.Generator().manual_seed(6))
    gradients = textbook_gradients(problem, outputs, dout.to(torch.bfloat16))
    short = KernelOutputs(outputs.out, outputs.lse.to(torch.bfloat16))
    assert judge(problem, short, gradients, auditor=command_line()).handed_over == (
        "gradients are judged on the device where the LSE is stored in fp32"
    )
