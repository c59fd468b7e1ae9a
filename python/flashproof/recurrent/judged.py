"""A kernel of a recurrence that is judged whenever it is called: `judged_recurrent`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from ..dump import Premises
from ..recurrences import assert_recurrent, audit_recurrent
from ..report import Report
from .arguments import values_of
from .carry_out import AwaitedGradients, carry_out, read
from .kernels import kernel_of
from .read_call import RecurrentCall

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..arguments import RecurrentJudgingArguments
    from ..torch import JudgedRecurrences


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
        #: The report of every call and of every call's gradients, in the order in which they came.
        self.reports: list[Report] = []
        #: What of calls was not judged, and why, a line each.
        self.not_judged: list[str] = []
        self._function = function
        self._kernel = kernel_of(family)
        self._premises = premises
        self._on_fail = on_fail

    @property
    def passed(self) -> bool:
        """Whether calls were judged, and none fails."""
        return len(self.reports) > 0 and all(self.reports)

    def __call__(self, *args: Any, **given: Any) -> Any:
        """Call the kernel, and judge its output and its final state; its gradients as a backward pass ends."""
        __tracebackhide__ = True
        call = read(self._kernel, values_of(self._function, args, given))
        carried = carry_out(self._function, args, given, call, self._judge_gradients)
        self._judge(call, carried.outputs)
        return carried.made

    def _judge_gradients(self, awaited: AwaitedGradients) -> None:
        __tracebackhide__ = True
        gradients = awaited.gradients()
        self.not_judged += gradients.reasons
        if not gradients.judged:
            return
        try:
            self._judge(awaited.call, gradients.judged)
        except ValueError as error:
            self.not_judged.append(f"gradients: {error}")

    def _judge(self, call: RecurrentCall, results: Mapping[str, Any]) -> None:
        __tracebackhide__ = True
        judge = assert_recurrent if self._on_fail == "raise" else audit_recurrent
        problem: dict[str, Any] = {**call.problem, **results, "premises": self._premises}
        self.reports.append(judge(**problem))


@overload
def judged_recurrent(
    function: Callable[..., Any],
    *,
    family: str,
    premises: Premises | None = None,
    on_fail: Literal["raise", "report"] = "raise",
) -> JudgedRecurrent: ...


@overload
def judged_recurrent(
    *,
    premises: Premises | None | Literal["chosen"] = "chosen",
    known: Iterable[str] | None = None,
    most_calls: int | None = None,
    sample: float = 1.0,
    every: int | None = None,
    on_fail: Literal["raise", "report"] | None = None,
    **settings: Unpack[RecurrentJudgingArguments],
) -> JudgedRecurrences: ...


def judged_recurrent(
    function: Callable[..., Any] | None = None, *, family: str | None = None, **settings: Any
) -> Any:
    """
    Judge a kernel of linear attention whenever it is called: its output, its final state, and the gradients of a backward pass.

        chunk_gated_delta_rule = judged_recurrent(chunk_gated_delta_rule, family="gated-delta")

    The kernel has the arguments of flash-linear-attention's functions by their names (`q`, `k`, `v`, `g`, `gk` or `g_gamma`, `beta`,
    `scale`, `initial_state`, `cu_seqlens`, `use_qk_l2norm_in_kernel`, `head_first`, `state_v_first`, `use_gate_in_kernel`,
    `use_beta_sigmoid_in_kernel`), or `a`, `b`, `A_log` and `dt_bias` of gates that it makes; it may lack some. It gives the output,
    or the output and the final state (or None). A call that fails raises as `assert_recurrent` does; with `on_fail="report"` none
    does, and `reports` and `passed` of what is returned say what was found. ValueError for a call with another argument that may
    change what is computed, before the kernel runs. Gradients of tensors of PyTorch are judged as the first backward pass through a
    call ends, which raises there; `not_judged` says what of them is not. They stay as they are.

    Without a function it is a context in which flash-linear-attention's and mamba_ssm's own functions are judged:

        with flashproof.judged_recurrent():
            model(x).sum().backward()

    They are found wherever a module imported them or a `torch.nn.Module` holds them, and each call counts as its outermost one. At
    the end an AssertionError lists the calls that fail, and is raised as well where no call was judged; with `on_fail="report"` nothing
    is raised, and the context has `passed`, `calls` and `text`. A call that cannot be judged is said in a line of `text`, and in a
    NotJudgedWarning. `premises` are those of each function by default (`"chosen"`); `most_calls`, `sample` and `every` leave calls out,
    `known` accepts weaknesses and `summary` counts calls, as in `flashproof.torch.judged_attention`; `false_alarm_rate`, of each report,
    `rows`, `seed` and `options` are those of `audit_recurrent`. ValueError where neither package can be imported.
    """
    if function is None:
        if family is not None:
            raise ValueError(f"family is {family!r} without a function; give the function to judge")
        from ..torch.judged_recurrences import judged_recurrences

        return judged_recurrences(**settings)
    if family is None:
        raise ValueError("family is not given; name that of the function, 'gated-delta' for one")
    premises, on_fail = settings.pop("premises", None), settings.pop("on_fail", "raise")
    if settings:
        raise TypeError(f"judged_recurrent() of a function takes no {', '.join(settings)}")
    if on_fail not in ("raise", "report"):
        raise ValueError(f"on_fail is {on_fail!r}; give 'raise' or 'report'")
    return JudgedRecurrent(function, family, premises, on_fail)
