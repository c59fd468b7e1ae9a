"""Judged calls as whoever judges them chooses: which are judged, what is accepted, what is kept, and when it is told."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from ..arguments import JudgingArguments, RecurrentJudgingArguments
from ..dump import Premises
from .judged_call import JudgedCall, Part, told_failure
from .known import Subject, check_known, weakness_of
from .sampling import Sampling
from .verdicts import JudgedCalls

#: Problems of failing calls that a long run keeps.
MOST_KEPT = 8


@dataclass(frozen=True)
class Chosen:
    """What whoever judges calls chooses: the arguments of `judged_attention`, which has them in words."""

    sampling: Sampling
    premises: Premises | None | Literal["chosen"]
    known: Iterable[str] | None
    on_fail: Literal["raise", "report"] | None
    settings: JudgingArguments | RecurrentJudgingArguments


class ChosenCalls(JudgedCalls):
    """What calls came to, as they are met, and what is done about those that fail."""

    def __init__(self, chosen: Chosen) -> None:
        super().__init__(chosen.sampling, chosen.on_fail)
        self._premises = chosen.premises
        self._known = check_known(chosen.known)
        self._settings = chosen.settings
        self._kept = 0

    def _number(self) -> int:
        """The number of the call that is met now, from 1, among all that were met."""
        return len(self.calls) + self._sampling.left_out + 1

    def _conclude(
        self, said: JudgedCall, part: Part, subject: Subject, keep: Callable[[], str]
    ) -> None:
        """Say what follows from a report of a call; `keep` keeps its problem, and gives the command that judges it again."""
        __tracebackhide__ = True
        report = said.report_of(part)
        if report is None:
            return
        weakness = weakness_of(report, subject)
        is_accepted = weakness is not None and weakness.name in self._known
        said.accept(part, is_accepted=is_accepted)
        if report.passed:
            if self._sampling.is_of_a_loop:
                # Of each of a million calls the sentence is enough.
                said.set_report(part, replace(report, text=report.sentence, json={}))
            return
        if weakness is None:
            said.advice = subject.advice.get(report.cause or "")
        else:
            accept = "" if is_accepted else f"; known=[{weakness.name!r}] accepts it"
            said.advice = f"Known: {weakness.said} ({weakness.name}){accept}."
        if not is_accepted:
            self._fail(said, part, keep)

    def _fail(self, said: JudgedCall, part: Part, keep: Callable[[], str]) -> None:
        """Keep the problem of a call that fails; of a long run the first few, told at once."""
        __tracebackhide__ = True
        report = said.report_of(part)
        assert report is not None
        is_of_a_loop = self._sampling.is_of_a_loop
        if self._kept < MOST_KEPT or not is_of_a_loop:
            self._kept += 1
            report = replace(report, command=keep())
        if is_of_a_loop:
            # What is told of a nearest cause is read of the document.
            told = [str(said), *told_failure(report)]
            report = replace(report, json={})
            if self._on_fail == "report":
                print("flashproof:", *told, *said.advices, sep="\n", file=sys.stderr)
        said.set_report(part, report)

    @contextmanager
    def _going_on(self, said: JudgedCall) -> Iterator[None]:
        """Leaves a call unjudged where judging it raises, and nothing is to be raised: whoever trains goes on."""
        __tracebackhide__ = True
        try:
            yield
        except Exception as error:
            if self._on_fail == "raise":
                raise
            said.not_judged = f"judging it failed: {told_error(error)}"

    def _scope(self) -> str:
        rows = self._settings.get("rows")
        return "" if rows in (None, "all") else f" in a sample of {rows} rows of each at most"

    def _begin(self) -> None:
        """Begin a context."""
        self._began = time.perf_counter()

    def _close(self) -> None:
        """Judge what waits still, and tell of passes that were not the first."""
        self._tell_later_passes()

    def _finish(self, *, is_raising: bool) -> None:
        """End a context: raise what fails, or tell what was not judged. Nothing more is judged."""
        __tracebackhide__ = True
        if not is_raising:
            self._close()
        self._end()
        if self._sampling.is_of_a_loop and self._on_fail == "report":
            print(f"flashproof: {self.text}", file=sys.stderr)
            return
        if not is_raising:
            self._raise_or_warn(3)


def told_error(error: Exception) -> str:
    """An error in a line: those of this package are sentences, others have their kind before them."""
    said = str(error).partition("\n")[0]
    return said if isinstance(error, (ValueError, TypeError)) else f"{type(error).__name__}: {said}"
