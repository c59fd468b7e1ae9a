"""Public functions of recurrences, as data: where they are, the family that their arguments make, and how they compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

#: The words of a function's arguments: those of flash-linear-attention, or those of mamba_ssm's two functions.
Dialect = Literal["fla", "mamba-scan", "mamba-step"]
#: The argument that holds decays, None where there is none.
Decay = Literal["g", "gk", "g_gamma", None]


@dataclass(frozen=True)
class Kernel:
    """How the calls of a function are read."""

    #: The family by the argument that gives the decays.
    families: Mapping[Decay, str]
    #: How it computes: a premise of `audit_recurrent`, None for any.
    form: Literal["recurrent", "chunked", None] = None
    dialect: Dialect = "fla"


def kernel_of(family: str) -> Kernel:
    """A kernel of a family that a caller names, whichever argument its decays are in."""
    return Kernel({name: family for name in ("g", "gk", "g_gamma", None)})


_CHUNKED: Literal["chunked"] = "chunked"
_RECURRENT: Literal["recurrent"] = "recurrent"
_GATED: Mapping[Decay, str] = {"g": "gated-delta", "gk": "kda", None: "delta"}
_SIMPLE: Mapping[Decay, str] = {"g": "simple-gla", "g_gamma": "simple-gla", None: "linear"}

#: By module and name. Facts: flash-linear-attention 0.1.0 to 0.6.0 and mamba_ssm 2, their functions' signatures.
PUBLIC_KERNELS: Mapping[str, Mapping[str, Kernel]] = {
    "fla.ops.gla": {
        "chunk_gla": Kernel({"g": "gla"}, _CHUNKED),
        "fused_recurrent_gla": Kernel({"gk": "gla", None: "linear"}, _RECURRENT),
    },
    "fla.ops.simple_gla": {
        "chunk_simple_gla": Kernel(_SIMPLE, _CHUNKED),
        "fused_chunk_simple_gla": Kernel(_SIMPLE, _CHUNKED),
        "fused_recurrent_simple_gla": Kernel(_SIMPLE, _RECURRENT),
    },
    "fla.ops.linear_attn": {
        "chunk_linear_attn": Kernel({None: "linear"}, _CHUNKED),
        "fused_chunk_linear_attn": Kernel({None: "linear"}, _CHUNKED),
        "fused_recurrent_linear_attn": Kernel({None: "linear"}, _RECURRENT),
    },
    "fla.ops.retention": {
        "chunk_retention": Kernel({None: "retention"}, _CHUNKED),
        "fused_chunk_retention": Kernel({None: "retention"}, _CHUNKED),
        "fused_recurrent_retention": Kernel({None: "retention"}, _RECURRENT),
    },
    "fla.ops.delta_rule": {
        "chunk_delta_rule": Kernel({None: "delta"}, _CHUNKED),
        "fused_recurrent_delta_rule": Kernel({None: "delta"}, _RECURRENT),
    },
    "fla.ops.gated_delta_rule": {
        "chunk_gated_delta_rule": Kernel({"g": "gated-delta"}, _CHUNKED),
        "fused_recurrent_gated_delta_rule": Kernel(_GATED, _RECURRENT),
    },
    "fla.ops.kda": {
        "chunk_kda": Kernel({"g": "kda"}, _CHUNKED),
        "fused_recurrent_kda": Kernel({"g": "kda"}, _RECURRENT),
    },
    "mamba_ssm.ops.triton.ssd_combined": {
        "mamba_chunk_scan_combined": Kernel({None: "mamba2"}, _CHUNKED, "mamba-scan"),
    },
    "mamba_ssm.ops.triton.selective_state_update": {
        "selective_state_update": Kernel({None: "mamba2"}, _RECURRENT, "mamba-step"),
    },
}
