"""Calling a kernel while its gradients are watched."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .arguments import replaced, values_of
from .kernels import Kernel
from .mamba_calls import read_scan, read_step
from .read_call import RecurrentCall, read_fla_call

if TYPE_CHECKING:
    from ..torch.backward import Backward


@dataclass(frozen=True)
class Gradients:
    """What the first backward pass through a call came to."""

    #: Those that are judged, with `dout`, by the names of `audit_recurrent`; empty where none is.
    judged: Mapping[str, Any]
    #: What is not judged, and why, a clause each.
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class AwaitedGradients:
    """
    What the gradients of a call are judged by as they come.

    The graph of the call holds this by its hooks, so that nothing here may hold a tensor of that graph.
    """

    call: RecurrentCall
    watched: Backward
    #: Arguments whose gradients are to come.
    wanted: tuple[str, ...]
    #: An array as dO is, of zeros.
    zeros: Callable[[], Any]

    def gradients(self) -> Gradients:
        """The gradients of the pass that came through. Called as it ends."""
        given, found = self.watched.given, self.watched.found
        out, state = self.call.results
        own, others = self.call.gradients, self.call.other_gradients
        reasons = [others[name] for name in self.wanted if name in others]
        if state in given and self.call.state_not_judged is not None:
            return Gradients({}, (*reasons, self.call.state_not_judged))
        reasons += [
            f"{own[name]}: backward gave none"
            for name in self.wanted
            if name in own and name not in found
        ]
        judged = {own[name]: one for name, one in found.items() if name in own}
        if judged:
            # A pass may come by the final state alone.
            judged["dout"] = given[out] if out in given else self.zeros()
            if state in given:
                judged[f"d{state}"] = given[state]
        return Gradients(judged, tuple(reasons))


@dataclass(frozen=True)
class CarriedOut:
    """A call of a kernel that was carried out."""

    #: What the kernel gave.
    made: Any
    #: The output and the final state by name.
    outputs: Mapping[str, Any]
    #: Whether gradients are to come.
    has_gradients: bool = False


def read(kernel: Kernel, values: Mapping[str, Any]) -> RecurrentCall:
    """What a call asks for. ValueError and TypeError for what is no problem, in one line."""
    readers = {"mamba-scan": read_scan, "mamba-step": read_step}
    reader = readers.get(kernel.dialect)
    return read_fla_call(kernel, values) if reader is None else reader(values)


def carry_out(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    given: Mapping[str, Any],
    call: RecurrentCall,
    on_gradients: Callable[[AwaitedGradients], None],
) -> CarriedOut:
    """Call a kernel; `on_gradients` is called as the first backward pass through it ends."""
    values = values_of(function, args, given)
    wanted = _differentiated(values)
    if not wanted:
        made = function(*args, **given)
        return CarriedOut(made, call.outputs(values, made))
    from ..torch.backward import Backward

    watched = Backward()
    views = {name: watched.watch_input(name, values[name]) for name in wanted}
    args, given = replaced(function, args, given, views)
    made = _viewed(function(*args, **given))
    results = dict(zip(call.results, _results(made)))
    out = results[call.results[0]].detach()
    zeros = functools.partial(out.new_empty(0).new_zeros, out.shape)
    awaited = AwaitedGradients(call, watched, wanted, zeros)
    watched.on_end = lambda: on_gradients(awaited)
    for name, one in results.items():
        if _is_differentiable(one):
            watched.watch_output(name, one)
    return CarriedOut(made, call.outputs(values, made), has_gradients=True)


def _results(made: Any) -> tuple[Any, ...]:
    return tuple(made[:2]) if isinstance(made, (tuple, list)) else (made,)


def _viewed(made: Any) -> Any:
    """
    What a kernel returned, with nodes of this call's own behind the output and the final state.

    A kernel may go on from the state that it returns, and what comes back to its own node is then more than what the caller brings.
    """
    own = [one.view_as(one) if _is_differentiable(one) else one for one in _results(made)]
    if not isinstance(made, (tuple, list)):
        return own[0]
    return (list if isinstance(made, list) else tuple)([*own, *made[len(own) :]])


def _differentiated(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The arguments that gradients are to come for, as PyTorch has it."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return ()
    return tuple(
        name for name, one in values.items() if isinstance(one, torch.Tensor) and one.requires_grad
    )


def _is_differentiable(one: Any) -> bool:
    """Whether a backward pass may come to a tensor."""
    return getattr(one, "grad_fn", None) is not None
