"""One judgement while it is made: the parts of the plan, one after the other, until one shows what is wrong."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..checks import carry_out, contract_words
from ..dump import premise_words, temporary_folder
from ..safetensors import Array, read
from ..server import RequestError, Server
from . import audit_call
from .budget import Budget
from .candidate import Candidate
from .contract import KernelContract
from .failure import Failure, Findings
from .host import IsolatedHost
from .large import bytes_of, draw, formats_of, is_large, request_of, shape_of
from .plan import Part, plan
from .replies import Fault

#: Problems by which a cause is named; audits of recurrences take longer.
_MOST_EXPLAINED = {"attention": 10, "recurrent": 4}
#: Where what is wrong of a saved problem is.
_ALONE = "on the saved problem"
#: How often a part is drawn anew whose problems said nothing of a property.
_ATTEMPTS = 3


@dataclass
class Case:
    """One judgement: a candidate, what it is held to, and what came of that by now."""

    candidate: Candidate
    contract: KernelContract
    budget: Budget
    seed: int
    host: IsolatedHost
    server: Server
    until: float
    #: What of the plan was not judged, in words.
    missing: list[str] = field(default_factory=list)
    #: Properties that no problem of the contract says anything of, in words.
    silent: list[str] = field(default_factory=list)
    #: Problems that were held against bounds or laws.
    judged: int = 0

    def __post_init__(self) -> None:
        self.findings = Findings(self.contract, self.server, self.host)

    def failure(self) -> Failure | None:
        """What is wrong, by the first part of the plan that shows it; None where nothing is."""
        found = self._start()
        if found is not None:
            return found
        parts = plan(self.contract, self.budget, self.seed)
        for number, part in enumerate(parts):
            found = self._judge_part(part, number)
            if found is not None:
                if self.host.fault is None:
                    if not part.is_large:
                        self._draw_more(part, number)
                    found = self.findings.explained(found)
                return self.findings.named(found, parts[:number], part)
        return None

    def failure_of(self, witness: str) -> Failure | None:
        """What is wrong on a saved problem alone; None where nothing is."""
        found = self._start()
        if found is not None:
            return found
        large = self._large(witness)
        if large is not None:
            return self._failure_of_large(*large, witness)
        words = ["--replay", witness, *self._words()]
        with temporary_folder() as folder:
            answer = carry_out(self.host, folder, self.contract.promises, words, self.server)
        found = self.findings.of_fault(_ALONE)
        if found is not None:
            return found
        if answer.status == 0:
            # As a part of the plan is: by its law, and by an audit.
            return self._audit_alone(witness)
        self.judged += 1
        said = answer.stdout.partition("\n")[0].removeprefix("FAIL: ").rstrip(".")
        found = Failure(said.partition(" ")[0], said, _ALONE, Path(witness))
        return self.findings.explained(found, found.cause)

    def _large(self, witness: str) -> tuple[Mapping[str, Array], Mapping[str, str]] | None:
        """The tensors and metadata of a saved problem that is large; None for others, and for what cannot be read."""
        if self.contract.kind != "attention":
            return None
        try:
            stored, metadata = read(witness)
        except (OSError, ValueError, KeyError, struct.error):
            return None
        return (stored, metadata) if is_large(shape_of(stored)) else None

    def _audit_alone(self, witness: str) -> Failure | None:
        found = self._measured(Part("drawn", _ALONE, None, 1))
        if found is None or found.cause == "answer":
            return found
        return self.findings.explained(replace(found, witness=Path(witness)))

    def _failure_of_large(
        self, stored: Mapping[str, Array], metadata: Mapping[str, str], witness: str
    ) -> Failure | None:
        inputs = {name: stored[name] for name in ("q", "k", "v")}
        causal = metadata.get("causal") == "true"
        scale = float(metadata["scale"])
        self.host.ask(inputs, metadata, request_of(scale, causal=causal))
        return self.findings.of_fault(_ALONE) or self._audit_alone(witness)

    def _start(self) -> Failure | None:
        try:
            self.host.start()
        except Fault as fault:
            return Failure(fault.cause, fault.statement)
        return None

    def _judge_part(self, part: Part, number: int) -> Failure | None:
        """What is wrong on a part, which is drawn anew where its problems say nothing of a property; None where nothing is."""
        if part.is_large:
            self.host.forget()
            return self._judge_large(part, self.seed + number)
        trial = part
        for attempt in range(_ATTEMPTS):
            left = self.until - time.monotonic()
            if left <= 0:
                self.missing.append(f"{part.words}: the time of the budget was up")
                return None
            self.host.examples.clear()
            seed = (self.seed + number + 1000 * attempt) % 2**31
            report = self._check(trial, seed, left)
            found = self.findings.of_fault(part.words)
            if found is not None:
                return found
            if report is None:
                silent = list(trial.properties or ["within-bound"])
                continue
            found, silent = self._found(part, report)
            if found is not None or not silent:
                return found
            trial = replace(part, properties=tuple(silent))
        said = f"{part.words}: {', '.join(silent)}, on no problem"
        # Whether it is right has to be judged, and what the contract names; a law of the LSE is silent where a kernel gives none.
        is_due = part.properties is not None or "within-bound" in silent
        (self.missing if is_due else self.silent).append(said)
        return None

    def _judge_large(self, part: Part, seed: int) -> Failure | None:
        """What is wrong on a part of large problems; None where nothing is."""
        shape = part.shape
        assert shape is not None
        formats = formats_of(self.contract)
        needed = bytes_of(shape, formats or ["fp32"])
        why = (
            "large problems are of fp64, fp32, fp16 and bf16"
            if not formats
            else f"its tensors take {needed / 2**30:.2g} GiB, and the budget has {self.budget.memory / 2**30:.2g}; give more memory"
            if needed > self.budget.memory
            else None
        )
        if why is not None:
            self.missing.append(f"{part.words}: {why}")
            return None
        for number in range(part.runs):
            if time.monotonic() > self.until:
                self.missing.append(f"{part.words}: the time of the budget was up")
                return None
            self.host.examples.clear()
            problem, metadata, request = draw(shape, self.contract, seed, number)
            given = self.host.ask(problem, metadata, request)
            again = given if self.host.fault else self.host.ask(problem, metadata, request)
            found = self.findings.of_fault(part.words)
            if found is not None:
                return found
            other = [name for name, array in given.items() if again.get(name) != array]
            if other and self.contract.promises.get("laws", {}).get("determinism") != "none":
                kept = self.host.keep(self.host.examples[0], "determinism")
                said = f"{' and '.join(other)} of the same problem have other bits again"
                return Failure("determinism", said, part.words, kept)
            del self.host.examples[1:]
            found = self._measured(part)
            if found is not None:
                return found
        if self.findings.is_sample:
            rows = shape.batch * shape.heads * shape.queries
            sample = f"a sample of {audit_call.SAMPLED_ROWS} of {rows}"
            self.silent.append(f"{part.words}: rows but {sample}")
        if self.contract.promises.get("gradients"):
            self.silent.append(f"{part.words}: gradients")
        return None

    def _measured(self, part: Part) -> Failure | None:
        """What audits of what the candidate gave last find wrong; None where nothing is. Where they judge nothing, that is missing."""
        found, audits = self.findings.measure(part)
        self.judged += audits
        if found is not None:
            return found
        if self.findings.refused is not None:
            return Failure("answer", self.findings.refused, part.words)
        if not audits:
            self.missing.append(f"{part.words}: nothing could be held against a bound")
        return None

    def _draw_more(self, part: Part, number: int) -> None:
        """Run a candidate that fails on more problems of a part: what fits all of them is the likelier cause."""
        most = _MOST_EXPLAINED[self.contract.kind]
        self.host.most_kept = most
        more = replace(part, properties=("determinism",), runs=most)
        left = self.until - time.monotonic()
        if left > 0:
            self._check(more, (self.seed + number + 500) % 2**31, left)

    def _found(self, part: Part, report: Mapping[str, Any]) -> tuple[Failure | None, list[str]]:
        """What a check found wrong, and the properties that it says nothing of."""
        properties = report["properties"]
        self.judged += sum(one["tried"] for one in properties)
        violated = next((one for one in properties if one["violation"] is not None), None)
        if violated is not None:
            return self.findings.of_violation(part, violated), []
        if report["execution"] is not None:
            return Failure("answer", str(report["execution"]["statement"]), part.words), []
        if not report["verdict"]["pass"]:
            return Failure("answer", str(report["verdict"]["sentence"]), part.words), []
        if report["outOfTime"]:
            self.missing.append(f"{part.words}: the time of the budget was up")
        found, audits = self.findings.measure(part)
        self.judged += audits
        # What is named was to be tried, whatever the promises say of it.
        none = ("untried",) if part.properties is None else ("untried", "skipped")
        named = part.properties or [one["name"] for one in properties]
        silent = [
            one["name"] for one in properties if one["result"] in none and one["name"] in named
        ]
        # An audit holds what the law holds.
        return found, [one for one in silent if not (one == "within-bound" and audits)]

    def _check(self, part: Part, seed: int, left: float) -> Any:
        """The document of `flashproof check` on a part; None where none of its problems could be tried."""
        words = [
            *self._words(),
            *("--json", "-", "--bail", "--save-dir", str(self.host.failures)),
            *("--seed", str(seed), "--runs", str(part.runs), "--seconds", f"{left:.3f}"),
        ]
        if part.properties is not None:
            words += ["--property", ",".join(part.properties)]
        promises = {**self.contract.promises, **part.promises}
        try:
            with temporary_folder() as folder:
                answer = carry_out(self.host, folder, promises, words, self.server)
        except RequestError as error:
            if self.host.fault is None and not str(error).startswith("nothing was checked"):
                raise
            return None
        return json.loads(answer.stdout)

    def _words(self) -> list[str]:
        """The contract as words of `flashproof check`; no word of them is the candidate's."""
        # The judge's own limits are shorter: the host answers in any case.
        longest = self.budget.call_seconds + self.budget.load_seconds + 60
        words = [*contract_words(self.contract.kind), "--timeout", str(longest)]
        if self.contract.kind == "attention":
            words.append("--strict-premises")
        if self.contract.premises is not None:
            words += premise_words(self.contract.premises)
        return words
