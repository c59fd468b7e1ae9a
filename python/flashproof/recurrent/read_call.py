"""A call of a recurrence as a problem of `audit_recurrent`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..arrays import check_tensors, to_array
from ..safetensors import Array
from .kernels import Kernel

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
WITHOUT_MEANING = (
    "output_final_state",
    "chunk_size",
    "chunk_indices",
    "cu_seqlens_cpu",
    "disable_recompute",
    "safe_gate",
)
_DECAYS = ("g", "gk", "g_gamma")
#: Flags of a kernel that makes its gates and write strengths itself.
_MAKING = ("use_gate_in_kernel", "use_beta_sigmoid_in_kernel")


@dataclass(frozen=True)
class RecurrentCall:
    """What a call asks for."""

    #: Arguments of `audit_recurrent`; tensors are copied, for kernels may write over them.
    problem: Mapping[str, Any]
    #: The gradients that are judged, by the argument that each is of.
    gradients: Mapping[str, str]
    #: Why those of other arguments are not.
    other_gradients: Mapping[str, str] = field(default_factory=dict)
    #: What the output and the final state are called, and their gradients.
    results: tuple[str, str] = ("out", "final_state")
    #: The argument that a step of one token leaves its final state in; None for kernels that return it.
    state_argument: str | None = None
    #: Why the final state is not judged.
    state_not_judged: str | None = None

    def words(self) -> str:
        """The problem in a few words."""
        names = ("q", "v") if "q" in self.problem else ("x", "B")
        sizes = [f"{name} {list(self.problem[name].shape)}" for name in names]
        dtype = str(self.problem[names[0]].dtype).removeprefix("torch.")
        return f"{self.problem['family']} {dtype} {', '.join(sizes)}"

    def outputs(self, values: Mapping[str, Any], made: Any) -> dict[str, Any]:
        """The output and the final state, None where there is none, of what the kernel gave."""
        out, state = made[:2] if isinstance(made, (tuple, list)) else (made, None)
        if self.state_argument is not None:
            out, state = out[:, None], values[self.state_argument]
        if self.state_not_judged is not None:
            state = None
        return dict(zip(self.results, (out, state)))


def is_left_out(value: Any) -> bool:
    """Whether an argument is a flag that is not set, or a tensor that is not there; tensors have no truth of their own."""
    return value is None or value is False


def refuse(name: str) -> ValueError:
    """The error for an argument that is set and may change what is computed."""
    return ValueError(
        f"{name} is given to a judged kernel, and may change what it computes; judge what it"
        " gives with flashproof.audit_recurrent"
    )


def read_fla_call(kernel: Kernel, values: Mapping[str, Any]) -> RecurrentCall:
    """What a call asks for by the names of flash-linear-attention. ValueError for what is no problem, in one line."""
    decays = [name for name in _DECAYS if not is_left_out(values.get(name))]
    if not decays and not is_left_out(values.get("a")):
        decays = ["g"]
    if len(decays) > 1:
        raise ValueError(f"{' and '.join(decays)} are given to a judged kernel; give one of them")
    decay: Any = decays[0] if decays else None
    if decay not in kernel.families:
        raise ValueError(f"{decay or 'no decay'} is given, by which the kernel is of no family")
    problem: dict[str, Any] = {"family": kernel.families[decay]}
    tensors = {**_TENSORS, **_made_inputs(values)}
    gradients, others = {}, {}
    for name, value in values.items():
        if is_left_out(value) or name in (*WITHOUT_MEANING, *_MAKING, "g_gamma"):
            continue
        if name in tensors:
            own = tensors[name]
            problem[own] = _copied(value, name)
            gradients[name] = f"d{own}"
        elif name == "scale":
            problem["scale"] = value
        elif name in _FLAGS and value is True:
            meant, setting = _FLAGS[name]
            problem[meant] = setting
        else:
            raise refuse(name)
    for name in ("q", "k", "v"):
        if name not in problem:
            raise ValueError(f"{name} is not given to a judged kernel; give it")
    if decay == "g_gamma":
        problem["g"] = _each_token(values["g_gamma"], problem)
        others["g_gamma"] = "dg_gamma is a sum over tokens"
    if tensors != _TENSORS:
        why = "gradients are not judged beside gates or write strengths that the kernel makes"
        gradients, others = {}, dict.fromkeys(gradients, why)
    return RecurrentCall(problem, gradients, others)


def _made_inputs(values: Mapping[str, Any]) -> dict[str, str]:
    """
    What a kernel that makes its gates or write strengths makes them of, by the names of `audit_recurrent`.

    Gates are −exp(A_log) softplus(a + dt_bias), write strengths the sigmoid of b: of flash-linear-attention's g and beta where a flag
    says so, else of a and b by their own names.
    """
    found = {}
    if not is_left_out(values.get("use_gate_in_kernel")):
        found["g"] = "a"
    elif not is_left_out(values.get("a")):
        found["a"] = "a"
    if found:
        found.update({"A_log": "A_log", "dt_bias": "dt_bias"})
    if not is_left_out(values.get("use_beta_sigmoid_in_kernel")):
        found["beta"] = "b"
    elif not is_left_out(values.get("b")):
        found["b"] = "b"
    return found


def _copied(value: Any, name: str) -> Any:
    """A tensor as it is now: on the GPU where it lies there, else as an array. TypeError for what is none."""
    if getattr(value, "is_cuda", False):
        check_tensors({name: value})
        return value.detach().clone()
    return to_array(value, name)


def _each_token(decays: Any, problem: Mapping[str, Any]) -> Any:
    """Decays of heads as those of every token."""
    if problem.get("layout") == "bhtd" or len(decays.shape) != 1:
        raise ValueError(f"g_gamma has {list(decays.shape)}; give one number for each head")
    batch, tokens = problem["q"].shape[:2]
    if not isinstance(problem["q"], Array):
        return decays.detach().expand(batch, tokens, -1).clone()
    own = to_array(decays, "g_gamma")
    return Array(own.dtype, (batch, tokens, *own.shape), own.data * (batch * tokens))
