"""Functions of your own: how their calls are read, and a decorator that judges them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from ...arguments import JudgingArguments, check_names
from ...dump import Premises
from ..backward import Backward
from ..calls import RecordedCall
from ..chosen_calls import Chosen
from ..judged_call import JudgedCall, Part, told_call
from ..judged_calls import JudgedAttentionCalls
from ..known import Subject
from ..problem import NotJudgedError
from ..sampling import Sampling
from .kernel_call import KernelCall, read_kernel_call
from .row import Layout, Row
from .table import CACHE_NAMES, FLASH_NAMES, FLASH_WITHOUT_MEANING

#: Names of arguments in the wild, besides FlashAttention's.
_COMMON = {
    "query": "q",
    "key": "k",
    "value": "v",
    "scale": "scale",
    "sm_scale": "scale",
    "is_causal": "causal",
    "window": "window",
    "window_left": "window_left",
    "logits_soft_cap": "softcap",
    "mask": "attn_mask",
    "attn_mask": "attn_mask",
    "bias": "attn_mask",
    "attn_bias": "attn_mask",
    "sink": "sink",
    # What is written into an argument.
    "out": "out",
    "output": "out",
}
#: What an argument may be, or a default be set of.
_FURTHER = ("mask", "bias", "from_first")
WORDS = frozenset((*FLASH_NAMES.values(), *CACHE_NAMES.values(), *_COMMON.values(), *_FURTHER))


class Kernel:
    """How the calls of a function are read: for `judged_attention(functions=[…])`."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        arguments: Mapping[str, str] | None = None,
        layout: Layout = "bhsd",
        ignore: Iterable[str] = (),
        results: tuple[str | None, ...] = ("out", "lse"),
        lse_base: Literal[2, None] = None,
        **defaults: Any,
    ) -> None:
        """
        Read the calls of `function` by the names of its arguments.

        `arguments` has the word of each argument that is named otherwise (`{"queries": "q"}`); the words are `q`, `k`, `v`, `scale`,
        `causal` and so on, as docs/guide/python.md lists them, and FlashAttention's names are known. `layout` is that of Q, K and V,
        `bhsd`, `bshd` or `sbhd`; `ignore` names arguments that change no exact value; `results` says what the function gives, None for
        what is not to be judged; an LSE has natural logarithms unless `lse_base` is 2. Further arguments are the words' values where a
        call gives none: `causal=True`. TypeError and ValueError for what is none of these.
        """
        if not callable(function):
            raise TypeError(f"function is {function!r}; give one")
        if inspect.ismethod(function):
            name = function.__qualname__
            raise ValueError(f"{name} is the method of one object; give that of its class")
        if layout not in ("bhsd", "bshd", "sbhd"):
            raise ValueError(f"layout is {layout!r}; give 'bhsd', 'bshd' or 'sbhd'")
        if "out" not in results or any(one not in ("out", "lse", None) for one in results):
            raise ValueError(f"results is {results!r}; give 'out', and 'lse' or None for others")
        if lse_base not in (2, None):
            raise ValueError(f"lse_base is {lse_base!r}; give 2, or None for natural logarithms")
        own = dict(arguments or {})
        for word in (*own.values(), *defaults):
            if word not in WORDS:
                raise ValueError(
                    f"{word!r} is no word of a problem; give {', '.join(sorted(WORDS))}"
                )
        self.function = function
        self.row = Row(
            names={**_names_of(function), **own},
            without_meaning=(FLASH_WITHOUT_MEANING - {"out"}) | {"self", *ignore},
            layout=layout,
            is_own=True,
            defaults=defaults,
            results=results,
            lse_base=lse_base,
        )

    @property
    def name(self) -> str:
        """The function's name with its module."""
        function = self.function
        name = getattr(function, "__qualname__", None) or type(function).__name__
        return f"{getattr(function, '__module__', '')}.{name}"

    def read(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> KernelCall:
        """What a call asks for; NotJudgedError for one that is not judged."""
        try:
            return read_kernel_call(self.name, self.function, self.row, args, given)
        except NotJudgedError as error:
            name, found, _ = str(error).partition(" is given, which is not known here")
            if not found or not name.isidentifier():
                raise
            said = f"say what it is: Kernel(f, arguments={{{name!r}: 'q'}}), or ignore=[{name!r}]"
            raise NotJudgedError(f"{error}; {said}") from None


def _names_of(function: Callable[..., Any]) -> dict[str, str]:
    """The words of names, of a function on a cache those of its new keys."""
    try:
        is_cached = "k_cache" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        is_cached = False
    return {**_COMMON, **(CACHE_NAMES if is_cached else FLASH_NAMES)}


class JudgedFunction(JudgedAttentionCalls):
    """A function whose calls are judged. It gives what the function gives."""

    _function = "the function"

    def __init__(self, kernel: Kernel, chosen: Chosen) -> None:
        super().__init__(chosen)
        functools.update_wrapper(self, kernel.function)
        #: How its calls are read.
        self.kernel = kernel

    def __call__(self, *args: Any, **given: Any) -> Any:
        """Call the function, and judge its output; its gradients as a backward pass ends."""
        __tracebackhide__ = True
        function = self.kernel.function
        return self.meet(
            lambda: self.kernel.read(args, given),
            lambda: function(*args, **given),
            contextlib.nullcontext,
        )

    def _await(self, recorded: RecordedCall, subject: Subject, watched: Backward) -> None:
        """Judge the output at once, for nobody says when no backward pass will come; and again with gradients."""
        __tracebackhide__ = True
        said = recorded.said

        def judge() -> None:
            said.gradients_not_judged = None
            with self._timed(said):
                self._judge(recorded, subject)

        self._judge(replace(recorded, backward=None), subject)
        said.gradients_not_judged = "no backward pass came through"
        watched.on_end = judge

    def _fail(self, said: JudgedCall, part: Part, keep: Callable[[], str]) -> None:
        __tracebackhide__ = True
        super()._fail(said, part, keep)
        if self._on_fail == "raise":
            raise AssertionError("\n".join(told_call(said)))

    def _seconds(self) -> float:
        return time.perf_counter() - self._began

    def __repr__(self) -> str:
        return f"<judged {self.kernel.name}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """The function as a method of what it is an attribute of."""
        return self if instance is None else types.MethodType(self, instance)


def judged(
    function: Callable[..., Any] | None = None,
    *,
    premises: Premises | None | Literal["chosen"] = "chosen",
    known: Iterable[str] | None = None,
    most_calls: int | None = None,
    sample: float = 1.0,
    every: int | None = None,
    on_fail: Literal["raise", "report"] | None = None,
    settings: JudgingArguments | None = None,
    **description: Any,
) -> Any:
    """
    Judge a function of attention whenever it is called: its output, its LSE, and the gradients of a backward pass.

        @flashproof.torch.judged(layout="bshd", causal=True)
        def my_attention(q, k, v, scale): ...

    `description` is that of `Kernel`: `arguments`, `layout`, `ignore`, `results`, `lse_base` and the words' usual values. A call that
    fails raises an AssertionError, wrong gradients as the backward pass ends; with `on_fail="report"`, and with `every`, none does, and
    `passed`, `calls`, `text` and `summary` of the function say what was found. The others are those of `judged_attention`; `settings`
    are its further ones, `{"rows": 64}`.
    """
    given = settings or {}
    check_names("judged", given, JudgingArguments)

    def decorate(one: Callable[..., Any]) -> JudgedFunction:
        kernel = Kernel(one, **description)
        sampling = Sampling(most_calls, sample, every, given.get("seed"))
        return JudgedFunction(kernel, Chosen(sampling, premises, known, on_fail, given))

    return decorate if function is None else decorate(function)
