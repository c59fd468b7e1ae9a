"""What is judged: a problem of attention whose tensors lie on a device, and what a kernel gave for
it.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from .features import Features
from .formats import FORMATS


@dataclass(frozen=True)
class AttentionProblem:
    """A problem as the kernel read it.

    q is [batch, heads, seqlen_q, dim], k [batch, kv_heads, seqlen_k, dim], v [batch, kv_heads,
    seqlen_k, v dim]; the batch may be left out. Query head h reads head h // (heads // kv_heads)
    of K and V. Causal and window masks are aligned to the last query and the last key; a window is
    (left, right), −1 for no limit. A softcap c makes c·tanh(score / c) of a score.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    scale: float | None = None
    """What q·k is multiplied by; None for 1/√dim."""
    causal: bool = False
    window: tuple[int, int] | None = None
    softcap: float | None = None
    features: Features = field(default_factory=Features)

    @property
    def used_scale(self) -> float:
        """The scale in use."""
        return 1 / math.sqrt(max(self.q.shape[-1], 1)) if self.scale is None else self.scale


@dataclass(frozen=True)
class KernelOutputs:
    """What a kernel gave: out is [batch, heads, seqlen_q, v dim], lse [batch, heads, seqlen_q],
    natural logarithms.
    """

    out: Tensor
    lse: Tensor | None = None


@dataclass(frozen=True)
class Shape:
    """Sizes of a problem, named as ``ProblemShape`` of the library has them."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    qk_dim: int
    v_dim: int


def _with_batch(x: Tensor) -> Tensor:
    return x.unsqueeze(0) if x.dim() == 3 else x


def batched(problem: AttentionProblem) -> AttentionProblem:
    """The problem with a batch axis. Raises ValueError for tensors of another rank than 3 or 4."""
    for name, x in (("q", problem.q), ("k", problem.k), ("v", problem.v)):
        if x.dim() not in (3, 4):
            raise ValueError(
                f"{name} has shape {list(x.shape)}; "
                "give it [heads, seqlen, dim] or [batch, heads, seqlen, dim]"
            )
    # Nothing that is judged takes part in gradients.
    q, k, v = (_with_batch(x.detach()) for x in (problem.q, problem.k, problem.v))
    return replace(problem, q=q, k=k, v=v)


def shape_of(problem: AttentionProblem) -> Shape:
    """The sizes of a problem with a batch axis. Raises ValueError where they, or the settings, do
    not fit together.
    """
    q, k, v = problem.q, problem.k, problem.v
    shape = Shape(
        q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3]
    )
    if k.shape[0] != shape.batch or v.shape[0] != shape.batch:
        raise ValueError(
            f"q, k and v have batch {shape.batch}, {k.shape[0]} and {v.shape[0]}; make them equal"
        )
    if k.shape[3] != shape.qk_dim:
        raise ValueError(f"q has dim {shape.qk_dim} but k has dim {k.shape[3]}; make them equal")
    if v.shape[1] != shape.kv_heads or v.shape[2] != shape.keys:
        raise ValueError(
            f"k is {list(k.shape)} but v is {list(v.shape)}; make heads and keys equal"
        )
    if shape.heads > 0 and (shape.kv_heads == 0 or shape.heads % shape.kv_heads != 0):
        raise ValueError(
            f"q has {shape.heads} heads, k has {shape.kv_heads}; "
            "the first must be a multiple of the second"
        )
    if not math.isfinite(problem.used_scale):
        raise ValueError(f"scale is {problem.scale}; give a finite number")
    if problem.softcap is not None and not (problem.softcap > 0 and math.isfinite(problem.softcap)):
        raise ValueError(f"softcap is {problem.softcap}; give a positive finite number, or None")
    if problem.window is not None and min(problem.window) < -1:
        raise ValueError(
            f"window is {problem.window}; give whole numbers of keys, or -1 for no limit"
        )
    return shape


def fitted(outputs: KernelOutputs, shape: Shape) -> KernelOutputs:
    """The outputs as [batch, heads, queries(, v dim)]. Raises ValueError for tensors of other
    sizes.
    """
    vectors = (shape.batch, shape.heads, shape.queries, shape.v_dim)
    out = _with_batch(outputs.out.detach())
    if tuple(out.shape) != vectors:
        raise ValueError(
            f"out has shape {list(outputs.out.shape)}; the problem asks for {list(vectors)}"
        )
    if outputs.lse is None:
        return KernelOutputs(out)
    lse = outputs.lse.detach()
    # Of rows that are padded, as CUTLASS has them, the command line drops the padding.
    return KernelOutputs(
        out, lse.reshape(vectors[:3]) if lse.numel() == math.prod(vectors[:3]) else lse
    )


_EXACT = ("sink", "alibi_slopes", "q_segments", "k_segments")
"""Features whose sizes do not broadcast."""


def why_features_not_covered(problem: AttentionProblem) -> str | None:
    """What of a problem's features keeps it from being judged on its device, in a clause; None where nothing
    does.
    """
    features, shape = problem.features, shape_of(problem)
    whole = (shape.batch, shape.heads, shape.queries, shape.keys)
    sizes = {
        **dict.fromkeys(("mask", "bias"), whole),
        "sink": (shape.heads,),
        "q_descale": (shape.batch, shape.heads, shape.queries, 1),
        **dict.fromkeys(("k_descale", "v_descale"), (shape.batch, shape.kv_heads, shape.keys, 1)),
        "alibi_slopes": (shape.batch, shape.heads),
        "q_segments": (shape.batch, shape.queries),
        "k_segments": (shape.batch, shape.keys),
    }
    for name, x in features.tensors.items():
        if x.device != problem.q.device:
            return f"{name} lies on {x.device}, and q on {problem.q.device}"
        if not _broadcasts(x, sizes[name], exactly=name in _EXACT):
            return f"{name} has shape {list(x.shape)}"
        if name == "mask":
            if x.dtype != torch.bool:
                return "the mask has other elements than booleans"
        elif name in ("q_segments", "k_segments"):
            if x.dtype.is_floating_point or x.dtype == torch.bool:
                return f"{name} has other elements than whole numbers"
        else:
            if x.dtype not in FORMATS:
                return f"{name} is {str(x.dtype).removeprefix('torch.')}"
            # A bias and a sink of −∞ are none.
            least = -math.inf if name in ("bias", "sink") else -1e300
            if not bool(((x.float() < math.inf) & (x.float() >= least)).all()):
                return f"{name} holds infinities or NaNs"
            if name.endswith("_descale") and not bool((x > 0).all()):
                return f"{name} holds a factor that is not positive"
    left = -1 if problem.window is None else problem.window[0]
    if features.sequences is not None and features.prefix > 0 and left >= 0:
        return "sequences have a prefix and a window"
    return None


def _broadcasts(x: Tensor, sizes: tuple[int, ...], *, exactly: bool) -> bool:
    """Whether a tensor's sizes are the last of these, or 1 unless exactly they are asked for."""
    if not 0 < x.dim() <= len(sizes):
        return False
    own = sizes[len(sizes) - x.dim() :]
    return all(a == b or (a == 1 and not exactly) for a, b in zip(x.shape, own, strict=True))


def why_not_covered(problem: AttentionProblem, outputs: KernelOutputs) -> str | None:
    """What keeps a problem from being judged on its device, in a clause; None where nothing does.

    Nothing else is judged by halves: such a problem is the command line's.
    """
    tensors = {
        "q": problem.q,
        "k": problem.k,
        "v": problem.v,
        "out": outputs.out,
        "lse": outputs.lse,
    }
    for name, x in tensors.items():
        if x is None:
            continue
        if x.dtype not in FORMATS:
            dtype = str(x.dtype).removeprefix("torch.")
            return f"{name} is {dtype}, which is not judged on the device"
        if x.device != problem.q.device:
            return f"{name} lies on {x.device}, and q on {problem.q.device}"
        if x.numel() == 0:
            return f"{name} has no elements"
    if outputs.lse is not None and outputs.lse.shape != outputs.out.shape[:3]:
        return f"lse has shape {list(outputs.lse.shape)}"
    if problem.k.dtype != problem.q.dtype:
        return "q and k have different formats"
    reason = why_features_not_covered(problem)
    if reason is not None:
        return reason
    for name, x in tensors.items():
        if x is None:
            continue
        # Of 8-bit formats PyTorch has few operations.
        ends = torch.stack(x.float().aminmax())
        # The LSE of a row without keys is −∞.
        is_number = torch.isfinite(ends) | (ends == -math.inf) & (name == "lse")
        if not bool(is_number.all()):
            return f"{name} holds infinities or NaNs"
    return None


_EMULATION = ("CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT")
"""Settings of cuBLAS by which products of fp64 matrices are made of shorter ones, of which Theorem
13 says nothing.
"""


def why_not_fp64(problem: AttentionProblem) -> str | None:
    """Why fp64 on the problem's device is not IEEE 754's, in a clause; None where it is."""
    if problem.q.device.type == "mps":
        return "its device has no fp64"
    if problem.q.device.type == "cuda" and any(
        os.environ.get(name, "0") not in ("", "0") for name in _EMULATION
    ):
        return "fp64 is emulated by cuBLAS"
    return None
