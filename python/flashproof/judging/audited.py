"""Audits of what a candidate gave, by the contract's premises and no hint of others: `audited`, `diagnosed`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..dump import premise_words, temporary_folder, write_dump
from ..server import RequestError, Server, shared_server
from .contract import KernelContract
from .host import Call
from .judgement import Accuracy


@dataclass(frozen=True)
class Audited:
    """The document of an audit."""

    document: Mapping[str, Any]

    @property
    def passed(self) -> bool:
        """Whether it passes."""
        return bool(self.document["verdict"]["pass"])

    @property
    def failed(self) -> bool:
        """Whether it fails: an audit that could hold nothing against a bound does neither."""
        return str(self.document["verdict"]["status"]) == "FAIL"

    @property
    def sentence(self) -> str:
        """The verdict's sentence, without the word that it begins with, and without a cause that is none."""
        said = str(self.document["verdict"]["sentence"]).partition(": ")[2].rstrip(".")
        return said.removesuffix("; the cause is unexplained")

    @property
    def cause(self) -> str | None:
        """The name of the cause: an audit's diagnosis, `non-finite`, or `unexplained`; None where it does not fail."""
        if not self.failed:
            return None
        verdict = self.document["verdict"]
        found = str((verdict.get("diagnosis") or {"id": "unexplained"})["id"])
        tests = {one["test"] for one in verdict["findings"]}
        return "non-finite" if found == "unexplained" and "non-finite" in tests else found

    def accuracy(self, words: str) -> list[Accuracy]:
        """The errors of the output; none where the audit measured none."""
        found = next((one for one in self.document["outputs"] if one["name"] == "out"), None)
        if found is None or found.get("error") is None or found["error"].get("ulps") is None:
            return []
        ulps, spread = found["error"]["ulps"], found.get("spread") or {}
        expected = spread.get("expected")
        ratio = spread["measured"] / expected if expected else None
        return [Accuracy(words, ulps["max"], ulps["rms"], ratio)]


def _audit(path: str, contract: KernelContract, server: Server | None) -> Audited | None:
    words = ["audit", path, "--json", "-"]
    if contract.kind == "attention":
        words.append("--strict-premises")
    if contract.premises is not None:
        words += premise_words(contract.premises)
    try:
        answer = (server or shared_server()).run(words)
    except RequestError:
        return None
    return Audited(json.loads(answer.stdout))


def audited(call: Call, contract: KernelContract, server: Server | None) -> Audited | None:
    """The audit of a call; None where there is nothing to audit."""
    tensors = {name: array for name, array in call.tensors.items() if not name.startswith("d")}
    with temporary_folder() as folder:
        return _audit(write_dump(folder, "call", tensors, call.metadata), contract, server)


def diagnosed(saved: Path, contract: KernelContract, server: Server | None) -> Audited | None:
    """The audit of a saved counterexample, which has the output; None where there is nothing to audit."""
    return _audit(str(saved), contract, server)
