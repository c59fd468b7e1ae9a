"""What `flashproof audit` and `flashproof check` found, as objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .wording import document_in_python, report_in_python

#: What share of the squared error a cause has to explain to be told as the nearest where none fits.
_NEAR = 0.9


def nearest_cause(document: Mapping[str, Any]) -> tuple[str, str] | None:
    """
    Where no cause fits what an audit found, the one that explains nine tenths of the squared error, by its name and in words.

    None for none, and for an empty document.
    """
    diagnosis = document.get("verdict", {}).get("diagnosis") or {}
    (nearest, *_) = diagnosis.get("candidates") or [None]
    if nearest is None or nearest["explained"] < _NEAR:
        return None
    share = int(100 * nearest["explained"])
    said = f"{nearest['sentence']}, which would explain {share} % of the squared error"
    return str(nearest["id"]), said


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with an output."""

    #: What failed: `bound`, `scale`, `nan`, … (docs/guide/auditing.md).
    test: str
    statement: str
    #: `out`, `lse`, `dq`, …
    quantity: str


class Told:
    """What was found: true where it passes, printed as its text, and shown as what it found in short."""

    passed: bool
    text: str

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return self.text.rstrip()

    def __repr__(self) -> str:
        # The first sentences, which lines of a report end in their middle.
        said = " ".join(self.text.partition("\n\n")[0].split())
        return f"<{type(self).__name__}: {said}>"


@dataclass(frozen=True, repr=False)
class Report(Told):
    """The verdict of an audit. True where the kernel passes."""

    passed: bool
    #: The verdict in one sentence, with its cause where one is known.
    sentence: str
    #: The name of the cause: `unexplained`, or one of docs/guide/auditing.md; None where nothing was found.
    cause: str | None
    findings: tuple[Finding, ...]
    #: The report as the command line prints it, with arguments in the place of options.
    text: str
    #: The report of `--json` (its schema is report.schema.json of the npm package); empty where the device decided.
    json: Mapping[str, Any]
    #: The command that gives this report again, where the problem was kept.
    command: str | None = None
    #: Who gave the verdict: `flashproof audit`, or PyTorch on the device that the tensors lie on, which gives passes alone.
    decided_by: Literal["command line", "device"] = "command line"

    @property
    def nearest(self) -> str | None:
        """Where no cause fits, the one that comes nearest, in words: see `nearest_cause`; None for none."""
        found = nearest_cause(self.json)
        return None if found is None else found[1]

    @property
    def status(self) -> str:
        """`PASS`; `FAIL`; or `NOT JUDGED`, which is neither, where nothing was held against a bound."""
        if self.passed:
            return "PASS"
        return str(self.json["verdict"]["status"]) if self.json else "FAIL"


def parse_report(document: Mapping[str, Any], text: str, command: str | None) -> Report:
    """The report of a document of `audit --json`."""
    verdict = document["verdict"]
    diagnosis = verdict.get("diagnosis")
    return Report(
        passed=bool(verdict["pass"]),
        sentence=verdict["sentence"],
        cause=None if diagnosis is None or verdict["pass"] else diagnosis["id"],
        findings=tuple(
            Finding(one["test"], one["statement"], one.get("quantity") or "out")
            for one in verdict.get("findings", [])
        ),
        text=text,
        json=document,
        command=command,
    )


def parse_report_in_python(document: Mapping[str, Any], text: str) -> Report:
    """The same of a problem that came as arguments: its words name these, and no options."""
    verdict = document_in_python(document["verdict"])
    return parse_report({**document, "verdict": verdict}, report_in_python(text), None)
