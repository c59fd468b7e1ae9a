"""Answers the process protocol by a candidate's process, and watches what comes back: `IsolatedHost`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..kernel_host import ranked
from ..safetensors import Array, read, write
from .process import CandidateProcess
from .replies import Fault, Reply, conduct

#: Results of fewer elements are alike by chance.
_FEWEST_ELEMENTS = 64
#: The last calls that a later one is compared with.
_MOST_SEEN = 64
#: What every problem has of its own; a problem that a law makes of another leaves some of it.
_DRAWN = ("q", "k", "v", "x", "B", "C")


@dataclass(frozen=True)
class Call:
    """A problem with what the candidate gave for it."""

    tensors: Mapping[str, Array]
    metadata: Mapping[str, str]


@dataclass
class IsolatedHost:
    """Runs a candidate's process on problems that come as files, until the first fault."""

    process: CandidateProcess
    #: The folder of problems that show what is wrong.
    failures: Path
    #: Calls of a part of the plan whose problem and results are kept, to be audited as they are.
    most_kept: int = 4
    fault: Fault | None = None
    #: The file of the problem on which the fault came.
    kept: Path | None = None
    calls: int = 0
    #: The first calls of this part of the plan.
    examples: list[Call] = field(default_factory=list)
    #: Calls whose output is, to the bit, that of an earlier one on another Q, K and V, behind that one.
    repeated: list[tuple[Call, Call]] = field(default_factory=list)
    heard: dict[str, None] = field(default_factory=dict)
    _seen: dict[str, Call] = field(default_factory=dict)

    def start(self) -> None:
        """Start the process and load the candidate. Fault where it does not load, or replaces what measures it."""
        self._believe(self.process.start())

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry a request of the process protocol out; after a fault no problem is taken any more."""
        if self.fault is not None:
            error = "the judge has its verdict"
            return {"id": request["id"], "ok": False, "unsupported": True, "error": error}
        stored, metadata = read(request["problem"])
        if self._asks_too_much(stored, request):
            error = "the form has no place for the scale"
            return {"id": request["id"], "ok": False, "unsupported": True, "error": error}
        found = self.ask(stored, metadata, request)
        if self.fault is not None:
            return {"id": request["id"], "ok": False, "error": self.fault.statement}
        write(request["output"], found)
        return {"id": request["id"], "ok": True}

    def ask(
        self, stored: Mapping[str, Array], metadata: Mapping[str, str], request: Mapping[str, Any]
    ) -> Mapping[str, Array]:
        """What the candidate gives for a problem's tensors; nothing where it comes to a fault, which ends its process."""
        try:
            return self._run(stored, metadata, request)
        except Fault as fault:
            self.process.kill()
            self.fault = fault
            self.heard.update(dict.fromkeys(fault.heard))
            self.kept = self.keep(Call(stored, metadata), "fault")
            return {}

    def forget(self) -> None:
        """Let go of the calls that are kept."""
        self.examples.clear()
        self.repeated.clear()
        self._seen.clear()

    def _run(
        self, stored: Mapping[str, Array], metadata: Mapping[str, str], request: Mapping[str, Any]
    ) -> Mapping[str, Array]:
        self.calls += 1
        given = self._given(stored)
        settings = {
            name: value for name, value in request.items() if name not in ("problem", "output")
        }
        reply = self.process.call(stored, settings, given)
        self._believe(reply.said)
        found = dict(reply.results)
        if reply.given is not None:
            found["out"] = reply.given
            self._check_written(reply.given)
        self._check_memory(reply)
        call = Call({**stored, **found}, metadata)
        if len(self.examples) < self.most_kept:
            self.examples.append(call)
        self._compare(call)
        return found

    def _asks_too_much(self, stored: Mapping[str, Array], request: Mapping[str, Any]) -> bool:
        """Whether a problem has a scale of its own, which the candidate's form does not tell it; promises of recurrences have no scale."""
        if self.process.candidate.form.get("scale") != "default" or "q" not in stored:
            return False
        usual = stored["q"].shape[-1] ** -0.5
        return not math.isclose(float(request["scale"]), usual, rel_tol=1e-6)

    def _given(self, stored: Mapping[str, Array]) -> Array | None:
        """An output full of NaN, where the contract has the kernel fill one."""
        if self.process.contract.output != "preallocated":
            return None
        q, v = ranked("q", stored), ranked("v", stored)
        dtype = "BF16" if q.dtype.startswith("F8") else q.dtype
        return Array.filled(dtype, (*q.shape[:-1], v.shape[-1]), 0xFF)

    def _believe(self, said: Mapping[str, Any]) -> None:
        """What the process says of itself; Fault for what is against the candidate."""
        self.heard.update(dict.fromkeys(str(one) for one in said.get("heard") or ()))
        found = conduct(said)
        if found is not None:
            raise found

    @staticmethod
    def _check_written(given: Array) -> None:
        size = len(given.data) // max(1, _elements(given))
        never = bytes([0xFF]) * size
        left = sum(
            given.data[first : first + size] == never for first in range(0, len(given.data), size)
        )
        if left:
            raise Fault(
                "unwritten",
                f"{left} of {_elements(given)} elements of the given output were never written",
            )

    @staticmethod
    def _check_memory(reply: Reply) -> None:
        if reply.changed:
            raise Fault("input-changed", f"it writes to its inputs: {', '.join(reply.changed)}")
        for name, inputs in (reply.said.get("overlaps") or {}).items():
            raise Fault("output-aliased", f"{name} shares memory with {', '.join(inputs)}")
        if reply.said.get("overwritten"):
            names = ", ".join(map(str, reply.said["overwritten"]))
            raise Fault(
                "output-overwritten",
                f"a later call overwrites what an earlier one returned as {names}",
            )

    def _compare(self, call: Call) -> None:
        """Keep a call whose output has come before, on other inputs."""
        out = call.tensors.get("out")
        if out is None or _elements(out) < _FEWEST_ELEMENTS:
            return
        # Zeros and the like are no output of another problem.
        if out.data == out.data[: len(out.data) // _elements(out)] * _elements(out):
            return
        digest = hashlib.sha256(f"{out.dtype} {out.shape}".encode() + out.data).hexdigest()
        if len(self._seen) == _MOST_SEEN:
            self._seen.pop(next(iter(self._seen)))
        before = self._seen.setdefault(digest, call)
        drawn = [one for one in _DRAWN if one in call.tensors]
        is_other = all(before.tensors[one].data != call.tensors[one].data for one in drawn)
        if before is not call and is_other and len(self.repeated) < 4:
            self.repeated.append((before, call))

    def keep(self, call: Call, name: str) -> Path:
        """Keep a problem as a case of the first law, that it is right; its file."""
        self.failures.mkdir(parents=True, exist_ok=True)
        path = self.failures / f"{name}.safetensors"
        case = {"property": "within-bound", "choice": "0", "regime": "normal", "seed": "0"}
        write(path, call.tensors, {**call.metadata, **case})
        return path


def _elements(array: Array) -> int:
    count = 1
    for size in array.shape:
        count *= size
    return count
