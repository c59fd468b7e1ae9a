"""A context in which public kernels of recurrences are judged, call by call."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import torch

from ..arguments import RecurrentJudgingArguments, check_names
from ..dump import Premises
from ..recurrences import judge_recurrent_and_keep, keep_recurrent_failure
from ..recurrent.arguments import values_of
from ..recurrent.carry_out import AwaitedGradients, carry_out, read
from ..recurrent.kernels import PUBLIC_KERNELS, Kernel
from ..recurrent.on_device import audit_recurrent_on_device
from ..recurrent.read_call import RecurrentCall
from ..report import Report
from .backward import is_within_transform
from .callers import caller
from .calls import lies_on_device
from .hooks import import_functions, replace_everywhere
from .problem import NotJudgedError
from .sampling import Sampling
from .verdicts import JudgedCall, JudgedCalls

if TYPE_CHECKING:
    from typing_extensions import Unpack

_NO_BACKWARD = "no backward pass came through"


class JudgedRecurrences(JudgedCalls):
    """The context, and what it found. True where calls were judged, and all of them pass."""

    _kind = "recurrences"
    _function = "flash-linear-attention or mamba_ssm"

    def __init__(
        self,
        premises: Premises | None | Literal["chosen"],
        most_calls: int | None,
        sample: float,
        on_fail: Literal["raise", "report"],
        settings: RecurrentJudgingArguments,
    ) -> None:
        super().__init__(Sampling(most_calls, sample), on_fail)
        self._premises = premises
        self._settings = settings
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
        replace_everywhere(self._pairs)
        self._is_active = True
        return self

    def __exit__(self, kind: type | None, error: object, trace: object) -> None:
        __tracebackhide__ = True
        self._is_active = False
        # Modules that were imported within have the hooks too.
        replace_everywhere([(hook, function) for function, hook in self._pairs])
        if kind is not None:
            return
        self._tell_later_passes()
        self._end()
        self._raise_or_warn(2)

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
        said = JudgedCall(len(self.calls) + 1, caller(), function.__name__)
        self.calls.append(said)
        try:
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

        def judge_gradients(awaited: AwaitedGradients) -> None:
            self._judge_gradients(said, awaited, premises)

        carried = carry_out(function, args, given, call, judge_gradients)
        if carried.has_gradients:
            said.gradients_not_judged = _NO_BACKWARD
        try:
            said.report = self._report(call, carried.outputs, premises)
        except (ValueError, TypeError) as error:
            self._sampling.taken -= 1
            said.not_judged = str(error)
        return carried.made

    def _judge_gradients(
        self, said: JudgedCall, awaited: AwaitedGradients, premises: Premises | None
    ) -> None:
        if not self._is_active or said.report is None:
            return
        self._passes.append((said, awaited.watched))
        gradients = awaited.gradients()
        reasons = list(gradients.reasons)
        if gradients.judged:
            try:
                said.gradient_report = self._report(awaited.call, gradients.judged, premises)
                beside = ("dout", *(f"d{name}" for name in awaited.call.results))
                said.gradients = tuple(name for name in gradients.judged if name not in beside)
            except (ValueError, TypeError) as error:
                reasons.append(str(error))
        said.gradients_not_judged = "; ".join(reasons) or None

    def _report(self, call: RecurrentCall, results: Any, premises: Premises | None) -> Report:
        """The report of results; NotJudgedError where it is neither a pass nor a failure."""
        problem = {**call.problem, **results, **self._settings, "premises": premises}
        on_device = _on_device(problem)
        with self._timed():
            if on_device is None:
                report = judge_recurrent_and_keep(problem)
            else:
                report = audit_recurrent_on_device(**on_device)
                if report.status == "FAIL":
                    report = replace(report, command=keep_recurrent_failure(problem))
        if report.status == "NOT JUDGED":
            raise NotJudgedError(report.sentence)
        return report


def _on_device(problem: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments by which a problem is judged where its tensors lie, as one of any correct kernel; None for the CPU's."""
    q = problem.get("q")
    if not isinstance(q, torch.Tensor) or not lies_on_device(q) or "dout" in problem:
        return None
    # A kernel that goes token by token is not judged as such there.
    premises = None if problem["premises"] == "recurrent" else problem["premises"]
    return {**problem, "premises": premises}


def _form(kernel: Kernel, values: dict[str, Any]) -> Premises | None:
    """How a function computes, with the chunk that a call gives it."""
    chunk = values.get("chunk_size")
    if kernel.form == "chunked" and isinstance(chunk, int):
        return {"form": "chunked", "chunk": chunk}
    return kernel.form


def judged_recurrences(
    *,
    premises: Premises | None | Literal["chosen"] = "chosen",
    most_calls: int | None = None,
    sample: float = 1.0,
    on_fail: Literal["raise", "report"] = "raise",
    **settings: Unpack[RecurrentJudgingArguments],
) -> JudgedRecurrences:
    """The context that `flashproof.judged_recurrent` makes without a function."""
    check_names("judged_recurrent", settings, RecurrentJudgingArguments)
    return JudgedRecurrences(premises, most_calls, sample, on_fail, settings)
