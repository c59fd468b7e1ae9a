"""A call of `scaled_dot_product_attention` as a problem of attention."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from ..arguments import FeatureArguments, ProblemArguments


class NotJudgedError(ValueError):
    """A call that is not judged, with why in a clause."""


@dataclass(frozen=True)
class SdpaArguments:
    """The arguments of a call, by PyTorch's names."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that are there."""
        found = {
            "query": self.query,
            "key": self.key,
            "value": self.value,
            "attn_mask": self.attn_mask,
        }
        return {name: one for name, one in found.items() if one is not None}


@dataclass(frozen=True)
class Problem:
    """
    A call as [batch, heads, seqlen, dim], by the names of `audit`.

    PyTorch's sizes broadcast; `repeated` says of which tensors that repeats the batch or some of the heads, so that their
    gradients are sums that the call itself does not give.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None = None
    bias: Tensor | None = None
    scale: float | None = None
    #: Aligned to the first query and the first key, as PyTorch has it.
    causal: bool = False
    repeated: frozenset[str] = field(default_factory=frozenset)

    @property
    def options(self) -> tuple[str, ...]:
        """Further words of `flashproof audit`: none."""
        return ()

    @property
    def is_square(self) -> bool:
        """Whether there are as many queries as keys: then both ways to align a causal mask are one."""
        return bool(self.q.shape[2] == self.k.shape[2])

    def cloned(self) -> Problem:
        """The same with tensors of its own, for what follows may change them."""
        own = {name: getattr(self, name) for name in ("q", "k", "v", "mask", "bias")}
        return replace(self, **{name: one.clone() for name, one in own.items() if one is not None})

    def outputs(self, out: Tensor) -> dict[str, Tensor]:
        """Q, K, V and the output by the names of `audit`. NotJudgedError for an output of another format."""
        if out.dtype != self.q.dtype:
            raise NotJudgedError(f"the output is {out.dtype} of inputs in {self.q.dtype}")
        return {"q": self.q, "k": self.k, "v": self.v, "out": as_posed(out.detach(), self)}

    def gradients(
        self, given: Tensor, found: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], list[str]]:
        """dO and gradients in the problem's sizes, of those that a backward pass gave; and why others are left out."""
        judged, reasons = {"dout": as_posed(given, self)}, []
        shapes = {"dq": self.q, "dk": self.k, "dv": self.v, "dbias": self.bias}
        for name, grad in found.items():
            like = shapes[name]
            if name[1:] in self.repeated:
                reasons.append(f"{name} is a sum over what {name[1:].upper()} is repeated for")
            elif like is None or grad.numel() != like.numel():
                reasons.append(f"{name} has {list(grad.shape)}")
            else:
                judged[name] = grad.reshape(like.shape)
        return judged, reasons

    def arguments(self) -> ProblemArguments:
        """What `audit` takes besides Q, K and V; its causal mask is aligned to the last query and the last key."""
        mask = self.mask
        if self.causal and not self.is_square:
            size = (1, 1, self.q.shape[2], self.k.shape[2])
            mask = torch.ones(size, dtype=torch.bool, device=self.q.device).tril()
        causal = self.causal and self.is_square
        return {"scale": self.scale, "causal": causal, "mask": mask, "bias": self.bias}

    def on_device(
        self, *, has_gradients: bool = False
    ) -> tuple[tuple[Tensor, Tensor, Tensor], FeatureArguments] | None:
        """Q, K and V for `audit_on_device`, and what it takes besides; None where it takes no such problem."""
        queries, keys = self.q.shape[2], self.k.shape[2]
        score: FeatureArguments = {"scale": self.scale, "mask": self.mask, "bias": self.bias}
        if not self.causal or queries == keys:
            return (self.q, self.k, self.v), {**score, "causal": self.causal}
        # Causal rows go on from the last query and the last key there, and from the first ones here.
        if self.bias is not None or has_gradients and queries < keys:
            return (self.q, self.k, self.v), {**score, "mask": self.arguments()["mask"]}
        if queries > keys:
            return (self.q, self.k, self.v), {"scale": self.scale, "window": (-1, queries - keys)}
        # No query sees a key beyond the last query's. They are left out there, as their gradients may not be.
        seen = self.k[:, :, :queries], self.v[:, :, :queries]
        return (self.q, *seen), {"scale": self.scale, "causal": True}

    def words(self) -> str:
        """The problem in a few words."""
        names = {"q": self.q, "k": self.k, "v": self.v, "mask": self.mask, "bias": self.bias}
        found = [f"{name} {list(one.shape)}" for name, one in names.items() if one is not None]
        causal = ["causal"] if self.causal else []
        return f"{str(self.q.dtype).removeprefix('torch.')} {', '.join(found + causal)}"


def check_call(call: SdpaArguments) -> None:
    """NotJudgedError for a call that can be no problem here, whatever its sizes."""
    if call.dropout_p > 0:
        raise NotJudgedError(
            f"dropout_p is {call.dropout_p}, and which weights it dropped is not known"
        )
    for name, one in call.tensors().items():
        check_tensor(name, one)


def pose(call: SdpaArguments) -> Problem:
    """The problem of a call that PyTorch has carried out. NotJudgedError for what is none here."""
    q, k, v = (one.detach() for one in (call.query, call.key, call.value))
    heads = _heads(q), _heads(k), _heads(v)
    if call.enable_gqa and heads[1] != heads[2]:
        raise NotJudgedError(f"K has {heads[1]} heads and V {heads[2]}")
    # One head of K and V that all queries read is a group, whatever it is called.
    is_grouped = call.enable_gqa or heads[1] == heads[2] == 1
    batch = torch.broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3])
    common = max(heads)
    sizes = heads if is_grouped else (common, common, common)
    posed, repeated = {}, set()
    for name, one, own in zip("qkv", (q, k, v), sizes):
        rows, dim = one.shape[-2:]
        full = one.expand(*batch, own, rows, dim)
        if full.numel() != one.numel():
            repeated.add(name)
        posed[name] = full.reshape(math.prod(batch), own, rows, dim)
    mask, bias = None, None
    if call.attn_mask is not None:
        size = (*batch, sizes[0], q.shape[-2], k.shape[-2])
        given = _mask(call.attn_mask.detach(), size)
        mask, bias = (given, None) if given.dtype == torch.bool else (None, given)
    scale = None if call.scale is None else float(call.scale)
    return Problem(**posed, mask=mask, bias=bias, scale=scale, causal=call.is_causal,
                   repeated=frozenset(repeated))  # fmt: skip


def _heads(x: Tensor) -> int:
    return int(x.shape[-3]) if x.dim() > 2 else 1


def check_tensor(name: str, x: Any) -> None:
    """NotJudgedError for what is no plain tensor with elements."""
    kinds = (torch.Tensor, torch.nn.Parameter)
    if type(x) not in kinds:
        raise NotJudgedError(f"{name} is a {type(x).__name__}, no plain tensor")
    if x.is_nested or x.layout != torch.strided:
        raise NotJudgedError(f"{name} is a nested or sparse tensor")
    if x.device.type == "meta":
        raise NotJudgedError(f"{name} has no elements: its device is meta")
    if x.numel() == 0:
        raise NotJudgedError(f"{name} is empty")


def _mask(given: Tensor, size: tuple[int, ...]) -> Tensor:
    """A mask as [batch, heads, queries, keys], sizes of 1 as they are."""
    if len(size) <= 4:
        return given.reshape((1,) * (4 - given.dim()) + tuple(given.shape))
    return given.expand(size).reshape(-1, *size[-3:])


def as_posed(x: Tensor, problem: Problem) -> Tensor:
    """An output or its gradient as [batch, heads, queries, dim]."""
    return x.reshape(*problem.q.shape[:3], problem.v.shape[3])
