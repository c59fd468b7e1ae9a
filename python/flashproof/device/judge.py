"""The verdict on a kernel's outputs, reached on the device that they lie on wherever that is
possible.

A pass on the device is one of the command line: every limit is at most the command line's ("On the
device" of docs/bounds.md). Whatever is not surely within its limit goes to the command line, which
has the last word.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Literal

from .command_line import Auditor, AuditReport, audit_dump, run_command_line, some_heads
from .masks import visible_keys
from .measure import DeviceFindings, measure
from .problem import (
    AttentionProblem,
    KernelOutputs,
    Shape,
    batched,
    fitted,
    shape_of,
    why_not_covered,
)

USUAL_FALSE_ALARM_RATE = 1e-9
"""Probability that the statistical tests fail a correct kernel, where no other is asked for."""

_EMULATION = ("CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT")
"""Settings of cuBLAS by which products of fp64 matrices are made of shorter ones, of which Theorem
13 says nothing.
"""


@dataclass(frozen=True)
class DeviceVerdict:
    """Whether a kernel's outputs are right, and who says so."""

    passed: bool
    sentence: str
    """The verdict and its main reason."""
    decided_by: Literal["device", "command line"]
    device: str
    """Where the tensors lie."""
    findings: DeviceFindings | None
    """What the tests on the device found; None where it judged nothing."""
    handed_over: str | None
    """Why the command line was asked, in a clause; None where it was not."""
    report: AuditReport | None
    """What it said."""


def judge(
    problem: AttentionProblem,
    outputs: KernelOutputs,
    *,
    false_alarm_rate: float = USUAL_FALSE_ALARM_RATE,
    auditor: Auditor | None = None,
) -> DeviceVerdict:
    """Judges what a kernel gave, by the bounds of any correct kernel.

    ``auditor`` judges what the device leaves open; None starts the package's own. Raises
    ValueError for tensors and settings that do not fit together, CommandLineError where what is
    left open cannot be judged.
    """
    problem = batched(problem)
    shape = shape_of(problem)
    outputs = fitted(outputs, shape)
    if not 0 < false_alarm_rate < 1:
        raise ValueError(
            f"false_alarm_rate is {false_alarm_rate}; give a probability between 0 and 1"
        )
    rate = (
        ["--false-alarm-rate", repr(false_alarm_rate)]
        if false_alarm_rate != USUAL_FALSE_ALARM_RATE
        else []
    )
    work = _Work(problem, outputs, shape, run_command_line() if auditor is None else auditor, rate)
    reason = (
        why_not_covered(problem, outputs) or why_not_fp64(problem) or _why_hollow(problem, shape)
    )
    if reason is not None:
        return work.ask_of_all(None, reason)
    findings = measure(problem, outputs, false_alarm_rate)
    if findings.open_heads:
        return work.ask_what_is_open(findings)
    return DeviceVerdict(
        True, _pass_sentence(findings), "device", str(problem.q.device), findings, None, None
    )


def why_not_fp64(problem: AttentionProblem) -> str | None:
    """Why fp64 on the problem's device is not IEEE 754's, in a clause; None where it is."""
    if problem.q.device.type == "mps":
        return "its device has no fp64"
    if problem.q.device.type == "cuda" and any(
        os.environ.get(name, "0") not in ("", "0") for name in _EMULATION
    ):
        return "fp64 is emulated by cuBLAS"
    return None


def _why_hollow(problem: AttentionProblem, shape: Shape) -> str | None:
    sees = visible_keys(problem, shape, problem.q.device).count > 0
    return None if bool(sees.any()) else "no query sees a key"


def _pass_sentence(findings: DeviceFindings) -> str:
    what = "the output stays" if findings.lse is None else "the output and the LSE stay"
    used = 100 * findings.elements.worst.ratio
    return (
        f"PASS: {what} within what rounding explains; "
        f"the worst element uses {used:.3g} % of its bound."
    )


@dataclass(frozen=True)
class _Work:
    """What is judged, and by whom what is left open."""

    problem: AttentionProblem
    outputs: KernelOutputs
    shape: Shape
    auditor: Auditor
    options: list[str]

    def _verdict(
        self, report: AuditReport, findings: DeviceFindings | None, reason: str
    ) -> DeviceVerdict:
        place = str(self.problem.q.device)
        return DeviceVerdict(
            report.passed, report.sentence, "command line", place, findings, reason, report
        )

    def ask_of_all(self, findings: DeviceFindings | None, reason: str) -> DeviceVerdict:
        """The command line's verdict on the whole problem."""
        report = audit_dump(self.problem, self.outputs, self.auditor, self.options)
        return self._verdict(report, findings, reason)

    def ask_what_is_open(self, findings: DeviceFindings) -> DeviceVerdict:
        """Heads that are open are audited by themselves, where that is less; a failure is one of
        the whole problem.

        By themselves heads are judged more strictly: fewer tests share one rate of false alarms.
        So if they pass, the whole passes. If they fail, the whole problem is audited, whose limits
        and causes count. Of a long one that is a sample, so that what no roundings excuse fails
        whatever the sample says.
        """
        heads = sorted(findings.open_heads)
        reason = _why_open(findings, heads, self.shape)
        part: AuditReport | None = None
        if len(heads) < self.shape.batch * self.shape.heads:
            of_heads = some_heads(self.problem, self.outputs, self.shape, heads)
            part = audit_dump(*of_heads, self.auditor, [*self.options, "--rows", "all"])
            if part.passed:
                verdict = self._verdict(part, findings, reason)
                return replace(verdict, sentence=_pass_sentence(findings))
        verdict = self.ask_of_all(findings, reason)
        if not verdict.passed or not (verdict.report is not None and verdict.report.is_sample):
            return verdict
        if part is not None and part.fails_by_worst_case:
            return self._verdict(part, findings, reason)
        if findings.is_surely_beyond:
            return replace(
                verdict, passed=False, sentence=_beyond_sentence(findings), decided_by="device"
            )
        if part is None:
            everything = audit_dump(
                self.problem, self.outputs, self.auditor, [*self.options, "--rows", "all"]
            )
            return self._verdict(everything, findings, reason)
        return self._verdict(part, findings, reason)


def _why_open(findings: DeviceFindings, heads: list[int], shape: Shape) -> str:
    of = f"{len(heads)} of {shape.batch * shape.heads} heads"
    if findings.unjudged_rows > 0:
        rows = findings.unjudged_rows
        return f"the errors of {rows} rows are not bounded to the first order, in {of}"
    if findings.heads_of_open_rows:
        return f"elements or rows are not surely within their limits, in {of}"
    return f"sums of errors are beyond what independent roundings make, in {of}"


def _beyond_sentence(findings: DeviceFindings) -> str:
    worst = findings.elements.worst
    if findings.elements.surely_outside > 0:
        return (
            f"FAIL: {findings.elements.surely_outside} of {findings.elements.elements} elements "
            f"err by more than any correct kernel can; the worst, {worst.ratio:.3g} times its "
            f"bound, at head {worst.head}, query {worst.query}, column {worst.column}; "
            "the cause is unexplained."
        )
    outside = 0 if findings.lse is None else findings.lse.surely_outside
    return (
        f"FAIL: the LSE of {outside} rows is off by more than any correct kernel's can; "
        "the cause is unexplained."
    )
