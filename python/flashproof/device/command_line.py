"""What the device leaves open goes to the command line, which judges exactly: ``flashproof
audit``, on the CPU.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ..dump import Settings, gather, temporary_folder
from ..node import node, program
from ..safetensors import write
from .backward.problem import KernelGradients
from .problem import AttentionProblem, KernelOutputs, Shape


class CommandLineError(RuntimeError):
    """The command line could not judge what the device left to it: nothing is known of the
    verdict.
    """


@dataclass(frozen=True)
class AuditReport:
    """The report of ``flashproof audit --json``: ``src/report/json/report.schema.json``."""

    report: dict[str, Any]

    @property
    def passed(self) -> bool:
        """The verdict."""
        return self.report["verdict"]["pass"] is True

    @property
    def sentence(self) -> str:
        """The verdict and its main reason."""
        return str(self.report["verdict"]["sentence"])

    @property
    def is_sample(self) -> bool:
        """Whether only some of the rows or keys were judged."""
        gradients = self.report.get("gradients")
        samples = [] if gradients is None else gradients["samples"].values()
        return any(one is not None for one in (self.report["sample"], *samples))

    @property
    def fails_by_worst_case(self) -> bool:
        """Whether something fails that no roundings excuse, however they depend on one another."""
        return any(finding["isWorstCase"] for finding in self.report["verdict"]["findings"])


Auditor = Callable[[Path, Sequence[str]], AuditReport]
"""Audits a dump by the given options of the command line."""


def run_command_line(command: Sequence[str] | None = None) -> Auditor:
    """An auditor that starts the command line, by default the package's own. It raises
    CommandLineError where that gives no verdict.
    """
    if command is None:
        command = (node(), program())

    def audit(dump: Path, options: Sequence[str]) -> AuditReport:
        report = dump.with_suffix(".json")
        arguments = [*command, "audit", str(dump), "--quiet", "--json", str(report), *options]
        try:
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        except OSError as error:
            raise CommandLineError(
                f"{command[0]} cannot be started: {error}; install Node.js and flashproof"
            ) from error
        if done.returncode not in (0, 1) or not report.exists():
            reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise CommandLineError(f"the command line gave no verdict: {reason}")
        return AuditReport(json.loads(report.read_text()))

    return audit


def write_dump(
    problem: AttentionProblem,
    outputs: KernelOutputs,
    path: Path,
    gradients: KernelGradients | None = None,
) -> None:
    """Writes what the kernel read and wrote as the command line reads it, in its own formats."""
    of_rows = {
        "q": problem.q,
        "k": problem.k,
        "v": problem.v,
        "out": outputs.out,
        **({} if gradients is None else vars(gradients)),
    }
    features = problem.features
    given = {name: x for name, x in of_rows.items() if x is not None}
    lse = outputs.lse
    settings = Settings(problem.used_scale, problem.causal, problem.window, problem.softcap)
    metadata = settings.metadata()
    if features.sequences is not None:
        # [1, heads, rows of all, dim] as [rows of all, heads, dim], and [1, heads, rows] as [heads, rows].
        given = {name: x[0].transpose(0, 1) for name, x in given.items()}
        lse = None if lse is None else lse[0]
        given |= _lengths(features.sequences)
    if features.prefix > 0:
        metadata["prefix"] = str(features.prefix)
    if features.sink is not None and not features.is_sink_in_lse:
        metadata["lse_sink"] = "false"
    sizes = {"q": problem.q.shape[:2], "k": problem.k.shape[:2], "v": problem.v.shape[:2]}
    for name, x in features.tensors.items():
        given[name] = x
        if name.endswith("_descale"):
            of_heads = x.expand(*sizes[name[0]], *x.shape[2:])
            given[name] = of_heads[0].transpose(0, 1) if features.sequences else of_heads
    write(path, gather({**given, "lse": lse}), metadata)


def _lengths(sequences: Sequence[tuple[int, int, int, int]]) -> dict[str, torch.Tensor]:
    """Where packed sequences begin."""
    queries = [first for first, *_ in sequences] + [sequences[-1][0] + sequences[-1][1]]
    keys = [first for _, _, first, _ in sequences] + [sequences[-1][2] + sequences[-1][3]]
    return {
        "cu_seqlens_q": torch.tensor(queries, dtype=torch.int32),
        "cu_seqlens_k": torch.tensor(keys, dtype=torch.int32),
    }


def some_heads(
    problem: AttentionProblem,
    outputs: KernelOutputs,
    gradients: KernelGradients | None,
    shape: Shape,
    heads: Sequence[int],
) -> tuple[AttentionProblem, KernelOutputs, KernelGradients | None]:
    """A problem of some query heads, counted over [batch, heads], as one batch entry. Each has its
    own keys and values; with gradients the heads are whole groups, which keep theirs.
    """
    group = shape.heads // shape.kv_heads
    places = [(head // shape.heads, head % shape.heads) for head in heads]
    groups = places if gradients is None else places[::group]

    def of_queries(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[batch, head] for batch, head in places]).unsqueeze(0)

    def of_keys(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[batch, head // group] for batch, head in groups]).unsqueeze(0)

    part = replace(
        problem,
        q=of_queries(problem.q),
        k=of_keys(problem.k),
        v=of_keys(problem.v),
        scale=problem.used_scale,
        features=problem.features.of_places(places, groups, group),
    )
    lse = None if outputs.lse is None else of_queries(outputs.lse)
    given = None
    if gradients is not None:
        dq, dk, dv = gradients.dq, gradients.dk, gradients.dv
        given = KernelGradients(
            of_queries(gradients.dout),
            None if dq is None else of_queries(dq),
            None if dk is None else of_keys(dk),
            None if dv is None else of_keys(dv),
        )
    return part, KernelOutputs(of_queries(outputs.out), lse), given


def audit_dump(
    problem: AttentionProblem,
    outputs: KernelOutputs,
    auditor: Auditor,
    options: Sequence[str],
    gradients: KernelGradients | None = None,
) -> AuditReport:
    """Writes a dump to a temporary folder and audits it."""
    with temporary_folder() as folder:
        dump = Path(folder) / "dump.safetensors"
        write_dump(problem, outputs, dump, gradients)
        return auditor(dump, options)
