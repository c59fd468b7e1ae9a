"""Mamba-2's arguments of `audit_recurrent` and `assert_recurrent`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from .dump import number_of


class Mamba2Arguments(TypedDict, total=False):
    """What Mamba-2 has besides what every recurrence has, by the names of mamba_ssm."""

    C: Any
    B: Any
    x: Any
    dt: Any
    A: Any
    D: Any
    z: Any
    dt_bias: Any
    initial_states: Any
    seq_idx: Any
    final_states: Any
    dt_softplus: bool
    dt_limit: tuple[float, float] | None
    dC: Any
    dB: Any
    dx: Any
    ddt: Any
    dA: Any
    dD: Any
    ddt_bias: Any
    dinitial_states: Any
    dfinal_states: Any


#: Its inputs, its gradients behind dout, and the names of what q, k, v and so on are called there.
MAMBA2_INPUTS = ("C", "B", "x", "dt", "A", "D", "z", "dt_bias", "initial_states", "seq_idx")
MAMBA2_GRADIENTS = ("dout", "dx", "ddt", "dA", "dB", "dC", "dD", "ddt_bias", "dinitial_states")
_OWN_NAMES = {
    "q": "C",
    "k": "B",
    "v": "x",
    "final_state": "final_states",
    "initial_state": "initial_states",
    "dq": "dC",
    "dk": "dB",
    "dv": "dx",
    "dfinal_state": "dfinal_states",
    "dinitial_state": "dinitial_states",
}
_NOT_THERE = ("g", "beta", "A_log", "a", "b", "dg", "dbeta", "scale", "normalisation")


def mamba2_tensors(outputs: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors of a Mamba-2 problem by their own names. ValueError for what it has not, and for what it needs."""
    for name, own in _OWN_NAMES.items():
        if outputs.get(name) is not None or given.get(name) is not None:
            raise ValueError(f"{name} is given for mamba2; call it {own}")
    for name in _NOT_THERE:
        if given.get(name) is not None:
            raise ValueError(f"mamba2 has no {name}; leave it out")
    for name in MAMBA2_INPUTS[:5]:
        if given.get(name) is None:
            raise ValueError(f"mamba2 needs {name}; give it")
    names = (*MAMBA2_INPUTS, *MAMBA2_GRADIENTS, "cu_seqlens", "final_states", "dfinal_states")
    return {"out": outputs.get("out"), **{name: given.get(name) for name in names}}


def mamba2_metadata(given: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a Mamba-2 problem as a file's metadata. ValueError for limits that are no two numbers."""
    found = {
        "family": "mamba2",
        "layout": str(given.get("layout", "bthd")),
        "state_layout": str(given.get("state_layout", "vk")),
        "dt_softplus": str(bool(given.get("dt_softplus", False))).lower(),
    }
    limit = given.get("dt_limit")
    if limit is not None:
        if len(limit) != 2:
            raise ValueError(f"dt_limit is {limit!r}; give the least and the largest Δ")
        found["dt_limit"] = ",".join(repr(number_of("dt_limit", x)) for x in limit)
    return found


def refuse_mamba2_names(family: str, given: Mapping[str, Any]) -> None:
    """ValueError for an argument of Mamba-2 in another family; a dt_bias is also one of gates that are made of A_log."""
    for name in Mamba2Arguments.__optional_keys__:
        if name == "dt_bias" and given.get("A_log") is not None:
            continue
        if given.get(name) is not None:
            raise ValueError(f"{name} is of mamba2, and the family is {family}; leave it out")
