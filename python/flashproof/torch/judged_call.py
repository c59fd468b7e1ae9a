"""A judged call, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ..report import Report
from .callers import Place

#: Calls that are told each in a line of its own for one reason; those beyond are counted.
_TOLD_EACH = 3
#: What a report of a call is of.
Part = Literal["results", "gradients"]


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
    #: What of its results is not judged, and why.
    results_not_judged: str | None = None
    #: Gradients that are judged: some of `dq`, `dk`, `dv`, `dbias`; of recurrences `dg`, `dbeta` and so on.
    gradients: tuple[str, ...] = ()
    #: The verdict on gradients, where they have one of their own.
    gradient_report: Report | None = None
    #: What of its gradients is not judged, and why.
    gradients_not_judged: str | None = None
    #: What else is to be said of a failure: the known weakness of the library that it shows, or what was left unsaid, in a sentence.
    advice: str | None = None
    #: Seconds that reading and judging it took.
    seconds: float = 0.0
    _accepted: tuple[Part, ...] = ()

    def __str__(self) -> str:
        return f"call {self.number}, {self.place}: {self.problem}".rstrip(": ")

    def report_of(self, part: Part) -> Report | None:
        """The report of the results, or that of gradients where they have one of their own."""
        return self.report if part == "results" else self.gradient_report

    def set_report(self, part: Part, report: Report) -> None:
        """Have this report of a part."""
        if part == "results":
            self.report = report
        else:
            self.gradient_report = report

    def accept(self, part: Part, *, is_accepted: bool) -> None:
        """Say whether the report of a part is taken for no failure, since `known` accepts the weakness that it shows."""
        others = tuple(one for one in self._accepted if one != part)
        self._accepted = (*others, part) if is_accepted else others

    @property
    def is_accepted(self) -> bool:
        """Whether nothing fails but by a known weakness that `known` accepts."""
        return len(self._accepted) > 0 and not self.failures

    @property
    def failures(self) -> list[Report]:
        """Its reports that fail, but for a known weakness that is accepted."""
        parts: tuple[Part, ...] = ("results", "gradients")
        reports = [self.report_of(part) for part in parts if part not in self._accepted]
        return [one for one in reports if one is not None and not one.passed]

    @property
    def advices(self) -> list[str]:
        """What else is to be said of a failure, in no line or one."""
        return [] if self.advice is None else [self.advice]


def told_call(call: JudgedCall) -> list[str]:
    """A call that fails in lines: its place, what is wrong, and the command that shows it again."""
    reports = [line for report in call.failures for line in told_failure(report)]
    return [str(call), *reports, *call.advices]


def told_failure(report: Report) -> list[str]:
    """A report that fails in lines: what is wrong, and the command that shows it again."""
    lines = [report.sentence]
    if report.nearest is not None:
        lines.append(f"Nearest cause: {report.nearest}.")
    if report.command is not None:
        lines.append(f"Again: {report.command}")
    return lines


def grouped(reasons: Iterable[tuple[JudgedCall, str]], what: str = "") -> list[str]:
    """Calls with the reason of each, those beyond the first of a reason counted."""
    groups: dict[str, list[JudgedCall]] = {}
    for call, reason in reasons:
        groups.setdefault(reason, []).append(call)
    lines = []
    for reason, calls in groups.items():
        lines += [f"{one}{what}: {reason}" for one in calls[:_TOLD_EACH]]
        if len(calls) > _TOLD_EACH:
            lines.append(f"{len(calls) - _TOLD_EACH} more calls{what}: {reason}")
    return lines
