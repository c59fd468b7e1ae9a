"""What the device leaves open goes to the command line, which judges exactly: ``flashproof
audit``, on the CPU.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    given = {
        "q": problem.q,
        "k": problem.k,
        "v": problem.v,
        "out": outputs.out,
        "lse": outputs.lse,
        **({} if gradients is None else vars(gradients)),
    }
    settings = Settings(problem.used_scale, problem.causal, problem.window, problem.softcap)
    write(path, gather(given), settings.metadata())


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

    part = AttentionProblem(
        of_queries(problem.q),
        of_keys(problem.k),
        of_keys(problem.v),
        problem.used_scale,
        problem.causal,
        problem.window,
        problem.softcap,
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
