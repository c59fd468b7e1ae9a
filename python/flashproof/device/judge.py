"""The verdict on a kernel's outputs, reached on the device that they lie on wherever that is
possible.

A pass on the device is one of the command line: every limit is at most the command line's ("On the
device" of docs/theory/bounds.md). Whatever is not surely within its limit goes to the command line, which
has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from .backward import (
    BackwardFindings,
    KernelGradients,
    fitted_gradients,
    measure_gradients,
    why_gradients_not_covered,
)
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
    why_not_fp64,
)

USUAL_FALSE_ALARM_RATE = 1e-9
"""Probability that the statistical tests fail a correct kernel, where no other is asked for."""


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
    """What the tests on the device found of the output; None where it judged nothing."""
    gradients: BackwardFindings | None
    """The same of the gradients."""
    handed_over: str | None
    """Why the command line was asked, in a clause; None where it was not."""
    report: AuditReport | None
    """What it said."""


def judge(
    problem: AttentionProblem,
    outputs: KernelOutputs,
    gradients: KernelGradients | None = None,
    *,
    false_alarm_rate: float = USUAL_FALSE_ALARM_RATE,
    auditor: Auditor | None = None,
    whole: Callable[[Sequence[str]], AuditReport] | None = None,
) -> DeviceVerdict:
    """Judges what a kernel gave, by the bounds of any correct kernel: its output, its LSE where it
    has one, and the gradients where they are given.

    ``auditor`` judges what the device leaves open; None starts the package's own. ``whole`` audits the
    whole problem as it was stored, by the same rate and further options of the command line; None for as it is here. Raises
    ValueError for tensors and settings that do not fit together, CommandLineError where what is
    left open cannot be judged.
    """
    posed = _Posed.of(problem, outputs, gradients)
    rate = (
        ["--false-alarm-rate", repr(false_alarm_rate)]
        if false_alarm_rate != USUAL_FALSE_ALARM_RATE
        else []
    )
    ask = run_command_line() if auditor is None else auditor
    work = _Work(posed.problem, posed.outputs, posed.gradients, posed.shape, ask, rate, whole)
    measured = posed.measured(false_alarm_rate)
    if isinstance(measured, str):
        return work.ask_of_all(Measured(), measured)
    if measured.lost:
        return work.ask_what_is_lost(measured)
    if measured.gradients is not None and measured.open_heads:
        return work.ask_with_gradients(measured)
    if measured.outputs is not None and measured.open_heads:
        return work.ask_what_is_open(measured, measured.outputs)
    return posed.passed(measured)


def judge_here(
    problem: AttentionProblem,
    outputs: KernelOutputs,
    gradients: KernelGradients | None = None,
    *,
    false_alarm_rate: float = USUAL_FALSE_ALARM_RATE,
) -> DeviceVerdict | str:
    """The verdict of ``judge`` where that is a pass on the device; else why it is the command line's
    to give, in a clause. Nothing is asked of that. Raises ValueError as ``judge``.
    """
    posed = _Posed.of(problem, outputs, gradients)
    measured = posed.measured(false_alarm_rate)
    if isinstance(measured, str):
        return measured
    if measured.lost:
        return _why_lost(measured)
    if not measured.open_heads:
        return posed.passed(measured)
    heads = sorted(measured.open_heads)
    if measured.gradients is not None or measured.outputs is None:
        return _why_open_with_gradients(heads, posed.shape)
    return _why_open(measured.outputs, heads, posed.shape)


@dataclass(frozen=True)
class _Posed:
    """What is judged, with a batch and of one shape."""

    problem: AttentionProblem
    outputs: KernelOutputs
    gradients: KernelGradients | None
    shape: Shape

    @staticmethod
    def of(
        problem: AttentionProblem, outputs: KernelOutputs, gradients: KernelGradients | None
    ) -> _Posed:
        """Raises ValueError for what does not fit together."""
        problem = batched(problem)
        shape = shape_of(problem)
        given = None if gradients is None else fitted_gradients(gradients, shape)
        return _Posed(problem, fitted(outputs, shape), given, shape)

    def measured(self, false_alarm_rate: float) -> Measured | str:
        """What the device finds; or what keeps it from judging, in a clause. Raises ValueError for a
        rate that is no probability.
        """
        if not 0 < false_alarm_rate < 1:
            raise ValueError(
                f"false_alarm_rate is {false_alarm_rate}; give a probability between 0 and 1"
            )
        problem, outputs, gradients = self.problem, self.outputs, self.gradients
        reason = (
            why_not_covered(problem, outputs)
            or why_not_fp64(problem)
            or _why_hollow(problem, self.shape)
        )
        if reason is None and gradients is not None:
            reason = why_gradients_not_covered(problem, gradients, outputs.lse)
        if reason is not None:
            return reason
        try:
            findings = measure(problem, outputs, false_alarm_rate)
            if gradients is None:
                return Measured(findings)
            found = measure_gradients(problem, gradients, outputs.out, false_alarm_rate)
        except torch.cuda.OutOfMemoryError:
            # Beside what the kernel's caller keeps there.
            torch.cuda.empty_cache()
            return "its memory has no room left for judging"
        return Measured(findings, found)

    def passed(self, measured: Measured) -> DeviceVerdict:
        """The verdict on what is surely within all limits."""
        place = str(self.problem.q.device)
        return DeviceVerdict(
            True, _pass_sentence(measured), "device", place, *measured.both, None, None
        )


@dataclass(frozen=True)
class Measured:
    """What the device found."""

    outputs: DeviceFindings | None = None
    gradients: BackwardFindings | None = None

    @property
    def both(self) -> tuple[DeviceFindings | None, BackwardFindings | None]:
        """Of the output, and of the gradients."""
        return self.outputs, self.gradients

    @property
    def lost(self) -> list[str]:
        """Quantities that underflow may take all of."""
        found = {} if self.outputs is None else {"the output": self.outputs.lost}
        if self.gradients is not None:
            of = self.gradients
            found |= {"dQ": of.dq.lost, "dK": of.dk.lost, "dV": of.dv.lost}
        return [name for name, test in found.items() if test.may_be_all]

    @property
    def open_heads(self) -> set[int]:
        """Query heads of which a test is not surely passed: with gradients all of a group."""
        heads = set() if self.outputs is None else set(self.outputs.open_heads)
        if self.gradients is None:
            return heads
        shape = self.gradients.shape
        group = shape.heads // shape.kv_heads
        groups = self.gradients.open_groups | {head // group for head in heads}
        return {group * number + i for number in groups for i in range(group)}


def _why_hollow(problem: AttentionProblem, shape: Shape) -> str | None:
    sees = visible_keys(problem, shape, problem.q.device).count > 0
    return None if bool(sees.any()) else "no query sees a key"


def _pass_sentence(measured: Measured) -> str:
    findings, gradients = measured.both
    if findings is None:
        raise ValueError("nothing was measured, and nothing passes")
    what = "the output stays" if findings.lse is None else "the output and the LSE stay"
    used = 100 * findings.elements.worst.ratio
    sentence = (
        f"PASS: {what} within what rounding explains; "
        f"the worst element uses {used:.3g} % of its bound"
    )
    if gradients is None:
        return f"{sentence}."
    return (
        f"{sentence}; dQ, dK and dV stay within what rounding explains; "
        f"the worst element uses {100 * gradients.worst_ratio:.3g} % of its bound."
    )


@dataclass(frozen=True)
class _Work:
    """What is judged, and by whom what is left open."""

    problem: AttentionProblem
    outputs: KernelOutputs
    gradients: KernelGradients | None
    shape: Shape
    auditor: Auditor
    options: list[str]
    whole: Callable[[Sequence[str]], AuditReport] | None

    def _verdict(self, report: AuditReport, measured: Measured, reason: str) -> DeviceVerdict:
        place = str(self.problem.q.device)
        return DeviceVerdict(
            report.passed,
            report.sentence,
            "command line",
            place,
            *measured.both,
            reason,
            report,
        )

    def _audit_all(self, options: list[str]) -> AuditReport:
        if self.whole is not None:
            return self.whole(options)
        words = [*self.options, *options]
        return audit_dump(self.problem, self.outputs, self.auditor, words, self.gradients)

    def _audit_heads(self, heads: list[int], options: list[str]) -> AuditReport:
        part = some_heads(self.problem, self.outputs, self.gradients, self.shape, heads)
        return audit_dump(*part[:2], self.auditor, [*self.options, *options], part[2])

    def _is_cut(self, heads: list[int]) -> bool:
        """Whether some heads are a problem of one batch entry: segments are those of an entry."""
        of_entries = any(x.dim() > 1 for x in self.problem.features.segments or ())
        return not of_entries or len({head // self.shape.heads for head in heads}) == 1

    def ask_of_all(self, measured: Measured, reason: str) -> DeviceVerdict:
        """The command line's verdict on the whole problem."""
        return self._verdict(self._audit_all([]), measured, reason)

    def ask_what_is_lost(self, measured: Measured) -> DeviceVerdict:
        """The command line's verdict on the whole problem, on all rows and keys where it passes a
        sample: what is lost of a quantity is not judged only if all of it is.
        """
        reason = _why_lost(measured)
        verdict = self.ask_of_all(measured, reason)
        if not verdict.passed or not (verdict.report is not None and verdict.report.is_sample):
            return verdict
        options = ["--rows", "all", *([] if self.gradients is None else ["--keys", "all"])]
        return self._verdict(self._audit_all(options), measured, reason)

    def ask_with_gradients(self, measured: Measured) -> DeviceVerdict:
        """As ``ask_what_is_open``, of an output with its gradients: where the command line's verdict
        is one of a sample, all of the open groups of heads are judged as well.
        """
        heads = sorted(measured.open_heads)
        reason = _why_open_with_gradients(heads, self.shape)
        verdict = self.ask_of_all(measured, reason)
        if not verdict.passed or not (verdict.report is not None and verdict.report.is_sample):
            return verdict
        part = self._audit_heads(heads, ["--rows", "all", "--keys", "all"])
        found = self._verdict(part, measured, reason)
        return replace(found, sentence=_pass_sentence(measured)) if part.passed else found

    def ask_what_is_open(self, measured: Measured, findings: DeviceFindings) -> DeviceVerdict:
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
        if len(heads) < self.shape.batch * self.shape.heads and self._is_cut(heads):
            part = self._audit_heads(heads, ["--rows", "all"])
            if part.passed:
                verdict = self._verdict(part, measured, reason)
                return replace(verdict, sentence=_pass_sentence(measured))
        verdict = self.ask_of_all(measured, reason)
        if not verdict.passed or not (verdict.report is not None and verdict.report.is_sample):
            return verdict
        if part is not None and part.fails_by_worst_case:
            return self._verdict(part, measured, reason)
        if findings.is_surely_beyond:
            return replace(
                verdict, passed=False, sentence=_beyond_sentence(findings), decided_by="device"
            )
        if part is None:
            return self._verdict(self._audit_all(["--rows", "all"]), measured, reason)
        return self._verdict(part, measured, reason)


def _why_lost(measured: Measured) -> str:
    names = measured.lost
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"nothing in {listed} is surely larger than what underflow may take"


def _why_open_with_gradients(heads: list[int], shape: Shape) -> str:
    of = f"{len(heads)} of {shape.batch * shape.heads} heads"
    return f"the output or the gradients are not surely within their limits, in {of}"


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
