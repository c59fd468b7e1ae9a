"""A context in which attention is judged, call by call: PyTorch's, that of libraries of kernels, and that of functions of your own."""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.overrides import TorchFunctionMode

from ..arguments import JudgingArguments, check_names
from ..dump import Premises
from .callers import caller
from .chosen_calls import Chosen
from .judged_call import JudgedCall
from .judged_calls import JudgedAttentionCalls
from .kernels.hooks import KernelHooks
from .read_call import read_call
from .sampling import Sampling
from .sdpa_call import SdpaCall, chosen_premises

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .kernels import Kernel

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


class JudgedAttention(JudgedAttentionCalls):
    """The context, and what it found. True where calls were judged, and all of them pass."""

    _function = "scaled_dot_product_attention or of a kernel that is hooked"

    def __init__(self, functions: Iterable[Callable[..., Any] | Kernel], chosen: Chosen) -> None:
        super().__init__(chosen)
        self._hooks = KernelHooks(self, functions)
        self._mode = _Mode(self)

    @property
    def functions(self) -> tuple[str, ...]:
        """The kernels that are hooked now, besides PyTorch's, by module and name."""
        return self._hooks.names

    def __enter__(self) -> JudgedAttention:
        self._begin()
        self._hooks.begin()
        self._mode.__enter__()
        return self

    def __exit__(self, kind: type | None, error: object, trace: object) -> None:
        __tracebackhide__ = True
        self._mode.__exit__(kind, error, trace)
        self._hooks.end()
        self._finish(is_raising=kind is not None)

    def dispatch(
        self, function: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]
    ) -> Any:
        """Carry a function of PyTorch out, and judge it if it is attention."""
        if self._hooks.is_within:
            return function(*args, **given)
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
        if self._sampling.is_of_a_loop and not self._sampling.wants():
            return
        self.calls.append(JudgedCall(self._number(), caller(), not_judged=reason))

    def _attend(
        self, function: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]
    ) -> Any:
        def read() -> SdpaCall:
            call = read_call(args, given)
            return SdpaCall(function, call, chosen_premises(call))

        return self.meet(read, lambda: function(*args, **given), contextlib.nullcontext)

    def _further_gaps(self) -> Sequence[str]:
        return [*self._hooks.broken, *self._hooks.unseen]

    def _is_incomplete(self) -> bool:
        return super()._is_incomplete() or len(self._hooks.unseen) > 0


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
    functions: Iterable[Callable[..., Any] | Kernel] = (),
    premises: Premises | None | Literal["chosen"] = "chosen",
    known: Iterable[str] | None = None,
    most_calls: int | None = None,
    sample: float = 1.0,
    every: int | None = None,
    on_fail: Literal["raise", "report"] | None = None,
    **settings: Unpack[JudgingArguments],
) -> JudgedAttention:
    """
    Judge every call of attention that is made within, and its gradients.

        with flashproof.torch.judged_attention():
            model(x).sum().backward()

    Calls are those of PyTorch's `scaled_dot_product_attention`; of flash_attn, flash_attn_interface, Transformer Engine, FlashInfer
    and xformers, where these are imported before or within; and of `functions`, which are read by the names of audit's arguments, or
    as a `Kernel` says. A call without gradients is judged at once; others as the first backward pass through them ends, with dQ, dK,
    dV (and that of an additive mask), and their tensors are kept till then. Tensors on a GPU are judged there (`audit_on_device`) where
    that takes them. At the end an AssertionError lists the calls that fail, each with its place, its verdict and the command that
    shows it again; it is raised as well where no call was judged. With `on_fail="report"` nothing is raised: the context has `passed`,
    `calls`, `text` and `summary`. What was not judged is in `text`, and a NotJudgedWarning: dropout, nested tensors, what
    `torch.compile` compiled, arguments that are not known here. Calls of PyTorch's in other threads are not seen.

    `premises` says how the kernel computes, `"chosen"` as the backend that PyTorch chooses. `most_calls` and `sample` (a
    probability, drawn by `seed`; the first call is always judged) leave calls out. `every` is for training: of each so many calls one
    is judged, a call that fails is told on standard error at once, nothing is raised unless `on_fail="raise"` says so, the problems of
    the first 8 failures are kept, and at the end `text` goes to standard error. `known` names weaknesses of a library that are
    accepted, and said. `false_alarm_rate` (of each call), `rows`, `threads`, `gradient_premises` and `options` are those of `audit`.
    """
    check_names("judged_attention", settings, JudgingArguments)
    sampling = Sampling(most_calls, sample, every, settings.get("seed"))
    return JudgedAttention(functions, Chosen(sampling, premises, known, on_fail, settings))
