"""A context in which PyTorch's attention is judged, call by call."""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.overrides import TorchFunctionMode

from ..arguments import JudgingArguments, check_names
from ..dump import Premises
from .backward import Backward
from .callers import caller
from .calls import RecordedCall, chosen_premises, watch_inputs
from .problem import NotJudgedError
from .read_call import keywords, read_call
from .verdicts import JudgedCall, JudgedCalls, NotJudgedWarning

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ATTENTION = torch.nn.functional.scaled_dot_product_attention
_ATEN = torch.ops.aten.scaled_dot_product_attention
_MULTI_HEAD = torch.nn.functional.multi_head_attention_forward
#: Other ways to attention, by how their names begin.
_OTHER_WAYS = (
    "_scaled_dot_product_",
    "_native_multi_head_attention",
    "_transformer_encoder_layer_fwd",
    "flex_attention",
)


class JudgedAttention(JudgedCalls):
    """The context, and what it found. True where calls were judged, and all of them pass."""

    _kind = "attention"
    _function = "scaled_dot_product_attention"

    def __init__(
        self,
        premises: Premises | None | Literal["chosen"],
        most_calls: int | None,
        sample: float,
        on_fail: Literal["raise", "report"],
        settings: JudgingArguments,
    ) -> None:
        super().__init__(most_calls, sample, on_fail, settings.get("seed"))
        self._premises = premises
        self._settings = settings
        self._waiting: list[RecordedCall] = []
        self._mode = _Mode(self)

    def __enter__(self) -> JudgedAttention:
        self._mode.__enter__()
        return self

    def __exit__(self, kind: type | None, error: object, trace: object) -> None:
        __tracebackhide__ = True
        self._mode.__exit__(kind, error, trace)
        waiting, self._waiting = self._waiting, []
        if kind is not None:
            return
        for one in waiting:
            one.judge(self._settings)
        self.calls = [one for one in self.calls if one.problem or one.not_judged]
        if self._on_fail == "raise" and not self.passed:
            raise AssertionError(self.text)
        gaps = self._gaps()
        if any(one.not_judged for one in self.calls) or self.compiled > 0:
            warnings.warn("\n".join(gaps[1:]), NotJudgedWarning, stacklevel=2)

    def dispatch(
        self, function: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]
    ) -> Any:
        """Carry a function of PyTorch out, and record it if it is attention."""
        if function is _ATTENTION or function is _ATEN or function is _ATEN.default:
            return self._attend(function, args, given)
        name = str(getattr(function, "__name__", ""))
        if function is _MULTI_HEAD:
            if not _wants_weights(args, given):
                with self._mode:
                    return _body(_MULTI_HEAD)(*args, **given)
            self._miss(f"{name} with need_weights=True attends without it")
        elif name.startswith(_OTHER_WAYS):
            self._miss(f"{name} is another way to attention")
        return function(*args, **given)

    def _miss(self, reason: str) -> None:
        self.calls.append(JudgedCall(len(self.calls) + 1, caller(), not_judged=reason))

    def _attend(
        self, function: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]
    ) -> Any:
        if not self._is_wanted():
            self.left_out += 1
            return function(*args, **given)
        said = JudgedCall(len(self.calls) + 1, caller())
        self.calls.append(said)
        try:
            call = read_call(args, given)
        except NotJudgedError as error:
            said.not_judged = str(error)
            return function(*args, **given)
        premises = chosen_premises(call) if self._premises == "chosen" else self._premises
        needs_grad = torch.is_grad_enabled() and any(
            one.requires_grad for one in call.tensors().values()
        )
        watched = Backward() if needs_grad else None
        if watched is not None:
            call = watch_inputs(watched, call)
        out = function(**keywords(call))
        if watched is not None and out.requires_grad:
            watched.watch_output("dout", out)
        try:
            recorded = RecordedCall.of(said, call, out, watched, premises)
        except NotJudgedError as error:
            said.not_judged = str(error)
            return out
        if watched is None:
            recorded.judge(self._settings)
        else:
            self._waiting.append(recorded)
        return out


class _Mode(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Sees the functions of PyTorch that this thread calls."""

    def __init__(self, owner: JudgedAttention) -> None:
        super().__init__()
        self.owner = owner

    def __torch_function__(
        self,
        func: Callable[..., Any],
        _types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        # torch.compile traces this method; what it counts is counted whenever the graph runs.
        if torch.compiler.is_compiling():
            if func is _ATTENTION:
                self.owner.compiled += 1
            return func(*args, **(kwargs or {}))
        return self.owner.dispatch(func, args, dict(kwargs or {}))


def _wants_weights(args: tuple[Any, ...], given: dict[str, Any]) -> bool:
    bound = inspect.signature(_MULTI_HEAD).bind(*args, **given)
    bound.apply_defaults()
    return bool(bound.arguments["need_weights"])


def _body(function: Any) -> Callable[..., Any]:
    """A function of PyTorch without its question whether somebody overrides it: what it calls in turn is seen."""
    names = {**function.__globals__, "has_torch_function": lambda _: False}
    own = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    own.__kwdefaults__ = function.__kwdefaults__
    return own


def judged_attention(
    *,
    premises: Premises | None | Literal["chosen"] = "chosen",
    most_calls: int | None = None,
    sample: float = 1.0,
    on_fail: Literal["raise", "report"] = "raise",
    **settings: Unpack[JudgingArguments],
) -> JudgedAttention:
    """
    Judge every call of PyTorch's `scaled_dot_product_attention` that is made within, and its gradients.

        with flashproof.torch.judged_attention():
            model(x).sum().backward()

    A call without gradients is judged at once; others at the end, with dQ, dK, dV (and that of an additive mask) of the first
    backward pass, and their tensors are kept till then. Tensors on a GPU are judged there (`audit_on_device`), unless they have masks or
    gradients. At the end an AssertionError lists the calls that fail, each with its place, its verdict and the command that
    shows it again; it is raised as well where no call was judged. With `on_fail="report"` nothing is raised: the context has `passed`,
    `calls` and `text`. What was not judged is in `text`, and a NotJudgedWarning: dropout, nested tensors, what
    `torch.compile` compiled. Calls of other threads are not seen.

    `premises` says how the kernel computes, `"chosen"` as the backend that PyTorch chooses. `most_calls` and `sample` (a
    probability, drawn by `seed`; the first call is always judged) leave calls out. `false_alarm_rate` (of each call), `rows`, `threads`,
    `gradient_premises` and `options` are those of `audit`.
    """
    check_names("judged_attention", settings, JudgingArguments)
    return JudgedAttention(premises, most_calls, sample, on_fail, settings)
