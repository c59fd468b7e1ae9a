"""Masks that hide keys one by one: ``mask``, a bias of −∞, segments, blocks, a prefix beside a window.

They are read a block of queries and keys at a time: nothing of [queries, keys] is made that the
caller has not made already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .features import of_head
from .problem import AttentionProblem, Shape

Part = Callable[[slice, slice], Tensor]
"""Of some queries and keys whether one sees the other, [queries or 1, keys or 1]."""


@dataclass(frozen=True)
class Holes:
    """Which keys are seen by all of some masks."""

    parts: tuple[Part, ...]
    keys: int
    first_row: int = 0
    first_key: int = 0

    def after(self, row: int, key: int) -> Holes:
        """The same, whose queries and keys are counted from these on."""
        return replace(self, first_row=self.first_row + row, first_key=self.first_key + key)

    def visible(self, rows: slice, keys: slice) -> Tensor:
        """Whether queries see keys, [queries, keys]."""
        of_rows = slice(rows.start + self.first_row, rows.stop + self.first_row)
        of_keys = slice(keys.start + self.first_key, keys.stop + self.first_key)
        found = self.parts[0](of_rows, of_keys)
        for part in self.parts[1:]:
            found = found & part(of_rows, of_keys)
        return found.expand(rows.stop - rows.start, keys.stop - keys.start)


def seen_between(begin: Tensor, end: Tensor, place: Tensor) -> Tensor:
    """Which keys, numbers [keys], lie in ranges [queries]: [queries, keys]."""
    return (place >= begin[:, None]) & (place < end[:, None])


def visible_parts(problem: AttentionProblem, shape: Shape, head: int) -> list[Part]:
    """The masks of a head, counted over [batch, heads], besides causal and window masks and a prefix."""
    features = problem.features
    batch, number = divmod(head, shape.heads)
    parts: list[Part] = []
    if features.mask is not None:
        parts.append(_cut(of_head(features.mask, batch, number)))
    if features.bias is not None and features.bias_hides:
        bias = _cut(of_head(features.bias, batch, number))
        parts.append(lambda rows, keys: bias(rows, keys) != -torch.inf)
    if features.segments is not None:
        of_queries, of_keys = (x if x.dim() == 1 else x[batch] for x in features.segments)
        parts.append(lambda rows, keys: of_queries[rows, None] == of_keys[None, keys])
    return parts


def _cut(mask: Tensor) -> Part:
    """A mask [queries or 1, keys or 1]."""

    def part(rows: slice, keys: slice) -> Tensor:
        return mask[rows if mask.shape[0] > 1 else slice(None)][
            :, keys if mask.shape[1] > 1 else slice(None)
        ]

    return part
