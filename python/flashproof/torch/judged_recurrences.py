"""A context in which public kernels of recurrences are judged, call by call."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch

from ..arguments import RecurrentJudgingArguments, check_names
from ..dump import Premises
from ..recurrences import keep_recurrent_failure, recurrent_verdict_on
from ..recurrent.arguments import values_of
from ..recurrent.carry_out import AwaitedGradients, carry_out, read
from ..recurrent.kernels import PUBLIC_KERNELS, Kernel
from ..recurrent.on_device import audit_recurrent_on_device
from ..recurrent.read_call import RecurrentCall
from .backward import is_within_transform
from .callers import caller
from .calls import lies_on_device
from .chosen_calls import Chosen, ChosenCalls, told_error
from .hooks import import_functions, replace_everywhere
from .judged_call import JudgedCall, Part
from .known import Subject
from .problem import NotJudgedError
from .sampling import Sampling

if TYPE_CHECKING:
    from typing_extensions import Unpack

_NO_BACKWARD = "no backward pass came through"


class JudgedRecurrences(ChosenCalls):
    """The context, and what it found. True where calls were judged, and all of them pass."""

    _kind = "recurrences"
    _function = "flash-linear-attention or mamba_ssm"

    def __init__(self, chosen: Chosen) -> None:
        super().__init__(chosen)
        found, self._broken = import_functions(PUBLIC_KERNELS)
        if not found:
            said = "; ".join(self._broken) or "neither fla nor mamba_ssm is installed"
            raise ValueError(f"{said}; give the function to judge, and its family")
        #: The functions that are judged, by module and name.
        self.functions = tuple(f"{module}.{name}" for module, name in found)
        self._pairs = [
            (function, self._hooked(function, PUBLIC_KERNELS[module][name]))
            for (module, name), function in found.items()
        ]
        self._is_active = False
        self._within = threading.local()

    def __enter__(self) -> JudgedRecurrences:
        self._begin()
        replace_everywhere(self._pairs)
        self._is_active = True
        return self

    def __exit__(self, kind: type | None, error: object, trace: object) -> None:
        __tracebackhide__ = True
        self._is_active = False
        # Modules that were imported within have the hooks too.
        replace_everywhere([(hook, function) for function, hook in self._pairs])
        self._finish(is_raising=kind is not None)

    def _further_gaps(self) -> Sequence[str]:
        return self._broken

    def _hooked(self, function: Callable[..., Any], kernel: Kernel) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            # What a judged function calls in turn is part of it, and what outlives the context is as it was.
            if not self._is_active or getattr(self._within, "call", False):
                return function(*args, **given)
            if torch.compiler.is_compiling():
                self.compiled += 1
                return function(*args, **given)
            if not self._sampling.wants():
                return function(*args, **given)
            self._within.call = True
            try:
                return self._call(function, kernel, args, given)
            finally:
                self._within.call = False

        return call

    def _call(
        self, function: Callable[..., Any], kernel: Kernel, args: Any, given: dict[str, Any]
    ) -> Any:
        said = JudgedCall(self._number(), caller(), function.__name__)
        self.calls.append(said)
        try:
            with self._timed(said):
                if is_within_transform():
                    raise NotJudgedError("it is within a transform of torch.func")
                values = values_of(function, args, given)
                call = read(kernel, values)
        except (ValueError, TypeError) as error:
            said.not_judged = str(error)
            return function(*args, **given)
        self._sampling.taken += 1
        said.problem = f"{function.__name__}, {call.words()}"
        premises = self._premises
        if premises == "chosen":
            premises = _form(kernel, values)
        name = f"{function.__module__}.{function.__name__}"
        judging = _Judging(said, call, premises, _subject(name, call))

        def judge_gradients(awaited: AwaitedGradients) -> None:
            self._judge_gradients(judging, awaited)

        carried = carry_out(function, args, given, call, judge_gradients)
        if carried.has_gradients:
            said.gradients_not_judged = _NO_BACKWARD
        with self._timed(said), self._going_on(said):
            try:
                self._judge(judging, "results", carried.outputs)
            except (ValueError, TypeError) as error:
                said.not_judged = str(error)
        if said.not_judged is not None:
            self._sampling.taken -= 1
        return carried.made

    def _judge_gradients(self, judging: _Judging, awaited: AwaitedGradients) -> None:
        said = judging.said
        if not self._is_active or said.report is None:
            return
        self._passes.append((said, awaited.watched))
        with self._timed(said):
            gradients = awaited.gradients()
            reasons = list(gradients.reasons)
            if gradients.judged:
                try:
                    self._judge(judging, "gradients", gradients.judged)
                    beside = ("dout", *(f"d{name}" for name in awaited.call.results))
                    said.gradients = tuple(one for one in gradients.judged if one not in beside)
                except (ValueError, TypeError) as error:
                    reasons.append(str(error))
                except Exception as error:
                    if self._on_fail == "raise":
                        raise
                    reasons.append(f"judging them failed: {told_error(error)}")
            said.gradients_not_judged = "; ".join(reasons) or None

    def _judge(self, judging: _Judging, part: Part, results: Mapping[str, Any]) -> None:
        """Say what comes of results; NotJudgedError where that is neither a pass nor a failure."""
        said = judging.said
        own = {"premises": judging.premises}
        problem: dict[str, Any] = {**judging.call.problem, **results, **self._settings, **own}
        on_device = _on_device(problem)
        report = (
            recurrent_verdict_on(problem)
            if on_device is None
            else audit_recurrent_on_device(**on_device)
        )
        if report.status == "NOT JUDGED":
            raise NotJudgedError(report.sentence)
        said.set_report(part, report)
        keep = functools.partial(keep_recurrent_failure, problem, said.number)
        self._conclude(said, part, judging.subject, keep)


@dataclass(frozen=True)
class _Judging:
    """A call that is judged, its results at once and its gradients as they come."""

    said: JudgedCall
    call: RecurrentCall
    premises: Premises | None
    subject: Subject


def _on_device(problem: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments by which a problem is judged where its tensors lie, as one of any correct kernel; None for the CPU's."""
    q = problem.get("q")
    if not isinstance(q, torch.Tensor) or not lies_on_device(q) or "dout" in problem:
        return None
    if problem.get("rows") is not None:
        return None
    # A kernel that goes token by token is not judged as such there.
    premises = None if problem["premises"] == "recurrent" else problem["premises"]
    return {**problem, "premises": premises}


def _subject(name: str, call: RecurrentCall) -> Subject:
    x = call.problem.get("q", call.problem.get("x"))
    if isinstance(x, torch.Tensor):
        return Subject(name, str(x.device.type), str(x.dtype).removeprefix("torch."))
    return Subject(name, "cpu", str(x.dtype))


def _form(kernel: Kernel, values: dict[str, Any]) -> Premises | None:
    """How a function computes, with the chunk that a call gives it."""
    chunk = values.get("chunk_size")
    if kernel.form == "chunked" and isinstance(chunk, int):
        return {"form": "chunked", "chunk": chunk}
    return kernel.form


def judged_recurrences(
    *,
    premises: Premises | None | Literal["chosen"] = "chosen",
    known: Iterable[str] | None = None,
    most_calls: int | None = None,
    sample: float = 1.0,
    every: int | None = None,
    on_fail: Literal["raise", "report"] | None = None,
    **settings: Unpack[RecurrentJudgingArguments],
) -> JudgedRecurrences:
    """The context that `flashproof.judged_recurrent` makes without a function."""
    check_names("judged_recurrent", settings, RecurrentJudgingArguments)
    sampling = Sampling(most_calls, sample, every, settings.get("seed"))
    return JudgedRecurrences(Chosen(sampling, premises, known, on_fail, settings))
