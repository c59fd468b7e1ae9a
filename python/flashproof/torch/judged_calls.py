"""Calls of attention of any kind, carried out and judged, and what is done about those that fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from ..dump import Premises
from .backward import Backward
from .callers import caller
from .calls import Posed, RecordedCall
from .chosen_calls import Chosen, ChosenCalls, told_error
from .judged_call import JudgedCall
from .known import Subject

#: Calls of a long run that wait for a backward pass, which may never come.
MOST_WAITING = 16


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


class JudgedAttentionCalls(ChosenCalls):
    """What calls of attention came to, as they are met."""

    _kind = "attention"

    def __init__(self, chosen: Chosen) -> None:
        super().__init__(chosen)
        self._waiting: dict[int, tuple[RecordedCall, Subject]] = {}

    def meet(self, read: Callable[[], Call], plain: Callable[[], Any], within: Any) -> Any:
        """
        Carry a call out, and judge it: `read` says what it asks for, `plain` carries it out unseen.

        `within` makes a context for the call, in which what it calls in turn is part of it. A call that is not judged goes without.
        """
        if not self._sampling.wants():
            return plain()
        said = JudgedCall(self._number(), caller())
        self.calls.append(said)
        try:
            with self._timed(said):
                call = read()
        except Exception as error:
            said.not_judged = told_error(error)
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
        with self._timed(said):
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
            said.not_judged = told_error(error)
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
            with self._timed(waiting[0].said):
                self._judge(*waiting)

    def _judge(self, recorded: RecordedCall, subject: Subject) -> None:
        __tracebackhide__ = True
        said = recorded.said
        with self._going_on(said):
            recorded.judge(self._settings)  # type: ignore[arg-type]
        self._conclude(said, "results", subject, recorded.keep)

    def _close(self) -> None:
        for number in list(self._waiting):
            self._judge_waiting(number)
        super()._close()

    def _end(self) -> None:
        # Those that a context which raises leaves behind.
        self._waiting.clear()
        super()._end()
