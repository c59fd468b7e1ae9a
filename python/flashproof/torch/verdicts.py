"""Calls that are judged one by one within a context, and what is said of all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..report import Report
from .callers import Place


class NotJudgedWarning(UserWarning):
    """Some calls within a context that judges them were not judged."""


@dataclass
class JudgedCall:
    """A call, and what is said of it."""

    #: From 1.
    number: int
    place: Place
    #: Sizes and settings in a few words.
    problem: str = ""
    #: The verdict; None where the call is not judged, or not yet.
    report: Report | None = None
    #: Why it is not judged.
    not_judged: str | None = None
    #: Gradients that are judged: some of `dq`, `dk`, `dv`, `dbias`; of recurrences `dg`, `dbeta` and so on.
    gradients: tuple[str, ...] = ()
    #: The verdict on gradients, where they have one of their own.
    gradient_report: Report | None = None
    #: What of its gradients is not judged, and why.
    gradients_not_judged: str | None = None

    def __str__(self) -> str:
        return f"call {self.number}, {self.place}: {self.problem}".rstrip(": ")

    @property
    def failures(self) -> list[Report]:
        """Its reports that fail."""
        reports = (self.report, self.gradient_report)
        return [one for one in reports if one is not None and not one.passed]


class JudgedCalls:
    """What a context found. True where calls were judged, and all of them pass."""

    #: What its calls compute, and what is missing where there is none.
    _kind: ClassVar[str]
    _function: ClassVar[str]

    def __init__(
        self,
        most: int | None,
        sample: float,
        on_fail: Literal["raise", "report"],
        seed: int | None = None,
    ) -> None:
        if on_fail not in ("raise", "report"):
            raise ValueError(f"on_fail is {on_fail!r}; give 'raise' or 'report'")
        if not 0 < sample <= 1:
            raise ValueError(f"sample is {sample}; give a probability above 0, up to 1")
        if most is not None and most < 1:
            raise ValueError(f"most_calls is {most}; give 1 or more, or None for all")
        #: Every call that was met, in order.
        self.calls: list[JudgedCall] = []
        #: Calls that were left out as `most_calls` and `sample` ask for.
        self.left_out = 0
        #: Calls that `torch.compile` made part of a graph, which nobody sees as it runs.
        self.compiled = 0
        self._most = most
        self._sample = sample
        self._on_fail = on_fail
        self._random = random.Random(seed or 0)

    @property
    def failures(self) -> list[JudgedCall]:
        """The calls that fail."""
        return [one for one in self.calls if one.failures]

    @property
    def judged(self) -> int:
        """How many calls were judged."""
        return sum(one.report is not None for one in self.calls)

    @property
    def passed(self) -> bool:
        """Whether calls were judged, and none fails."""
        return self.judged > 0 and not self.failures

    def __bool__(self) -> bool:
        return self.passed

    @property
    def text(self) -> str:
        """What was found: the failures with the commands that show them again, and what was not judged."""
        return "\n".join([self._sentence(), *self._failure_lines(), *self._gaps()])

    def _sentence(self) -> str:
        failures = len(self.failures)
        if failures > 0:
            verb = "fails" if failures == 1 else "fail"
            return f"FAIL: {failures} of {self.judged} judged calls of {self._kind} {verb}."
        if self.judged == 0:
            return f"NOT JUDGED: no call of {self._function} was judged."
        count = f"{self.judged} calls" if self.judged > 1 else "the call"
        gradients = sum(len(one.gradients) for one in self.calls)
        with_gradients = f", with {gradients} gradients" if gradients > 0 else ""
        return f"PASS: {count} of {self._kind}{with_gradients}, within what rounding explains."

    def _failure_lines(self) -> list[str]:
        return [
            line
            for one in self.failures
            for report in one.failures
            for line in ("", str(one), report.sentence, f"Again: {report.command}")
        ]

    def _gaps(self) -> list[str]:
        """What was not judged, a line each."""
        lines = [f"{one}: {one.not_judged}" for one in self.calls if one.not_judged is not None]
        lines += [
            f"{one}, gradients: {one.gradients_not_judged}"
            for one in self.calls
            if one.report is not None and one.gradients_not_judged is not None
        ]
        if self.compiled > 0:
            lines.append(f"{self.compiled} calls in what torch.compile compiled")
        if self.left_out > 0:
            lines.append(f"{self.left_out} calls, left out by most_calls and sample")
        lines += self._further_gaps()
        return ["", "Not judged:", *lines] if lines else []

    def _further_gaps(self) -> Sequence[str]:
        return ()

    def _is_wanted(self) -> bool:
        taken = sum(one.not_judged is None for one in self.calls)
        if self._most is not None and taken >= self._most:
            return False
        # The first always, so that there is a verdict.
        return self._random.random() < self._sample or taken == 0
