"""Records of sums that are kept side by side: added, cut and joined all together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import torch
from torch import Tensor

Record = TypeVar("Record", bound="Sums")


@dataclass(frozen=True)
class Sums:
    """A record whose members are tensors, the last axis of which counts the same things."""

    def mapped(self: Record, change: Callable[[Tensor], Tensor]) -> Record:
        """The record with every member changed."""
        return type(self)(*(change(getattr(self, one.name)) for one in fields(self)))

    def together(self) -> Tensor:
        """All members of one shape along a new first axis."""
        return torch.stack([getattr(self, one.name) for one in fields(self)])

    @classmethod
    def joined(cls: type[Record], parts: Sequence[Record]) -> Record:
        """All parts, one behind the other."""
        members = (one.name for one in fields(cls))
        return cls(*(torch.cat([getattr(part, name) for part in parts], -1) for name in members))
