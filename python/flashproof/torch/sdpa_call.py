"""A call of `scaled_dot_product_attention`, carried out while its gradients are watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from ..dump import Premises
from .problem import Problem, SdpaArguments, pose
from .read_call import keywords

#: Gradients by the tensor that each is of, and that tensor by PyTorch's name.
GRADIENTS = {"query": "dq", "key": "dk", "value": "dv", "attn_mask": "dbias"}


@dataclass(frozen=True)
class SdpaCall:
    """A call that can be judged."""

    function: Callable[..., Any]
    arguments: SdpaArguments
    premises: Premises | None
    results_not_judged: str | None = None
    advice: Mapping[str, str] = field(default_factory=dict)
    name = "torch.nn.functional.scaled_dot_product_attention"

    def differentiable(self) -> Mapping[str, Tensor]:
        """The tensors whose gradients are to come, by those gradients' names."""
        found = self.arguments.tensors().items()
        return {GRADIENTS[name]: one for name, one in found if one.requires_grad}

    def run(self, views: Mapping[str, Tensor]) -> Tensor:
        """What the function gives, with some tensors replaced, by their gradients' names."""
        tensors = {name: views[own] for name, own in GRADIENTS.items() if own in views}
        made: Tensor = self.function(**keywords(replace(self.arguments, **tensors)))
        return made

    def output(self, made: Tensor) -> Tensor:
        """The output, of what the function gave."""
        return made

    def viewed(self, made: Tensor) -> Tensor:
        """What the caller gets: the same, for the output's own node meets nothing but what comes to the caller."""
        return made

    def posed(self, made: Tensor) -> tuple[Problem, dict[str, Tensor]]:
        """The problem, and Q, K, V and the output by the names of `audit`; NotJudgedError for what is none."""
        problem = pose(self.arguments)
        return problem, problem.outputs(made)


def chosen_premises(call: SdpaArguments) -> Premises:
    """How the backend computes that PyTorch chooses for a call: its math backend in the inputs' format, or a fused kernel."""
    choose = getattr(torch, "_fused_sdp_choice", None)
    if choose is None:
        return "fused"
    beside = {"scale": call.scale, "enable_gqa": call.enable_gqa}
    mask = call.attn_mask
    choice = choose(
        call.query, call.key, call.value, mask, call.dropout_p, call.is_causal, **beside
    )
    if choice != torch.nn.attention.SDPBackend.MATH.value:
        return "fused"
    # Of short formats it makes fp32 first, unless it was told not to.
    is_short = call.query.dtype in (torch.bfloat16, torch.float16)
    may_reduce = getattr(torch.backends.cuda, "fp16_bf16_reduction_math_sdp_allowed", None)
    return "fused" if is_short and may_reduce is not None and not may_reduce() else "torch-math"
