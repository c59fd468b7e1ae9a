"""Judging what a kernel gave: `audit`, `assert_attention`, `tolerance`."""

from __future__ import annotations

import itertools
import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .arrays import Framework, from_array
from .dump import Premises, Settings, gather, premise_words, temporary_folder, write_dump
from .report import Report, parse_report
from .safetensors import read
from .server import Answer, shared_server


@dataclass
class Session:
    """What a test session asks of every audit: see the pytest plugin."""

    #: A folder for a page of each audit; None for none.
    html: Path | None = None
    #: Where problems of failed assertions are kept.
    failures: Path = field(default_factory=lambda: Path("flashproof-failures"))
    #: What stands in the names of kept files.
    test: str = ""


session = Session()


def _unused(folder: Path, suffix: str) -> Path:
    """The path of a file that is not there yet."""
    stem = (
        "".join(one if one.isalnum() or one in "-_." else "-" for one in session.test)[-120:]
        or "attention"
    )
    for number in itertools.count(1):
        path = folder / f"{stem}-{number}{suffix}"
        if not path.exists():
            return path
    raise AssertionError


def _options(
    premises: Premises | None,
    gradient_premises: Premises | None,
    false_alarm_rate: float | None,
    rows: int | str | None,
    seed: int | None,
    threads: int | None,
    options: Sequence[str],
) -> list[str]:
    words = [] if premises is None else premise_words(premises)
    if gradient_premises is not None:
        words += premise_words(gradient_premises, gradients=True)
    numbers = {
        "--false-alarm-rate": false_alarm_rate,
        "--rows": rows,
        "--seed": seed,
        "--threads": threads,
    }
    for name, value in numbers.items():
        if value is not None:
            words += [name, str(value)]
    return [*words, *options]


def audit(
    q: Any,
    k: Any,
    v: Any,
    out: Any = None,
    lse: Any = None,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int, int] | None = None,
    softcap: float | None = None,
    layout: str = "bhsd",
    mask: Any = None,
    bias: Any = None,
    alibi_slopes: Any = None,
    sink: Any = None,
    dout: Any = None,
    dq: Any = None,
    dk: Any = None,
    dv: Any = None,
    dbias: Any = None,
    dsink: Any = None,
    premises: Premises | None = "fused",
    gradient_premises: Premises | None = None,
    false_alarm_rate: float | None = None,
    rows: int | str | None = None,
    seed: int | None = None,
    threads: int | None = None,
    options: Sequence[str] = (),
    keep: str | os.PathLike[str] | None = None,
) -> Report:
    """
    Judge a kernel's output, its LSE and its gradients against exact attention.

    Arrays are of NumPy, PyTorch, JAX or CuPy: [batch, heads, seqlen, dim], or [batch, seqlen, heads, dim] with
    `layout="bshd"`, in the format that the kernel read and wrote them in. `lse` has natural logarithms. `mask` is true where a
    key is seen; `bias` is added to the scaled scores. `premises` says how the kernel computes: `fused` as flash kernels do,
    `eager` with scores and weights stored in Q's format; `options` are further words of `flashproof audit`. With `keep` the
    file of the problem is kept there.

    Returns the report. RequestError for what cannot be judged, with one line that says why.
    """
    settings = Settings(scale, causal, window, softcap, layout)
    names = {
        "q": q,
        "k": k,
        "v": v,
        "out": out,
        "lse": lse,
        "mask": mask,
        "bias": bias,
        "alibi_slopes": alibi_slopes,
    }
    names.update(sink=sink, dout=dout, dq=dq, dk=dk, dv=dv, dbias=dbias, dsink=dsink)
    tensors = gather(names)
    words = _options(premises, gradient_premises, false_alarm_rate, rows, seed, threads, options)
    with temporary_folder() as folder:
        path = write_dump(folder, "problem", tensors, settings)
        document = os.path.join(folder, "report.json")
        page = [] if session.html is None else ["--html", str(_unused(session.html, ".html"))]
        answer = shared_server().run(["audit", path, "--json", document, *words, *page])
        report = parse_report(json.loads(Path(document).read_text()), answer.stdout, None)
    if keep is None:
        return report
    kept = Path(keep)
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_dump(kept.parent, kept.name.removesuffix(".safetensors"), tensors, settings)
    command = shlex.join(["python", "-m", "flashproof", "audit", str(kept), *words])
    return parse_report(report.json, report.text, command)


def audit_on_device(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any = None,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int, int] | None = None,
    softcap: float | None = None,
    false_alarm_rate: float = 1e-9,
) -> Report:
    """
    Judge tensors of PyTorch where they lie, by the bounds of any fused kernel: for problems that take minutes on the CPU.

    A pass there is one of `audit`; what is not surely within its limits is judged by `audit`'s own way on the CPU, which has
    the last word (docs/bounds.md, "On the device"). [batch, heads, seqlen, dim]. The report of what the device decided has the sentence and
    no document.
    """
    from .device import AttentionProblem, AuditReport, KernelOutputs, judge

    answers: list[Answer] = []

    def audit_dump(path: Path, options: Sequence[str]) -> AuditReport:
        document = path.with_name("report.json")
        answers.append(shared_server().run(["audit", str(path), "--json", str(document), *options]))
        return AuditReport(json.loads(document.read_text()))

    problem = AttentionProblem(q, k, v, scale=scale, causal=causal, window=window, softcap=softcap)
    verdict = judge(
        problem, KernelOutputs(out, lse), false_alarm_rate=false_alarm_rate, auditor=audit_dump
    )
    where = f"Judged on {verdict.device}" + (
        "." if verdict.handed_over is None else f"; {verdict.handed_over}, which went to the CPU."
    )
    if verdict.report is None or verdict.decided_by == "device":
        text = f"{verdict.sentence}\n\n{where}\n"
        return Report(verdict.passed, verdict.sentence, None, (), text, {})
    report = parse_report(
        verdict.report.report, f"{answers[-1].stdout.rstrip()}\n\n{where}\n", None
    )
    return replace(report, passed=verdict.passed, sentence=verdict.sentence)


def assert_attention(q: Any, k: Any, v: Any, out: Any, lse: Any = None, **settings: Any) -> Report:
    """
    Assert that an output of attention, its LSE and gradients are as near to the exact ones as rounding lets them be.

    The arguments are those of `audit`. Where something is wrong the problem is kept in `flashproof-failures`, and the
    AssertionError says what is wrong, its cause where one is known, and the command that gives the report again. Returns the
    report of a kernel that passes.
    """
    __tracebackhide__ = True
    report = audit(q, k, v, out, lse, **settings)
    if report.passed:
        return report
    kept = _unused(session.failures, ".safetensors")
    report = audit(q, k, v, out, lse, **{**settings, "keep": kept})
    raise AssertionError(f"{report.text.rstrip()}\n\nAgain: {report.command}")


@dataclass(frozen=True)
class Tolerance:
    """Exact attention in fp64, and how far a correct kernel may be from it: NaN for rows whose inputs are infinite or NaN."""

    out: Any
    out_bound: Any
    lse: Any
    lse_bound: Any


def tolerance(
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int, int] | None = None,
    softcap: float | None = None,
    layout: str = "bhsd",
    mask: Any = None,
    bias: Any = None,
    alibi_slopes: Any = None,
    sink: Any = None,
    premises: Premises | None = "fused",
    output_format: str | None = None,
    framework: Framework = "numpy",
) -> Tolerance:
    """
    The proven bound of every element of the output and of the LSE, for those who compare by themselves.

    In canonical order, [batch, heads, seqlen, …]. `output_format` is that of the output, `bf16` for instance, where it is not Q's.
    """
    settings = Settings(scale, causal, window, softcap, layout)
    names = {
        "q": q,
        "k": k,
        "v": v,
        "mask": mask,
        "bias": bias,
        "alibi_slopes": alibi_slopes,
        "sink": sink,
    }
    words = [] if premises is None else premise_words(premises)
    if output_format is not None:
        words += ["--output-format", output_format]
    with temporary_folder() as folder:
        path = write_dump(folder, "problem", gather(names), settings)
        saved = os.path.join(folder, "bounds.safetensors")
        shared_server().run(["bound", path, "--save", saved, "--quiet", *words])
        tensors, _ = read(saved)
    return Tolerance(**{name: from_array(array, framework) for name, array in tensors.items()})
