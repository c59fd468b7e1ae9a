"""Why a candidate fails, as far as what was tried says it: `Failure`, `Findings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..report import nearest_cause
from ..server import Server
from .audited import Audited, audited
from .contract import KernelContract
from .host import IsolatedHost
from .judgement import Accuracy
from .plan import Part

#: How much larger the errors of another size have to be to be that size's: those of a coarse kernel lie at chance here and there
#: beyond a bound, and are as large elsewhere.
_OTHER_ERRORS = 16
#: Problems whose errors a cause that does not fit has to come near.
_FEWEST_NEAR = 3


@dataclass(frozen=True)
class Failure:
    """Why a candidate fails."""

    cause: str
    reason: str
    place: str | None = None
    witness: Path | None = None
    #: The root mean square error of an audit that fails, over that of independent roundings; None where there is none.
    ratio: float | None = None


@dataclass
class Findings:
    """What audits say of what a candidate gave."""

    contract: KernelContract
    server: Server | None
    host: IsolatedHost
    #: Errors of problems that pass.
    profile: list[Accuracy] = field(default_factory=list)
    #: Whether the last audits judged some of the rows alone.
    is_sample: bool = False
    #: Why one of them could not be made; None where all were.
    refused: str | None = None

    def of_fault(self, words: str) -> Failure | None:
        """The fault that ended the calls; None for none."""
        fault = self.host.fault
        return (
            None if fault is None else Failure(fault.cause, fault.statement, words, self.host.kept)
        )

    def measure(self, part: Part) -> tuple[Failure | None, int]:
        """Audit some problems of a part: a failure where that refuses what the properties let pass, and how many pass."""
        reports = self._audits()
        for call, report in zip(self.host.examples, reports):
            if report.failed:
                kept = self.host.keep(call, "audit")
                return Failure("unexplained", report.finding, part.words, kept), 0
        for report in reports:
            self.profile += report.accuracy(part.words)
        self.is_sample = any(report.is_sample for report in reports)
        self.refused = next((report.refused for report in reports if report.refused), None)
        return None, sum(report.passed for report in reports)

    def of_violation(self, part: Part, violated: Mapping[str, Any]) -> Failure:
        """A property that is violated."""
        violation, law = violated["violation"], str(violated["name"])
        saved = Path(violation["saved"]) if violation.get("saved") else None
        regime, problem = violation.get("regime"), _problem(violation["problem"])
        place = f"{part.words}: {law}, regime {regime}, simplified to {problem}"
        return Failure(law, str(violation["statement"]), place, saved)

    def _audits(self) -> list[Audited]:
        """Audits of problems as they were drawn: what is simplified has so few digits left that it fits causes which are none."""
        return [audited(call, self.contract, self.server) for call in self.host.examples]

    def explained(self, found: Failure, otherwise: str = "unexplained") -> Failure:
        """
        A failure by the cause that fits every audit that fails: there is one kernel, whatever else fits one problem of it.

        The nearest cause is said where none fits, and the cause is `otherwise`.
        """
        reports = self._audits()
        failed = [report for report in reports if report.failed]
        if not failed:
            return found
        ratio = max(
            (one.rms_ratio or 0 for report in failed for one in report.accuracy("")), default=0
        )
        found = replace(found, ratio=ratio)
        common = [one for one in failed[0].causes if all(one in report.causes for report in failed)]
        if len(common) != 1:
            several = f"; several causes fit: {', '.join(common)}" if common else ""
            errors = (
                f"; its errors are {ratio:.3g} times those of independent roundings"
                if ratio
                else ""
            )
            cause = "ambiguous" if common else otherwise
            near = "" if common else _nearest(failed)
            return replace(found, cause=cause, reason=f"{found.reason}{errors}{several}{near}")
        shortest = min(failed, key=lambda report: len(report.causes)).sentence
        reason = shortest if found.reason in shortest else f"{found.reason}; {shortest}"
        return replace(found, cause=common[0], reason=reason)

    def named(self, found: Failure, before: list[Part], part: Part) -> Failure:
        """A failure by what the parts before it say."""
        if self.host.fault is not None:
            return found
        if self._is_stale():
            said = "it gives for new inputs, bit for bit, what was right for earlier ones"
            return replace(found, cause="stale", reason=f"{said}; {found.reason}")
        kinds = {one.kind for one in before}
        largest = max((one.rms_ratio or 0 for one in self.profile), default=0)
        if not largest or found.ratio is None or found.ratio < _OTHER_ERRORS * largest:
            return found
        if part.kind == "neighbour" and self.contract.shapes:
            said = f"right on the shapes that were announced, wrong {part.words}"
            return replace(found, cause="shape", reason=f"{said}; {found.reason}")
        if part.kind == "large" and "neighbour" in kinds:
            said = f"right on smaller problems, wrong {part.words}"
            return replace(found, cause="size", reason=f"{said}; {found.reason}")
        return found

    def _is_stale(self) -> bool:
        """Whether an output that was right for other inputs came again where it is wrong."""
        for before, again in self.host.repeated:
            first, second = (audited(one, self.contract, self.server) for one in (before, again))
            if first.passed and second.failed:
                return True
        return False


def _nearest(failed: list[Audited]) -> str:
    """The cause that comes nearest to the errors of every audit, in a clause; of one problem many faults come near."""
    near = [nearest_cause(one.document) for one in failed]
    if (
        len(near) < _FEWEST_NEAR
        or near[0] is None
        or any(not one or one[0] != near[0][0] for one in near)
    ):
        return ""
    return f"; the nearest cause is that {near[0][1]}"


def _problem(problem: Mapping[str, Any]) -> str:
    heads = problem.get("heads", 1)
    counted = f"{heads} head{'' if heads == 1 else 's'}"
    if "seqlenK" not in problem:
        return f"{counted}, {problem.get('tokens')} tokens"
    return f"{counted}, {problem['seqlenQ']} queries × {problem['seqlenK']} keys"
