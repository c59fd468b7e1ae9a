"""Calls that are judged one by one within a context, and what is said of all of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal

from ..report import Told
from .backward import Backward
from .judged_call import JudgedCall, grouped, told_call
from .sampling import Sampling


class NotJudgedWarning(UserWarning):
    """Some calls within a context that judges them were not judged."""


class JudgedCalls(Told):
    """What a context found. True where calls were judged, and all of them pass."""

    #: What its calls compute, and what is missing where there is none.
    _kind: ClassVar[str]
    _function: ClassVar[str]

    def __init__(
        self, sampling: Sampling, on_fail: Literal["raise", "report"] | None = None
    ) -> None:
        if on_fail not in (None, "raise", "report"):
            raise ValueError(f"on_fail is {on_fail!r}; give 'raise' or 'report'")
        #: Calls that were met and not left out, in order.
        self.calls: list[JudgedCall] = []
        #: Calls that `torch.compile` made part of a graph, which nobody sees as it runs.
        self.compiled = 0
        #: Seconds that reading and judging calls took, with the waiting for a GPU in it.
        self.seconds_judging = 0.0
        self._sampling = sampling
        # Whoever samples a long run wants it to go on.
        usual = "report" if sampling.is_of_a_loop else "raise"
        self._on_fail = usual if on_fail is None else on_fail
        self._began = self._ended = time.perf_counter()
        #: Backward passes through judged calls.
        self._passes: list[tuple[JudgedCall, Backward]] = []

    @property
    def left_out(self) -> int:
        """Calls that were left out as `most_calls`, `sample` and `every` ask for."""
        return self._sampling.left_out

    @property
    def failures(self) -> list[JudgedCall]:
        """The calls that fail."""
        return [one for one in self.calls if one.failures]

    @property
    def accepted(self) -> list[JudgedCall]:
        """The calls with nothing but a known weakness of the library, which `known` accepts."""
        return [one for one in self.calls if one.is_accepted]

    @property
    def judged(self) -> int:
        """How many calls were judged."""
        return sum(one.report is not None for one in self.calls)

    @property
    def passed(self) -> bool:  # type: ignore[override]
        """Whether calls were judged, and none fails but by a known weakness that is accepted."""
        return self.judged > 0 and not self.failures

    @property
    def text(self) -> str:  # type: ignore[override]
        """What was found: the failures with the commands that show them again, and what was not judged."""
        lines = [self._sentence(), *self._failure_lines(), *self._accepted_lines(), *self._gaps()]
        if self._sampling.is_of_a_loop:
            lines += ["", self.summary]
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """How many calls were met, judged, passed and so on, and how long judging took."""
        failed, accepted = len(self.failures), len(self.accepted)
        not_judged = sum(one.not_judged is not None for one in self.calls)
        counts = {
            "seen": self._sampling.seen,
            "judged": self.judged,
            "passed": self.judged - failed - accepted,
            "failed": failed,
            "accepted as known": accepted,
            "not judged": not_judged,
            "left out": self.left_out,
        }
        said = ", ".join(f"{count} {name}" for name, count in counts.items())
        seconds = self._seconds()
        share = f" ({100 * self.seconds_judging / seconds:.0f} %)" if seconds > 0 else ""
        took = f"judging took {self.seconds_judging:.1f} s of {seconds:.1f} s{share}"
        # The cause of a failure is looked for, which takes several times as long as a pass.
        of_failures = sum(one.seconds for one in self.failures)
        if failed > 0:
            took += f", {of_failures:.1f} s of it what failed"
        return f"Calls: {said}; {took}."

    def _seconds(self) -> float:
        return self._ended - self._began

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
        accepted = len(self.accepted)
        but = f", but for a known weakness of {accepted}" if accepted > 0 else ""
        if accepted == self.judged:
            return f"ACCEPTED: {count} of {self._kind}{with_gradients}, with nothing wrong but a known weakness."
        explained = f"within what rounding explains{self._scope()}{but}"
        return f"PASS: {count} of {self._kind}{with_gradients}, {explained}."

    def _scope(self) -> str:
        """What of each call was judged, where that is not all."""
        return ""

    def _failure_lines(self) -> list[str]:
        return [line for one in self.failures for line in ("", *told_call(one))]

    def _accepted_lines(self) -> list[str]:
        lines = grouped((one, one.advice or "") for one in self.accepted)
        return ["", "Accepted by known:", *lines] if lines else []

    def _gaps(self) -> list[str]:
        """What was not judged, a line each."""
        lines = grouped((one, one.not_judged) for one in self.calls if one.not_judged is not None)
        judged = [one for one in self.calls if one.report is not None]
        for what in ("results", "gradients"):
            reasons = ((one, getattr(one, f"{what}_not_judged")) for one in judged)
            lines += grouped(
                ((one, reason) for one, reason in reasons if reason is not None), f", {what}"
            )
        if self.compiled > 0:
            lines.append(f"{self.compiled} calls in what torch.compile compiled")
        if self.left_out > 0:
            by = "every" if self._sampling.is_of_a_loop else "most_calls and sample"
            lines.append(f"{self.left_out} calls, left out by {by}")
        lines += self._further_gaps()
        return ["", "Not judged:", *lines] if lines else []

    def _further_gaps(self) -> Sequence[str]:
        return ()

    def _is_incomplete(self) -> bool:
        """Whether something that was to be judged was not, which a warning says."""
        return any(one.not_judged for one in self.calls) or self.compiled > 0

    def _tell_later_passes(self) -> None:
        """Say of calls through which several backward passes came that the first is judged."""
        for said, watched in self._passes:
            if watched.runs > 1:
                later = f"backward ran {watched.runs} times, of which the first is judged"
                told = said.gradients_not_judged
                said.gradients_not_judged = later if told is None else f"{told}; {later}"
        self._passes = []

    def _end(self) -> None:
        """End the time of a context, and leave out calls of which there is nothing to say, as of a function that raised."""
        self._ended = time.perf_counter()
        self.calls = [
            one for one in self.calls if one.report is not None or one.not_judged is not None
        ]

    def _raise_or_warn(self, depth: int) -> None:
        """Raise what fails, or tell what was not judged where the context ends, so many calls up."""
        __tracebackhide__ = True
        if self._on_fail == "raise" and not self.passed:
            raise AssertionError(self.text)
        if self._is_incomplete():
            warnings.warn("\n".join(self._gaps()[1:]), NotJudgedWarning, stacklevel=depth + 1)

    @contextmanager
    def _timed(self, said: JudgedCall) -> Iterator[None]:
        """Counts what is done within as judging a call."""
        began = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - began
            said.seconds += took
            self.seconds_judging += took
