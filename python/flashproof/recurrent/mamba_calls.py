"""Calls of mamba_ssm's `mamba_chunk_scan_combined` and `selective_state_update` as problems of `audit_recurrent`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ..arrays import to_array
from .read_call import WITHOUT_MEANING, RecurrentCall, is_left_out, refuse

_SCAN_TENSORS = ("x", "dt", "A", "B", "C", "D", "z", "dt_bias", "initial_states", "seq_idx")
_SETTINGS = ("dt_softplus", "dt_limit")
#: Flags that say what is returned.
_RETURNED = ("return_final_states",)
_SUMS_OVER_BATCH = ("A", "D", "dt_bias")
_RESULTS = ("out", "final_states")


def read_scan(values: Mapping[str, Any]) -> RecurrentCall:
    """What a call of the chunked scan asks for. ValueError for what is no problem, in one line."""
    problem: dict[str, Any] = {"family": "mamba2"}
    for name, value in values.items():
        if is_left_out(value) or name in WITHOUT_MEANING or name in _RETURNED:
            continue
        if name in _SCAN_TENSORS:
            problem[name] = to_array(value, name)
        elif name in _SETTINGS:
            problem[name] = value
        else:
            raise refuse(name)
    is_packed = "seq_idx" in problem
    if is_packed and "initial_states" in problem:
        raise ValueError("initial_states and seq_idx are given; whose states they are is not known")
    names = [name for name in _SCAN_TENSORS if name in problem and name not in ("z", "seq_idx")]
    why = {}
    if "z" in problem:
        why = {name: "gradients are not judged beside a gate z" for name in (*names, "z")}
    elif problem["x"].shape[0] > 1:
        why = {name: f"d{name} is a sum over the batch" for name in _SUMS_OVER_BATCH}
    return RecurrentCall(
        problem,
        {name: f"d{name}" for name in names if name not in why},
        {name: reason for name, reason in why.items() if name in problem},
        _RESULTS,
        state_not_judged="the final state is the last sequence's alone" if is_packed else None,
    )


def read_step(values: Mapping[str, Any]) -> RecurrentCall:
    """
    What a call of one token's step asks for, whose state is written over.

    ValueError for what is no problem, in one line: Mamba-1's states, and Δ, A and biases that differ within a head.
    """
    tensors = ("state", "x", "dt", "A", "B", "C", "D", "z", "dt_bias")
    for name, value in values.items():
        if not is_left_out(value) and name not in (*tensors, "dt_softplus"):
            raise refuse(name)
    if len(values["state"].shape) != 4:
        raise ValueError("a state without heads is Mamba-1's, which is no family here")
    heads = {
        "dt": (values["dt"], 1),
        "A": (values["A"], 2),
        "dt_bias": (values.get("dt_bias"), 1),
    }
    found = {
        name: _of_heads(name, value, last) for name, (value, last) in heads.items()
        if not is_left_out(value)
    }  # fmt: skip
    for name in ("x", "B", "C", "z"):
        if not is_left_out(values.get(name)):
            found[name] = values[name]
    # Of [batch, …], one token.
    one = {
        name: value[:, None] if name not in ("A", "dt_bias") else value
        for name, value in found.items()
    }
    if not is_left_out(values.get("D")):
        one["D"] = values["D"]
    problem: dict[str, Any] = {name: to_array(value, name) for name, value in one.items()}
    problem["initial_states"] = to_array(values["state"], "state")
    problem["family"] = "mamba2"
    problem["dt_softplus"] = bool(values.get("dt_softplus", False))
    others = {name: "a step has no gradients" for name in values}
    return RecurrentCall(problem, {}, others, _RESULTS, state_argument="state")


def _of_heads(name: str, value: Any, last: int) -> Any:
    """What stands at the first of the `last` dimensions, for a tensor that repeats it along them. ValueError for another."""
    first = (..., *(0 for _ in range(last)))
    found = value[first]
    if not _is_same(value, found[(..., *(None for _ in range(last)))]):
        raise ValueError(f"{name} differs within a head, which is Mamba-1's; no family here has it")
    return found


def _is_same(value: Any, other: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return bool(torch.equal(value, other.expand_as(value)))
    return bool((value == other).all())
