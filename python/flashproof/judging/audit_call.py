"""How a call is audited: all of its rows, or of a large one a sample, where no GPU judges it whole: `audit_call`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..dump import temporary_folder, write_dump
from ..server import RequestError, Server, shared_server
from .contract import KernelContract
from .host import Call
from .large import is_large, shape_of

#: Rows of a sample, of all heads: of so many, one is in a fault of 0.1 % of all rows with a probability of 98 %.
SAMPLED_ROWS = 4096


def audit_call(
    call: Call, contract: KernelContract, words: Sequence[str], server: Server | None
) -> Any:
    """
    The document of `flashproof audit` on a call, with further words; a pass of a large call that a GPU judged whole has the verdict alone.

    RequestError for results that cannot be audited.
    """
    asked = server or shared_server()
    if "out" not in call.tensors:
        raise RequestError("it gives no output")
    if contract.kind != "attention" or not is_large(shape_of(call.tensors)):
        return _on_the_cpu(call, list(words), asked)
    is_plain = set(call.tensors) <= {"q", "k", "v", "out", "lse"}
    if (
        contract.device == "cpu"
        or not is_plain
        or not {"window", "softcap"}.isdisjoint(call.metadata)
    ):
        return _on_the_cpu(call, [*words, "--rows", str(SAMPLED_ROWS)], asked)
    return _on_the_device(call, contract.device, words, asked)


def _on_the_cpu(call: Call, words: list[str], server: Server) -> Any:
    size = sum(len(array.data) for array in call.tensors.values())
    with temporary_folder(size) as folder:
        path = write_dump(folder, "call", call.tensors, call.metadata)
        answer = server.run(["audit", path, "--json", "-", *words])
    return json.loads(answer.stdout)


def _on_the_device(call: Call, place: str, words: Sequence[str], server: Server) -> Any:
    import torch

    from .. import device
    from ..arrays import from_array

    def placed(name: str) -> Any:
        return from_array(call.tensors[name], "torch").to(place)

    def auditor(dump: Path, options: Sequence[str]) -> device.AuditReport:
        rows = [] if "--rows" in options else ["--rows", str(SAMPLED_ROWS)]
        answer = server.run(["audit", str(dump), "--json", "-", *words, *options, *rows])
        return device.AuditReport(json.loads(answer.stdout))

    problem = device.AttentionProblem(
        placed("q"),
        placed("k"),
        placed("v"),
        float(call.metadata["scale"]),
        call.metadata["causal"] == "true",
    )
    lse = placed("lse") if "lse" in call.tensors else None
    try:
        found = device.judge(problem, device.KernelOutputs(placed("out"), lse), auditor=auditor)
    except ValueError as error:
        raise RequestError(str(error)) from None
    finally:
        # The candidate runs on the same device.
        torch.cuda.empty_cache()
    if found.report is not None and found.decided_by == "command line":
        return found.report.report
    wrong = {"test": "bound", "statement": found.sentence.partition(": ")[2].rstrip(".")}
    verdict = {
        "pass": found.passed,
        "status": "PASS" if found.passed else "FAIL",
        "sentence": found.sentence,
        "findings": [] if found.passed else [wrong],
    }
    return {"verdict": verdict, "outputs": []}
