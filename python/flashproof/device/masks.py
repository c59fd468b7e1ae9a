"""Which keys each query sees: causal and window masks, aligned to the last query and the last key.

A query sees one range of keys at most, in every head the same: ``diagonalRange`` of
``src/problem/mask.ts``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .formats import exponent_of
from .problem import AttentionProblem, Shape
from .selection import kept_where

GROUP_ROWS = 64
"""Rows that the command line bounds together, from multiples of this on."""
_NOTHING = 2**40
"""Behind every key."""


@dataclass(frozen=True)
class VisibleKeys:
    """Of each query the keys from ``begin`` up to ``end``, int64 [queries]; none where both are
    equal.
    """

    begin: Tensor
    end: Tensor
    may_begin_late: bool = True
    """Whether some may not see the first key of all."""

    def rows(self, first: int, count: int) -> VisibleKeys:
        """Those of some queries."""
        rows = slice(first, first + count)
        return replace(self, begin=self.begin[rows], end=self.end[rows])

    @property
    def count(self) -> Tensor:
        """How many keys each query sees, int64 [queries]."""
        return self.end - self.begin

    def repeated(self, heads: int) -> VisibleKeys:
        """The same of so many heads, one behind the other."""
        return replace(self, begin=self.begin.repeat(heads), end=self.end.repeat(heads))

    def after(self, first_key: int) -> VisibleKeys:
        """The same, counted from a key on that no query sees one before."""
        begin, end = ((x - first_key).clamp(min=0) for x in (self.begin, self.end))
        return replace(self, begin=begin, end=end)

    def of_groups(self) -> VisibleKeys:
        """Of each query the keys that any query of its group sees, from the first to the last."""
        queries = self.begin.shape[0]
        padding = -queries % GROUP_ROWS
        seen = self.count > 0
        begin = self.begin.masked_fill(~seen, _NOTHING)
        end = self.end.masked_fill(~seen, 0)
        begin = torch.nn.functional.pad(begin, (0, padding), value=_NOTHING)
        begin = begin.view(-1, GROUP_ROWS).amin(1)
        end = torch.nn.functional.pad(end, (0, padding)).view(-1, GROUP_ROWS).amax(1)
        groups = torch.arange(queries, device=begin.device) // GROUP_ROWS
        return replace(self, begin=torch.minimum(begin, end)[groups], end=end[groups])


def visible_keys(problem: AttentionProblem, shape: Shape, device: torch.device) -> VisibleKeys:
    """The keys that each query of the problem sees."""
    diagonal = torch.arange(shape.queries, device=device) + (shape.keys - shape.queries)
    begin = torch.zeros_like(diagonal)
    end = torch.full_like(diagonal, shape.keys)
    left, right = problem.window if problem.window is not None else (-1, -1)
    if problem.causal:
        end = torch.minimum(end, diagonal + 1)
    if right >= 0:
        end = torch.minimum(end, diagonal + right + 1)
    if left >= 0:
        begin = torch.maximum(begin, diagonal - left)
    end = end.clamp(min=0)
    return VisibleKeys(torch.minimum(begin, end), end, left >= 0)


def hidden_keys(seen: VisibleKeys, first_key: int, keys: int) -> Tensor | None:
    """Where queries do not see one of so many keys, [queries, keys]; None where all see all."""
    place = torch.arange(first_key, first_key + keys, device=seen.begin.device)
    if not bool(((seen.begin > first_key) | (seen.end < first_key + keys)).any()):
        return None
    return (place < seen.begin[:, None]) | (place >= seen.end[:, None])


class RangeMaxima:
    """The largest of some numbers of keys over any range of keys, of two overlapping powers of two
    each.
    """

    def __init__(self, values: Tensor) -> None:
        """Of values [..., keys], at least 0."""
        levels = [values]
        step, keys = 1, values.shape[-1]
        while 2 * step <= keys:
            last = levels[-1]
            longer = torch.maximum(last[..., :-step], last[..., step:])
            levels.append(torch.nn.functional.pad(longer, (0, keys - longer.shape[-1])))
            step *= 2
        self._levels = torch.stack(levels)

    def over(self, keys: VisibleKeys) -> Tensor:
        """The largest in each range [..., queries]; 0 for an empty one."""
        count = keys.count.clamp(min=1)
        level = exponent_of(count.double())
        last = self._levels.shape[-1] - 1
        begin = keys.begin.clamp(max=last)
        end = (keys.end - (1 << level)).clamp(min=0, max=last)
        levels = self._levels.movedim(-1, 1)
        largest = torch.maximum(levels[level, begin], levels[level, end]).movedim(0, -1)
        return kept_where(keys.count > 0, largest)
