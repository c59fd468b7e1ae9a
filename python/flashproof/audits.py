"""Judging what a kernel gave: `audit`, `assert_attention`, `tolerance`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .arguments import (
    FEATURES,
    GRADIENTS,
    AuditArguments,
    FeatureArguments,
    KeptAuditArguments,
    ProblemArguments,
    check_gradients,
    check_names,
    option_words,
    settings_of,
    words_of,
)
from .arrays import Framework, check_tensors, from_array
from .by_torch import pass_by_torch, pose_for_device
from .dump import gather, temporary_folder, write_dump
from .report import Report, parse_report_in_python
from .request import Request, answer_about, asserted, session
from .safetensors import read
from .server import RequestError, shared_server

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _request(
    outputs: Mapping[str, Any], given: Mapping[str, Any], function: str, described: type
) -> Request:
    """The request of Q, K, V, outputs and arguments; TypeError and ValueError for what is none of these."""
    check_names(function, given, described)
    check_gradients(given)
    # Words of the command line may name it.
    has_output = outputs.get("out") is not None
    options = option_words(given.get("options"), has_kernel=has_output)
    if "out" in outputs and not has_output and given.get("dout") is None and not options:
        raise ValueError("out is None; give the kernel's output")
    beside = {name: given.get(name) for name in (*FEATURES, *GRADIENTS)}
    features = given.get("features") or {}
    tensors = gather({**outputs, **beside, **features})
    return Request(tensors, settings_of(given).metadata(), words_of(given), options)


def audit(
    q: Any,
    k: Any,
    v: Any,
    out: Any = None,
    lse: Any = None,
    **given: Unpack[KeptAuditArguments],
) -> Report:
    """
    Judge a kernel's output, its LSE and its gradients against exact attention.

    Arrays are of NumPy, PyTorch, JAX or CuPy: [batch, heads, seqlen, dim], or [batch, seqlen, heads, dim] with
    `layout="bshd"`, in the format that the kernel read and wrote them in. `lse` has natural logarithms.

    - The problem: `scale` (1/√dim), `causal`, `window` (left, right), `softcap`; `mask`, true where a key is seen; `bias`, added
      to the scaled scores; `alibi_slopes`, `sink`; `features`, further tensors by their names in docs/guide/problems.md, such as
      `cu_seqlens_q` or `block_table`, which say how Q, K and V lie.
    - Gradients: `dout`, and those of `dq`, `dk`, `dv`, `dbias`, `dsink` that are to be judged.
    - How the kernel computes: `premises`, `"fused"` as flash kernels do, `"eager"` with scores and weights stored in Q's format;
      `gradient_premises`. With `strict_premises` no failure is told other premises that it would pass by, whatever the output.
    - How it is judged: `false_alarm_rate`, `rows`, `seed`, `threads`; `options` are further words of `flashproof audit`. With
      `keep` the file of the problem is kept there.

    Returns the report. RequestError for what cannot be judged, with one line that says why.
    """
    outputs = {"q": q, "k": k, "v": v, "out": out, "lse": lse}
    keep = given.pop("keep", None)
    request = _request(outputs, given, "audit", AuditArguments)
    return request.report_and_keep(keep)


#: The probability of a false alarm of an audit that is told none.
_FALSE_ALARM_RATE = 1e-9
#: Pairs of a query and a key from which on a sample is judged first of what PyTorch doubts, without gradients and with them.
_FEWEST_PAIRS = (2**19, 2**16)
#: Rows of that sample, of all heads, and in the place of dK and dV keys; and its part of the probability of a false alarm.
_SAMPLED = 256
_RATE_OF_SAMPLE = 1e-3


def verdict_on(outputs: Mapping[str, Any], given: AuditArguments) -> Report:
    """
    `audit` of Q, K, V, `out` and `lse` by name.

    PyTorch gives the pass of its own tensors on the CPU, where it can and no page of every audit is asked for.
    """
    check_names("assert_attention", given, AuditArguments)
    check_gradients(given)
    by_torch = None if session.html is not None else pass_by_torch(outputs, given)
    if isinstance(by_torch, Report):
        return by_torch
    doubted = 0 if by_torch is None else by_torch.doubted or 0
    if doubted < _FEWEST_PAIRS["dout" in given]:
        return _report(outputs, given)
    rate = given.get("false_alarm_rate") or _FALSE_ALARM_RATE
    found = _failure_of_sample(outputs, given, rate)
    whole: AuditArguments = {**given, "false_alarm_rate": rate - rate * _RATE_OF_SAMPLE}
    return _report(outputs, whole) if found is None else found


def _report(outputs: Mapping[str, Any], given: AuditArguments) -> Report:
    return _request(outputs, given, "assert_attention", AuditArguments).report()


def _failure_of_sample(
    outputs: Mapping[str, Any], given: AuditArguments, rate: float
) -> Report | None:
    """
    The report of a sample of the rows that fails, with a cause that is known.

    None else: what a sample does not show, or not the cause of, the whole may. The whole takes several times as long to fail.
    """
    keys = ["--keys", str(_SAMPLED)] if "dout" in given else []
    asked: AuditArguments = {**given, "rows": _SAMPLED, "options": keys}
    try:
        report = _report(outputs, {**asked, "false_alarm_rate": rate * _RATE_OF_SAMPLE})
    except RequestError:
        return None
    if report.status != "FAIL" or report.cause in (None, "unexplained"):
        return None
    said = "A sample of the rows fails, and the others were not judged: the command below judges all of them."
    return replace(report, text=f"{report.text.rstrip()}\n\n{said}\n")


def judge_and_keep(outputs: Mapping[str, Any], given: AuditArguments) -> Report:
    """`verdict_on`, which keeps a problem that fails in the session's folder."""
    report = verdict_on(outputs, given)
    return report if report.passed else replace(report, command=keep_failure(outputs, given))


def keep_failure(outputs: Mapping[str, Any], given: AuditArguments, call: int | None = None) -> str:
    """Keep a problem that failed elsewhere in the session's folder, by its call's number; the command that audits it."""
    return _request(outputs, given, "assert_attention", AuditArguments).keep_failure(call)


def audit_on_device(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any = None,
    *,
    dout: Any = None,
    dq: Any = None,
    dk: Any = None,
    dv: Any = None,
    false_alarm_rate: float = 1e-9,
    **given: Unpack[FeatureArguments],
) -> Report:
    """
    Judge tensors of PyTorch where they lie, by the bounds of any fused kernel: for problems that take minutes on the CPU.

    A pass there is one of `audit`; what is not surely within its limits is judged by `audit`'s own way on the CPU, which has
    the last word (docs/theory/bounds.md, "On the device"). The problem has the arguments of `audit`: `scale`, `causal`, `window`,
    `softcap`, `layout`, `mask`, `bias`, `alibi_slopes`, `sink`, and `features`, such as `cu_seqlens_q` or `block_table`. With `dout`,
    the gradient of `out`, the gradients `dq`, `dk` and `dv` are judged as well. The report of what the device decided has the
    sentence and no document.
    """
    check_names("audit_on_device", given, FeatureArguments)
    from .device import AuditReport, NotPosedError, judge

    outputs = {"q": q, "k": k, "v": v, "out": out, "lse": lse}
    gradients = {"dout": dout, "dq": dq, "dk": dk, "dv": dv}
    there = {name: x for name, x in {**outputs, **gradients}.items() if x is not None}
    check_tensors({**{name: outputs[name] for name in ("q", "k", "v", "out")}, **there})
    check_gradients(gradients)
    # What is no setting is told as `audit` tells it.
    settings_of(given).metadata()
    rate = None if false_alarm_rate == 1e-9 else false_alarm_rate
    asked = {**given, **{name: x for name, x in gradients.items() if x is not None}}

    def whole_report(options: Sequence[str] = ()) -> Report:
        """What the command line says of all of it, as it lies."""
        words = {**asked, "false_alarm_rate": rate, "options": [*options]}
        return _request(outputs, words, "audit", AuditArguments).report()

    said: list[str] = []

    def whole(options: Sequence[str]) -> AuditReport:
        report = whole_report(options)
        said.append(report.text)
        return AuditReport(dict(report.json))

    def audit_dump(path: Path, options: Sequence[str]) -> AuditReport:
        document = path.with_name("report.json")
        words = ["audit", str(path), "--json", str(document), *options]
        said.append(shared_server().run(words).stdout)
        return AuditReport(json.loads(document.read_text()))

    try:
        posed = pose_for_device(there, given)
    except NotPosedError as error:
        report = whole_report()
        text = f"{report.text.rstrip()}\n\nJudged on the CPU: {error}.\n"
        return replace(report, text=text)
    is_stored = not posed.problem.features.is_plain
    verdict = judge(
        posed.problem,
        posed.outputs,
        posed.gradients,
        false_alarm_rate=false_alarm_rate,
        auditor=audit_dump,
        whole=whole if is_stored else None,
    )
    where = f"Judged on {verdict.device}" + (
        "." if verdict.handed_over is None else f"; {verdict.handed_over}, which went to the CPU."
    )
    if verdict.report is None or verdict.decided_by == "device":
        text = f"{verdict.sentence}\n\n{where}{posed.beside}\n"
        return Report(verdict.passed, verdict.sentence, None, (), text, {}, decided_by="device")
    text = f"{said[-1].rstrip()}\n\n{where}\n"
    report = parse_report_in_python(verdict.report.report, text)
    return replace(report, passed=verdict.passed, sentence=verdict.sentence)


def assert_attention(
    q: Any, k: Any, v: Any, out: Any, lse: Any = None, **given: Unpack[AuditArguments]
) -> Report:
    """
    Assert that an output of attention, its LSE and gradients are as near to the exact ones as rounding lets them be.

    The arguments are those of `audit`. Where something is wrong the problem is kept in `flashproof-failures`, and the
    AssertionError says what is wrong, its cause where one is known, and the command that gives the report again. Returns the
    report of a kernel that passes.
    """
    __tracebackhide__ = True
    return asserted(judge_and_keep({"q": q, "k": k, "v": v, "out": out, "lse": lse}, given))


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
    output_format: str | None = None,
    framework: Framework = "numpy",
    **given: Unpack[ProblemArguments],
) -> Tolerance:
    """
    The proven bound of every element of the output and of the LSE, for those who compare by themselves.

    In canonical order, [batch, heads, seqlen, …]. The problem and `premises` are as in `audit`; `output_format` is that of the
    output, `bf16` for instance, where it is not Q's.
    """
    request = _request({"q": q, "k": k, "v": v}, given, "tolerance", ProblemArguments)
    words = list(request.words)
    if output_format is not None:
        words += ["--output-format", output_format]
    with temporary_folder() as folder:
        path = write_dump(folder, "problem", request.tensors, request.metadata)
        saved = os.path.join(folder, "bounds.safetensors")
        answer = answer_about(path, ["bound", path, "--save", saved, "--quiet", *words])
        # Of tensors that are not used.
        if answer.stderr:
            raise RequestError(answer.stderr.strip().replace(f"warning: {path}: ", ""))
        tensors, _ = read(saved)
    return Tolerance(**{name: from_array(array, framework) for name, array in tensors.items()})
