"""Audits of what a candidate gave, by the contract's premises and no hint of others: `audited`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..dump import premise_words
from ..server import RequestError, Server
from ..wording import document_in_python
from .audit_call import audit_call
from .contract import KernelContract
from .host import Call
from .judgement import Accuracy

_NOT_MADE: Mapping[str, Any] = {
    "verdict": {"pass": False, "status": "NOT JUDGED", "sentence": "", "findings": []},
    "outputs": [],
}


@dataclass(frozen=True)
class Audited:
    """The document of an audit."""

    document: Mapping[str, Any]
    #: Why it could not be made; None where it was.
    refused: str | None = None

    @property
    def passed(self) -> bool:
        """Whether it passes."""
        return bool(self.document["verdict"]["pass"])

    @property
    def is_sample(self) -> bool:
        """Whether it judged some of the rows alone."""
        return self.document.get("sample") is not None

    @property
    def failed(self) -> bool:
        """Whether it fails: an audit that could hold nothing against a bound does neither."""
        return str(self.document["verdict"]["status"]) == "FAIL"

    @property
    def sentence(self) -> str:
        """The verdict's sentence, without the word that it begins with, and without a cause that is none."""
        said = str(self.document["verdict"]["sentence"]).partition(": ")[2].rstrip(".")
        return said.partition("; the cause is unexplained")[0]

    @property
    def causes(self) -> tuple[str, ...]:
        """The names of the causes that fit: an audit's diagnosis, or `non-finite`; none where it does not fail, and where none is known."""
        if not self.failed:
            return ()
        verdict = self.document["verdict"]
        diagnosis = verdict.get("diagnosis") or {"id": "unexplained", "equivalents": []}
        if diagnosis["id"] != "unexplained":
            return (str(diagnosis["id"]), *map(str, diagnosis["equivalents"]))
        is_finite = all(one["test"] != "non-finite" for one in verdict["findings"])
        return () if is_finite else ("non-finite",)

    @property
    def finding(self) -> str:
        """The first thing that is wrong, with its numbers; the verdict's sentence where nothing is named."""
        found = [one["statement"] for one in self.document["verdict"]["findings"]]
        return str(found[0]) if found else self.sentence

    def accuracy(self, words: str) -> list[Accuracy]:
        """The errors of the output; none where the audit measured none."""
        quantities = self.document.get("outputs") or self.document.get("quantities") or []
        found = next((one for one in quantities if one["name"] == "out"), None)
        if found is None:
            return []
        # Audits of recurrences have no errors in ulps.
        ulps = (found.get("error") or {}).get("ulps") or {}
        spread = found.get("spread") or {}
        expected = spread.get("expected")
        ratio = spread["measured"] / expected if expected else None
        return [Accuracy(words, ulps.get("max"), ulps.get("rms"), ratio)]


def audited(call: Call, contract: KernelContract, server: Server | None) -> Audited:
    """The audit of a call. One that cannot be made, as of an output without its shape, neither passes nor fails."""
    words = ["--strict-premises"] if contract.kind == "attention" else []
    if contract.premises is not None:
        words += premise_words(contract.premises)
    try:
        found = audit_call(call, contract, words, server)
        return Audited({**found, "verdict": document_in_python(found["verdict"])})
    except RequestError as error:
        # Whose file it is, nobody saw.
        return Audited(_NOT_MADE, str(error).rpartition(".safetensors: ")[2])
