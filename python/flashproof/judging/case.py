"""One judgement while it is made: the parts of the plan, one after the other, until one shows what is wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..checks import carry_out, contract_words
from ..dump import premise_words, temporary_folder
from ..server import RequestError, Server
from .audited import Audited, audited, diagnosed
from .budget import Budget
from .candidate import Candidate
from .contract import KernelContract
from .host import IsolatedHost
from .judgement import Accuracy
from .plan import Part, plan
from .process import Fault


@dataclass(frozen=True)
class Failure:
    """Why a candidate fails."""

    cause: str
    reason: str
    place: str | None = None
    witness: Path | None = None


@dataclass
class Case:
    """One judgement: a candidate, what it is held to, and what came of that by now."""

    candidate: Candidate
    contract: KernelContract
    budget: Budget
    seed: int
    host: IsolatedHost
    server: Server | None
    until: float
    #: What of the plan was not judged, in words.
    missing: list[str] = field(default_factory=list)
    #: Problems that were held against bounds or laws.
    judged: int = 0
    #: Errors of some of them.
    profile: list[Accuracy] = field(default_factory=list)

    def failure(self) -> Failure | None:
        """What is wrong, by the first part of the plan that shows it; None where nothing is."""
        try:
            self.host.start()
        except Fault as fault:
            return Failure(fault.cause, fault.statement)
        parts = plan(self.contract, self.budget, self.seed)
        for number, part in enumerate(parts):
            self.host.examples.clear()
            left = self.until - time.monotonic()
            if left <= 0:
                self.missing.append(f"{part.words}: the time of the budget was up")
                continue
            found = self._judge_part(part, number, left)
            if found is not None:
                return self._named(found, parts[:number], part)
        return None

    def failure_of(self, witness: str) -> Failure | None:
        """What is wrong on a saved problem alone; None where nothing is."""
        try:
            self.host.start()
        except Fault as fault:
            return Failure(fault.cause, fault.statement)
        words = ["--replay", witness, *self._words()]
        with temporary_folder() as folder:
            answer = carry_out(self.host, folder, self.contract.promises, words, self.server)
        if self.host.fault is not None:
            found = self.host.fault
            return Failure(found.cause, found.statement, witness, Path(witness))
        self.judged += 1
        if answer.status == 0:
            return None
        said = answer.stdout.partition("\n")[0].removeprefix("FAIL: ").rstrip(".")
        return Failure(said.partition(" ")[0], said, witness, Path(witness))

    def _judge_part(self, part: Part, number: int, left: float) -> Failure | None:
        report = self._check(part, number, left)
        if self.host.fault is not None:
            fault = self.host.fault
            return Failure(fault.cause, fault.statement, part.words, self.host.kept)
        if isinstance(report, str):
            self.missing.append(f"{part.words}: {report}")
            return None
        self.judged += sum(one["tried"] for one in report["properties"])
        violated = next((one for one in report["properties"] if one["violation"] is not None), None)
        if violated is not None:
            return self._violation(part, violated)
        if report["execution"] is not None:
            return Failure("answer", str(report["execution"]["statement"]), part.words)
        self._note_missing(part, report)
        return self._measure(part)

    def _note_missing(self, part: Part, report: Mapping[str, Any]) -> None:
        if report["outOfTime"]:
            self.missing.append(f"{part.words}: the time of the budget was up")
        untried = [one["name"] for one in report["properties"] if one["result"] == "untried"]
        if untried:
            self.missing.append(f"{part.words}: {', '.join(untried)}, on no problem")

    def _check(self, part: Part, number: int, left: float) -> Any:
        """The document of `flashproof check` on a part; a text that says why there is none."""
        words = [
            *self._words(),
            *("--json", "-", "--bail", "--save-dir", str(self.host.failures)),
            *("--seed", str((self.seed + number) % 2**31), "--runs", str(part.runs)),
            *("--seconds", f"{left:.3f}"),
        ]
        if part.properties is not None:
            words += ["--property", ",".join(part.properties)]
        promises = {**self.contract.promises, **part.promises}
        try:
            with temporary_folder() as folder:
                answer = carry_out(self.host, folder, promises, words, self.server)
        except RequestError as error:
            if self.host.fault is not None:
                return ""
            if self.judged == 0 and not str(error).startswith("nothing was checked"):
                raise
            return str(error)
        return json.loads(answer.stdout)

    def _words(self) -> list[str]:
        """The contract as words of `flashproof check`; no word of them is the candidate's."""
        words = contract_words(self.contract.kind)
        # The judge's own limits are shorter: the host answers in any case.
        longest = self.budget.call_seconds + self.budget.load_seconds + 60
        words += ["--timeout", str(longest)]
        if self.contract.kind == "attention":
            words.append("--strict-premises")
        if self.contract.premises is not None:
            words += premise_words(self.contract.premises)
        return words

    def _violation(self, part: Part, violated: Mapping[str, Any]) -> Failure:
        violation = violated["violation"]
        saved = Path(violation["saved"]) if violation.get("saved") else None
        found = None if saved is None else diagnosed(saved, self.contract, self.server)
        cause = found.cause if found is not None and found.cause else str(violated["name"])
        reason = str(violation["statement"])
        if found is not None and found.cause and found.sentence not in reason:
            reason = f"{reason}; {found.sentence}"
        place = f"{part.words}: {violated['name']}, regime {violation.get('regime')}, simplified to {_problem(violation['problem'])}"
        return Failure(cause, reason, place, saved)

    def _named(self, found: Failure, before: list[Part], part: Part) -> Failure:
        """A failure by what the other parts say of it."""
        if self.host.fault is not None:
            return found
        if self._is_stale():
            said = "it gives for new inputs, bit for bit, what was right for earlier ones"
            return Failure("stale", f"{said}; {found.reason}", found.place, found.witness)
        kinds = {one.kind for one in before}
        if part.kind == "neighbour" and self.contract.shapes:
            reason = f"right on the shapes that were announced, wrong {part.words}; {found.reason}"
            return Failure("shape", reason, found.place, found.witness)
        if part.kind == "large" and "neighbour" in kinds:
            reason = f"right on smaller problems, wrong {part.words}; {found.reason}"
            return Failure("size", reason, found.place, found.witness)
        return found

    def _is_stale(self) -> bool:
        """Whether an output that was right for other inputs came again where it is wrong."""
        for before, again in self.host.repeated:
            first, second = (audited(one, self.contract, self.server) for one in (before, again))
            if first is not None and second is not None and first.passed and second.failed:
                return True
        return False

    def _diagnosis(self, saved: Path | None) -> Audited | None:
        """An audit that fails: of a problem as it was drawn, which says more than what it was simplified to; else of that."""
        for call in self.host.examples:
            report = audited(call, self.contract, self.server)
            if report is not None and report.failed:
                return report
        report = None if saved is None else diagnosed(saved, self.contract, self.server)
        return report if report is not None and report.failed else None

    def _measure(self, part: Part) -> Failure | None:
        """Audit some problems of a part for their errors; a failure where that refuses what the properties let pass."""
        for call in self.host.examples:
            report = audited(call, self.contract, self.server)
            if report is None:
                continue
            self.judged += 1
            if report.failed:
                kept = self.host.keep(call, "audit")
                return Failure(report.cause or "unexplained", report.sentence, part.words, kept)
            self.profile += report.accuracy(part.words)
        return None


def _problem(problem: Mapping[str, Any]) -> str:
    tokens = problem.get("seqlenQ", problem.get("tokens"))
    keys = f" × {problem['seqlenK']} keys" if "seqlenK" in problem else " tokens"
    return f"{problem.get('heads', 1)} heads, {tokens}{' queries' if 'seqlenK' in problem else ''}{keys}"
