"""What a problem has beside Q, K and V, a causal or window mask and a softcap: ``ProblemFeatures`` of
``src/problem/features.ts``, as far as the device judges it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .problem import Shape

Run = tuple[int, int, int, int]
"""A packed sequence: its first query, its queries, its first key, its keys."""


@dataclass(frozen=True)
class Features:
    """All of them may be left out. B, H, Hk, Sq and Sk are batch, heads, heads of K, queries and keys."""

    mask: Tensor | None = None
    """Booleans, true = visible, of sizes that broadcast to [B, H, Sq, Sk]."""
    bias: Tensor | None = None
    """Added to scores after the softcap, of such sizes; −∞ hides a key."""
    alibi_slopes: Tensor | None = None
    """[H] or [B, H]: scores get −slope·|i + Sk − Sq − j|."""
    sink: Tensor | None = None
    """[H]: a key without value, whose weight joins the row sum."""
    is_sink_in_lse: bool = True
    segments: tuple[Tensor, Tensor] | None = None
    """[Sq] and [Sk], or with B before them: a query sees the keys of its own segment."""
    prefix: int = 0
    """Keys that every query sees, whatever causal and window say."""
    factors: tuple[Tensor | None, Tensor | None, Tensor | None] = (None, None, None)
    """What q, k and v are multiplied by, fp32, of sizes that broadcast to [B, H or Hk, 1, 1]."""
    sequences: tuple[Run, ...] | None = None
    """Packed sequences, in order and without gaps: B is 1, and each is a problem of its own."""

    @cached_property
    def bias_hides(self) -> bool:
        """Whether a bias is −∞ anywhere."""
        return self.bias is not None and bool((self.bias == -torch.inf).any())

    @property
    def adds(self) -> bool:
        """Whether something is added to scores."""
        return self.bias is not None or self.alibi_slopes is not None

    @property
    def is_of_batches(self) -> bool:
        """Whether masks of batch entries may differ."""
        return any(x.dim() == 4 and x.shape[0] > 1 for x in self._hiding) or any(
            x.dim() > 1 for x in self.segments or ()
        )

    def groups_alike(self, shape: Shape) -> int:
        """How many heads of K, one behind the other, whose query heads see the same keys."""
        return shape.kv_heads if self.is_of_batches else shape.batch * shape.kv_heads

    @property
    def is_of_heads(self) -> bool:
        """Whether masks of heads may differ."""
        return any(x.dim() > 2 and x.shape[-3] > 1 for x in self._hiding)

    @property
    def _hiding(self) -> list[Tensor]:
        masks = [] if self.mask is None else [self.mask]
        return [*masks, self.bias] if self.bias is not None and self.bias_hides else masks

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors that there are, by name."""
        found: dict[str, Tensor | None] = {
            "mask": self.mask,
            "bias": self.bias,
            "alibi_slopes": self.alibi_slopes,
            "sink": self.sink,
            **dict(zip(("q_descale", "k_descale", "v_descale"), self.factors, strict=True)),
            **dict(zip(("q_segments", "k_segments"), self.segments or (), strict=False)),
        }
        return {name: x for name, x in found.items() if x is not None}

    @property
    def is_plain(self) -> bool:
        """Whether there are none."""
        return not self.tensors and self.prefix == 0 and self.sequences is None

    def of_places(
        self, places: Sequence[tuple[int, int]], groups: Sequence[tuple[int, int]], group: int
    ) -> Features:
        """Those of some heads, (batch entry, head), that become the heads of one entry, and of the heads whose
        groups of ``group`` have their keys.
        """

        def chosen(
            x: Tensor | None, of: Sequence[tuple[int, int]] = places, by: int = 1
        ) -> Tensor | None:
            if x is None or x.dim() < 3 or x.shape[:-2].numel() == 1:
                return x
            heads = x.shape[-3]
            numbers = [(batch if x.dim() > 3 and x.shape[0] > 1 else 0) * heads
                       + (head // by if heads > 1 else 0) for batch, head in of]  # fmt: skip
            return x.flatten(0, -3)[numbers].unsqueeze(0)

        q, k, v = self.factors
        slopes, sink, segments = self.alibi_slopes, self.sink, self.segments
        if segments is not None:
            entry = places[0][0]
            of_queries, of_keys = (x[entry] if x.dim() > 1 else x for x in segments)
            segments = of_queries, of_keys
        if slopes is not None:
            entries, heads = (list(x) for x in zip(*places, strict=True))
            slopes = slopes[heads] if slopes.dim() == 1 else slopes[entries, heads]
        if sink is not None:
            sink = sink[[head for _, head in places]]
        return replace(
            self,
            mask=chosen(self.mask),
            bias=chosen(self.bias),
            alibi_slopes=slopes,
            sink=sink,
            segments=segments,
            factors=(chosen(q), chosen(k, groups, group), chosen(v, groups, group)),
        )


def _of_rank_4(x: Tensor) -> Tensor:
    return x.reshape((1,) * (4 - x.dim()) + tuple(x.shape))


def of_head(x: Tensor, batch: int, head: int) -> Tensor:
    """What a tensor that broadcasts to [B, H, queries, keys] has for a head, [queries or 1, keys or 1]."""
    full = _of_rank_4(x)
    return full[batch if full.shape[0] > 1 else 0, head if full.shape[1] > 1 else 0]


def of_heads(x: Tensor, numbers: Sequence[int], heads: int) -> Tensor:
    """What a tensor that broadcasts to [B, H, queries, keys] has for some heads, counted over [B, H]: [heads,
    queries or 1, keys or 1].
    """
    full = _of_rank_4(x)
    places = torch.tensor(numbers, device=x.device)
    batch = places // heads if full.shape[0] > 1 else torch.zeros_like(places)
    head = places % heads if full.shape[1] > 1 else torch.zeros_like(places)
    return full[batch, head]
