"""A call of a kernel as a problem of `audit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ...arguments import FEATURES, FeatureArguments, ProblemArguments, ScoreArguments
from .arguments import Take


@dataclass(frozen=True)
class KernelProblem:
    """The tensors of a call as they lie, and its settings."""

    q: Tensor
    k: Tensor
    v: Tensor
    score: ScoreArguments
    layout: str
    #: Further tensors by the names of `audit`.
    features: Mapping[str, Tensor]
    #: Where gradients come from: of what of the problem, by argument, and how it is taken of that.
    sources: Mapping[str, tuple[str, Take]]
    #: An output, or dO, as `audit` has it.
    take_output: Take
    #: Further words of `flashproof audit`.
    options: tuple[str, ...] = ()

    def words(self) -> str:
        """The problem in a few words."""
        tensors = {"q": self.q, "k": self.k, "v": self.v, **self.features}
        found = [f"{name} {list(one.shape)}" for name, one in tensors.items()]
        for name, value in self.score.items():
            if value is True:
                found.append(name)
            elif not (value is None or value is False):
                found.append(f"{name} {value}")
        return f"{str(self.q.dtype).removeprefix('torch.')} {', '.join(found)}"

    def cloned(self) -> KernelProblem:
        """The same with tensors of its own, for what follows may change them."""
        own = {name: getattr(self, name).clone() for name in ("q", "k", "v")}
        features = {name: one.clone() for name, one in self.features.items()}
        return replace(self, **own, features=features)

    def arguments(self) -> ProblemArguments:
        """What `audit` takes besides Q, K, V and outputs."""
        found: dict[str, Any] = {**self.score, "layout": self.layout}
        found.update({name: one for name, one in self.features.items() if name in FEATURES})
        others = {name: one for name, one in self.features.items() if name not in FEATURES}
        if others:
            found["features"] = others
        return found  # type: ignore[return-value]

    def gradients(
        self, given: Tensor, found: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], list[str]]:
        """dO and the gradients of those that a backward pass gave, and of what others are left out."""
        judged = {"dout": self.take_output(given)}
        for name, (argument, take) in self.sources.items():
            if argument in found:
                judged[f"d{name}"] = take(found[argument])
        return judged, []

    def on_device(
        self, *, has_gradients: bool = False
    ) -> tuple[tuple[Tensor, Tensor, Tensor], FeatureArguments] | None:
        """Q, K and V for `audit_on_device`, and what it takes besides."""
        return (self.q, self.k, self.v), self.arguments()


def mask_from_first(
    queries: int, keys: int, window: tuple[int, int], device: torch.device
) -> Tensor:
    """[1, 1, queries, keys]: whether a query sees a key by a window that is aligned to the first of both; −1 has no end."""
    i = torch.arange(queries, device=device)[:, None]
    j = torch.arange(keys, device=device)[None]
    left, right = window
    seen = torch.ones(queries, keys, dtype=torch.bool, device=device)
    if left >= 0:
        seen &= j >= i - left
    if right >= 0:
        seen &= j <= i + right
    return seen[None, None]
