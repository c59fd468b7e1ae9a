"""A kernel of linear attention that is judged whenever it is called: `judged_recurrent`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

from .arrays import to_array
from .dump import Premises
from .recurrences import assert_recurrent, audit_recurrent
from .report import Report

#: What a call may give that `audit_recurrent` takes, by the names of flash-linear-attention's functions.
_TENSORS = {
    "q": "q",
    "k": "k",
    "v": "v",
    "g": "g",
    "gk": "g",
    "beta": "beta",
    "initial_state": "initial_state",
    "cu_seqlens": "cu_seqlens",
}
#: Flags of those functions, and what each is where it is set.
_FLAGS: Mapping[str, tuple[str, Any]] = {
    "use_qk_l2norm_in_kernel": ("normalisation", True),
    "head_first": ("layout", "bhtd"),
    "state_v_first": ("state_layout", "vk"),
    "transpose_state_layout": ("state_layout", "vk"),
}
#: Arguments that change no exact value.
_WITHOUT_MEANING = (
    "output_final_state",
    "chunk_size",
    "chunk_indices",
    "cu_seqlens_cpu",
    "disable_recompute",
    "safe_gate",
)


def _values(function: Callable[..., Any], args: Any, given: Any) -> dict[str, Any]:
    """The arguments of a call by name, with the function's own defaults."""
    bound = inspect.signature(function).bind(*args, **given)
    bound.apply_defaults()
    values: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            values.update(bound.arguments[name])
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            values[name] = bound.arguments[name]
    return values


def _problem(values: Mapping[str, Any]) -> dict[str, Any]:
    """
    The arguments of `audit_recurrent` that a call's come to; tensors are copied, for kernels may write over them.

    ValueError for one that is set and may change what is computed.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        # A flag that is not set, or a tensor that is not there; tensors have no truth of their own.
        if value is None or value is False or name in _WITHOUT_MEANING:
            continue
        if name in _TENSORS:
            found[_TENSORS[name]] = to_array(value, name)
        elif name == "scale":
            found["scale"] = value
        elif name in _FLAGS and value is True:
            meant, setting = _FLAGS[name]
            found[meant] = setting
        else:
            raise ValueError(
                f"{name} is given to a judged kernel, and may change what it computes; judge what it"
                " gives with flashproof.audit_recurrent"
            )
    return found


class JudgedRecurrent:
    """A kernel whose calls are judged. It gives what the kernel gives."""

    def __init__(
        self,
        function: Callable[..., Any],
        family: str,
        premises: Premises | None,
        on_fail: Literal["raise", "report"],
    ) -> None:
        functools.update_wrapper(self, function)
        #: The report of every call, in order.
        self.reports: list[Report] = []
        self._function = function
        self._family = family
        self._premises = premises
        self._on_fail = on_fail

    @property
    def passed(self) -> bool:
        """Whether calls were judged, and none fails."""
        return len(self.reports) > 0 and all(self.reports)

    def __call__(self, *args: Any, **given: Any) -> Any:
        """Call the kernel, and judge its output and its final state."""
        __tracebackhide__ = True
        problem = _problem(_values(self._function, args, given))
        made = self._function(*args, **given)
        out, state = made[:2] if isinstance(made, (tuple, list)) else (made, None)
        judge = assert_recurrent if self._on_fail == "raise" else audit_recurrent
        problem["premises"] = self._premises
        self.reports.append(judge(out=out, final_state=state, family=self._family, **problem))
        return made


def judged_recurrent(
    function: Callable[..., Any],
    *,
    family: str,
    premises: Premises | None = None,
    on_fail: Literal["raise", "report"] = "raise",
) -> JudgedRecurrent:
    """
    Wrap a kernel of linear attention, so that its output and its final state are judged whenever it is called.

        chunk_gated_delta_rule = judged_recurrent(chunk_gated_delta_rule, family="gated-delta")

    The kernel has the arguments of flash-linear-attention's functions by their names (`q`, `k`, `v`, `g` or `gk`, `beta`, `scale`,
    `initial_state`, `cu_seqlens`, `use_qk_l2norm_in_kernel`, `head_first`, `state_v_first`), of which it may lack some. It gives
    the output, or the output and the final state (or None). A call that fails raises as `assert_recurrent` does; with
    `on_fail="report"` none does, and `reports` and `passed` of what is returned say what was found. ValueError for a call with
    another argument that may change what is computed, before the kernel runs. Gradients are not judged.
    """
    if on_fail not in ("raise", "report"):
        raise ValueError(f"on_fail is {on_fail!r}; give 'raise' or 'report'")
    return JudgedRecurrent(function, family, premises, on_fail)
