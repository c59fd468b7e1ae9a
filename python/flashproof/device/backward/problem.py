"""What a kernel's backward pass gave, and whether the device judges it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from ..formats import FORMATS
from ..problem import AttentionProblem, Shape

_INPUTS = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class KernelGradients:
    """Gradients of the shapes of out, q, k and v: dout, which the backward pass read, and what it
    gave. Those of k and v are sums over the query heads of a group.
    """

    dout: Tensor
    dq: Tensor | None = None
    dk: Tensor | None = None
    dv: Tensor | None = None


def fitted_gradients(given: KernelGradients, shape: Shape) -> KernelGradients:
    """The gradients with a batch. Raises ValueError for tensors of other sizes."""
    sizes = {
        "dout": (shape.batch, shape.heads, shape.queries, shape.v_dim),
        "dq": (shape.batch, shape.heads, shape.queries, shape.qk_dim),
        "dk": (shape.batch, shape.kv_heads, shape.keys, shape.qk_dim),
        "dv": (shape.batch, shape.kv_heads, shape.keys, shape.v_dim),
    }

    def fit(name: str) -> Tensor | None:
        x: Tensor | None = getattr(given, name)
        if x is None:
            return None
        fitting = x.detach().unsqueeze(0) if x.dim() == 3 else x.detach()
        if tuple(fitting.shape) != sizes[name]:
            raise ValueError(
                f"{name} has shape {list(x.shape)}; the problem asks for {list(sizes[name])}"
            )
        return fitting

    dout = fit("dout")
    if dout is None:
        raise ValueError("dout, the gradient of the output, is not given")
    return KernelGradients(dout, fit("dq"), fit("dk"), fit("dv"))


def _has_equal_rows(x: Tensor) -> bool:
    """Whether two rows of a head are equal, by a number of each: ``countAlike``."""
    places = torch.arange(1, x.shape[-1] + 1, dtype=torch.float64, device=x.device)
    numbers = (x.double() * places.sin()).sum(-1).sort(-1).values
    return bool((numbers[..., 1:] == numbers[..., :-1]).any())


def why_gradients_not_covered(
    problem: AttentionProblem, given: KernelGradients, lse: Tensor | None
) -> str | None:
    """What keeps gradients from being judged on their device, in a clause; None where nothing does.
    The problem itself is covered. ``lse`` is what the kernel's forward stored.
    """
    features = problem.features
    if features.adds or features.sink is not None or any(x is not None for x in features.factors):
        return "gradients beside a bias, ALiBi, a sink or factors are not judged on the device"
    if features.is_of_heads:
        return "gradients under a mask of each head are not judged on the device"
    if problem.softcap is not None:
        return "gradients under a softcap are not judged on the device"
    if not {problem.q.dtype, problem.v.dtype} <= set(_INPUTS) or problem.q.dtype != problem.v.dtype:
        return "gradients are judged on the device where q, k and v are all of one 16-bit format"
    if lse is not None and lse.dtype != torch.float32:
        return "gradients are judged on the device where the LSE is stored in fp32"
    scale = abs(problem.used_scale)
    if scale >= 1 and math.log2(scale).is_integer():
        return f"the scale is {problem.used_scale:g}, by which roundings of dS are known"
    tensors = {one.name: getattr(given, one.name) for one in fields(given)}
    missing = [name for name, x in tensors.items() if x is None]
    if missing:
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not given"
    for name, x in tensors.items():
        if x.dtype not in FORMATS:
            dtype = str(x.dtype).removeprefix("torch.")
            return f"{name} is {dtype}, which is not judged on the device"
        if x.device != problem.q.device:
            return f"{name} lies on {x.device}, and q on {problem.q.device}"
        if not bool(torch.isfinite(x.float()).all()):
            return f"{name} holds infinities or NaNs"
    formats = {x.dtype for name, x in tensors.items() if name != "dout"}
    if len(formats) > 1 or not formats <= {*_INPUTS, torch.float32}:
        return "gradients are judged on the device where they have one format of 16 or 32 bits"
    rows = {"q": problem.q, "k": problem.k, "v": problem.v, "dout": given.dout}
    for name, x in rows.items():
        if _has_equal_rows(x):
            return f"rows of {name} are equal, whose errors are alike"
    return None
