"""Calls of attention of any kind, carried out and judged, and what is done about those that fail."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from ..arguments import JudgingArguments
from ..dump import Premises
from .backward import Backward
from .callers import caller
from .calls import Posed, RecordedCall
from .known import Subject, check_known, weakness_of
from .sampling import Sampling
from .verdicts import JudgedCall, JudgedCalls, told_failure

#: Problems of failing calls that a long run keeps.
MOST_KEPT = 8
#: Calls of a long run that wait for a backward pass, which may never come.
MOST_WAITING = 16


@dataclass(frozen=True)
class Chosen:
    """What whoever judges calls chooses: the arguments of `judged_attention`, which has them in words."""

    sampling: Sampling
    premises: Premises | None | Literal["chosen"]
    known: Iterable[str] | None
    on_fail: Literal["raise", "report"] | None
    settings: JudgingArguments


class Call(Protocol):
    """A call that can be judged."""

    @property
    def name(self) -> str:
        """The function's name with its module."""

    @property
    def premises(self) -> Premises | None:
        """How it computes, as far as the call says it."""

    @property
    def results_not_judged(self) -> str | None:
        """What of its results is not judged, and why."""

    @property
    def advice(self) -> Mapping[str, str]:
        """What its caller may have left unsaid, in a sentence, by the cause that is found then."""

    def differentiable(self) -> Mapping[str, Tensor]:
        """The tensors whose gradients are to come, by the names under which `posed` finds them."""

    def run(self, views: Mapping[str, Tensor]) -> Any:
        """What the function gives, with some tensors replaced."""

    def output(self, made: Any) -> Tensor:
        """The output, of what the function gave."""

    def viewed(self, made: Any) -> Any:
        """What the caller gets, with a node of its own behind the output."""

    def posed(self, made: Any) -> tuple[Posed, dict[str, Tensor]]:
        """The problem, and Q, K, V, the output and the LSE by the names of `audit`; NotJudgedError for what is none."""


class JudgedAttentionCalls(JudgedCalls):
    """What calls of attention came to, as they are met."""

    _kind = "attention"

    def __init__(self, chosen: Chosen) -> None:
        super().__init__(chosen.sampling, chosen.on_fail)
        self._premises = chosen.premises
        self._known = check_known(chosen.known)
        self._settings = chosen.settings
        self._waiting: dict[int, tuple[RecordedCall, Subject]] = {}
        self._kept = 0

    def meet(self, read: Callable[[], Call], plain: Callable[[], Any], within: Any) -> Any:
        """
        Carry a call out, and judge it: `read` says what it asks for, `plain` carries it out unseen.

        `within` makes a context for the call, in which what it calls in turn is part of it. A call that is not judged goes without.
        """
        if not self._sampling.wants():
            return plain()
        said = JudgedCall(len(self.calls) + 1, caller())
        self.calls.append(said)
        try:
            with self._timed():
                call = read()
        except Exception as error:
            said.not_judged = _told(error)
            return plain()
        said.problem = call.name.rpartition(".")[2]
        self._sampling.taken += 1
        views, watched = self._watch(call)
        try:
            with within():
                made = call.run(views)
        except BaseException:
            self._sampling.taken -= 1
            raise
        if watched is not None and call.output(made).requires_grad:
            made = call.viewed(made)
            watched.watch_output("dout", call.output(made))
        with self._timed():
            self._record(said, call, made, watched)
        return made

    def _watch(self, call: Call) -> tuple[dict[str, Tensor], Backward | None]:
        wanted = call.differentiable() if torch.is_grad_enabled() else {}
        if not wanted:
            return {}, None
        watched = Backward()
        return {name: watched.watch_input(name, one) for name, one in wanted.items()}, watched

    def _record(self, said: JudgedCall, call: Call, made: Any, watched: Backward | None) -> None:
        try:
            problem, outputs = call.posed(made)
        except Exception as error:
            said.not_judged = _told(error)
            self._sampling.taken -= 1
            return
        said.problem = problem.words()
        said.results_not_judged = call.results_not_judged
        premises = call.premises if self._premises == "chosen" else self._premises
        q = outputs["q"]
        dtype = str(q.dtype).removeprefix("torch.")
        subject = Subject(call.name, q.device.type, dtype, call.advice)
        if watched is None:
            self._judge(RecordedCall(said, problem, outputs, premises), subject)
            return
        # What follows may change them.
        problem, outputs = problem.cloned(), {name: x.clone() for name, x in outputs.items()}
        self._await(RecordedCall(said, problem, outputs, premises, watched), subject, watched)

    def _await(self, recorded: RecordedCall, subject: Subject, watched: Backward) -> None:
        """Judge a call with its gradients once they came."""
        number = recorded.said.number
        self._passes.append((recorded.said, watched))
        # The graph outlives this context, and may not hold what is judged.
        watched.on_end = lambda: self._judge_waiting(number)
        if self._sampling.is_of_a_loop and len(self._waiting) >= MOST_WAITING:
            self._judge_waiting(next(iter(self._waiting)))
        self._waiting[number] = recorded, subject

    def _judge_waiting(self, number: int) -> None:
        __tracebackhide__ = True
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            with self._timed():
                self._judge(*waiting)

    def _judge(self, recorded: RecordedCall, subject: Subject) -> None:
        __tracebackhide__ = True
        said = recorded.said
        try:
            recorded.judge(self._settings)
        except Exception as error:
            if self._on_fail == "raise":
                raise
            # Whoever trains goes on, whatever becomes of the judge.
            said.not_judged = f"judging it failed: {_told(error)}"
        report = said.report
        if report is None:
            return
        if report.passed:
            if self._sampling.is_of_a_loop:
                # Of each of a million calls the sentence is enough.
                said.report = replace(report, text=report.sentence, json={})
            return
        weakness = weakness_of(report, subject)
        if weakness is not None:
            said.is_accepted = weakness.name in self._known
            accept = "" if said.is_accepted else f"; known=[{weakness.name!r}] accepts it"
            said.advice = f"Known: {weakness.said} ({weakness.name}){accept}."
        else:
            said.advice = subject.advice.get(report.cause or "")
        if not said.is_accepted:
            self._fail(said, recorded)

    def _fail(self, said: JudgedCall, recorded: RecordedCall) -> None:
        """Keep the problem of a call that fails; of a long run the first few, told at once."""
        __tracebackhide__ = True
        assert said.report is not None
        if self._kept < MOST_KEPT or not self._sampling.is_of_a_loop:
            self._kept += 1
            said.report = replace(said.report, command=recorded.keep())
        if self._sampling.is_of_a_loop:
            said.report = replace(said.report, json={})
            if self._on_fail == "report":
                print("flashproof:", *told_failure(said), sep="\n", file=sys.stderr)

    def _scope(self) -> str:
        rows = self._settings.get("rows")
        return "" if rows in (None, "all") else f" in a sample of {rows} rows of each at most"

    def _begin(self) -> None:
        """Begin a context."""
        self._began = time.perf_counter()

    def _close(self) -> None:
        """Judge the calls through which no backward pass came, and tell of passes that were not the first."""
        for number in list(self._waiting):
            self._judge_waiting(number)
        self._tell_later_passes()

    def _finish(self, *, is_raising: bool) -> None:
        """End a context: raise what fails, or tell what was not judged. Nothing more is judged."""
        __tracebackhide__ = True
        if not is_raising:
            self._close()
        self._waiting.clear()
        self._end()
        if self._sampling.is_of_a_loop and self._on_fail == "report":
            print(f"flashproof: {self.text}", file=sys.stderr)
            return
        if not is_raising:
            self._raise_or_warn(3)


def _told(error: Exception) -> str:
    """An error in a line: those of this package are sentences, others have their kind before them."""
    said = str(error).partition("\n")[0]
    return said if isinstance(error, (ValueError, TypeError)) else f"{type(error).__name__}: {said}"
