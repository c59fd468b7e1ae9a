"""Judging a kernel that nobody trusts: `judge`."""

from __future__ import annotations

import os
import secrets
import sys
import time
from dataclasses import replace

from ..request import session
from ..server import Server, shared_server
from .budget import Budget
from .candidate import Candidate, CandidateLike
from .case import Case
from .contract import ContractLike, KernelContract
from .failure import Failure
from .host import IsolatedHost
from .judgement import Judgement, Verdict
from .plan import plan
from .process import CandidateProcess

#: The chance of a false alarm of one audit, and of one test of a bias.
_FALSE_ALARM_RATE = 1e-9
#: Causes that need the calls before, so that one problem alone does not show them.
_STATEFUL = ("state", "stale", "output-overwritten", "determinism", "gradients-determinism")
_NEVER_JUDGED = (
    "how fast it is",
    "whose work it is: a call of a library that is right passes",
    "what it does outside its process: it runs under this user, so give it a container where you do not trust it",
)


def judge(
    candidate: CandidateLike,
    contract: ContractLike = None,
    *,
    budget: Budget | None = None,
    seed: int | None = None,
    witness: str | os.PathLike[str] | None = None,
    python: str | None = None,
    server: Server | None = None,
) -> Judgement:
    """
    Judge a kernel that nobody trusts: what it computes, on problems that it cannot know, in a process of its own.

    `candidate` is `file.py:function`, a function at the top of a file, or a `Candidate`, such as the adapters of benchmarks make
    (docs/guide/judge.md). Its source is read first. Only then is the seed drawn by which all inputs are. The function is called as by
    `check`. `contract` says what the kernel has to compute and how it may: a mapping or a file of JSON of the promises of
    docs/reference/properties.md, with `contract` ("attention", "recurrent"), `framework`, `device`, `shapes`, `square`, `largest`,
    `premises`, `output`, `backward` and `properties`. With `witness`, the saved problem of a judgement, that alone is judged, which is
    no pass: `fail`, or `undecided`. `python` is the interpreter of the candidate's process, this one by default.

    The verdict is `undecided` where the budget leaves something of the plan unjudged. The same seed gives the same problems.
    ValueError or RequestError for a candidate or contract that is none.
    """
    start = time.monotonic()
    fixed = Candidate.of(candidate)
    agreed = KernelContract.of(contract, fixed.limits)
    allowed = budget or Budget()
    # After the source is read: nothing in it can know this.
    drawn = secrets.randbelow(2**31) if seed is None else seed
    failures = session.failures / f"judge-{fixed.sha256[:12]}-{drawn}"
    asked = server or shared_server()

    def judged(of: str | None) -> tuple[Case, Failure | None]:
        with CandidateProcess(fixed, agreed, allowed, python or sys.executable) as process:
            host = IsolatedHost(process, failures)
            case = Case(fixed, agreed, allowed, drawn, host, asked, start + allowed.seconds)
            return case, case.failure() if of is None else case.failure_of(of)

    given = None if witness is None else os.fspath(witness)
    case, failure = judged(given)
    if given is None and failure is not None and _may_be_of_its_state(case, failure):
        # What does not fail by itself is shown by all that came before it.
        _, again = judged(str(failure.witness))
        failure = failure if again else _of_its_state(failure)
    words = _words(candidate, contract)
    return _judgement(case, failure, time.monotonic() - start, words, is_alone=given is not None)


def _may_be_of_its_state(case: Case, failure: Failure) -> bool:
    return (
        case.host.fault is None
        and failure.witness is not None
        and failure.cause not in (*_STATEFUL, "answer")
    )


def _of_its_state(failure: Failure) -> Failure:
    said = "it is right on the same problem in a process of its own, and wrong after other calls or by chance"
    return replace(failure, cause="state", reason=f"{said}; {failure.reason}")


def _words(candidate: CandidateLike, contract: ContractLike) -> str:
    """The candidate and the contract as arguments, where they can be typed; else by names."""
    of = repr(os.fspath(candidate)) if isinstance(candidate, (str, os.PathLike)) else "candidate"
    if contract is None:
        return of
    if isinstance(contract, (str, os.PathLike)):
        return f"{of}, {os.fspath(contract)!r}"
    return f"{of}, contract"


def _judgement(
    case: Case, failure: Failure | None, seconds: float, words: str, *, is_alone: bool
) -> Judgement:
    is_open = bool(case.missing) or not case.judged or is_alone
    verdict: Verdict = "fail" if failure else "undecided" if is_open else "pass"
    label = case.candidate.label
    sentence = {
        "pass": f"PASS: {label} is right on every problem of the plan.",
        "undecided": f"UNDECIDED: {label} is right on this problem alone."
        if is_alone and case.judged
        else f"UNDECIDED: {label} is right as far as it was judged, and something of the plan was not.",
        "fail": f"FAIL: {label}: {failure.reason if failure else ''}.",
    }[verdict]
    witness = None if failure is None or failure.witness is None else str(failure.witness)
    open_cause = "one-problem" if is_alone and case.judged else "budget"
    return Judgement(
        verdict=verdict,
        sentence=sentence,
        cause=failure.cause if failure else open_cause if verdict == "undecided" else None,
        reason=failure.reason if failure else None,
        place=failure.place if failure else None,
        witness=witness,
        replay=None if failure is None else _replay(case, failure, witness, words),
        not_judged=(*case.missing, *case.silent, *_unjudged(case, is_alone=is_alone)),
        false_alarm_rate=max(1, case.judged) * _FALSE_ALARM_RATE,
        profile=tuple(case.findings.profile),
        observed=tuple(case.host.heard),
        seed=case.seed,
        sha256=case.candidate.sha256,
        calls=case.host.calls,
        seconds=seconds,
    )


def _replay(case: Case, failure: Failure, witness: str | None, words: str) -> str:
    """A line of Python that shows the failure again."""
    if witness is None or failure.cause in _STATEFUL:
        return f"flashproof.judge({words}, seed={case.seed})"
    return f"flashproof.judge({words}, witness={witness!r})"


def _unjudged(case: Case, *, is_alone: bool) -> list[str]:
    if is_alone:
        return ["every other problem", *_NEVER_JUDGED]
    large = [one.shape for one in plan(case.contract, case.budget, case.seed) if one.shape]
    said = []
    if large:
        queries, keys = max(one.queries for one in large), max(one.keys for one in large)
        said.append(f"more than {queries} queries or {keys} keys")
    if case.contract.kind == "recurrent":
        said.append("shapes of the benchmark's own")
    if case.contract.device != "cpu":
        said.append("memory of the device that PyTorch does not hand out")
    return [*said, *_NEVER_JUDGED]
