"""Which keys each query sees: causal and window masks, aligned to the last query and the last key.

A query sees one range of keys at most, in every head the same: ``diagonalRange`` of
``src/problem/mask.ts``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .formats import exponent_of
from .problem import AttentionProblem, Shape

GROUP_ROWS = 64
"""Rows that the command line bounds together, from multiples of this on."""


@dataclass(frozen=True)
class VisibleKeys:
    """Of each query the keys from ``begin`` up to ``end``, int64 [queries]; none where both are
    equal.
    """

    begin: Tensor
    end: Tensor

    def rows(self, first: int, count: int) -> VisibleKeys:
        """Those of some queries."""
        return VisibleKeys(self.begin[first : first + count], self.end[first : first + count])

    @property
    def count(self) -> Tensor:
        """How many keys each query sees, int64 [queries]."""
        return self.end - self.begin


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
    return VisibleKeys(torch.minimum(begin, end), end)


class RangeMaxima:
    """The largest of some numbers of keys over any range of keys, of two overlapping powers of two
    each.
    """

    def __init__(self, values: Tensor) -> None:
        """Of values [keys], at least 0."""
        levels = [values]
        step = 1
        while 2 * step <= values.shape[0]:
            last = levels[-1]
            longer = torch.maximum(last[:-step], last[step:])
            levels.append(torch.nn.functional.pad(longer, (0, last.shape[0] - longer.shape[0])))
            step *= 2
        self._levels = torch.stack(levels)

    def over(self, keys: VisibleKeys) -> Tensor:
        """The largest in each range [queries]; 0 for an empty one."""
        count = keys.count.clamp(min=1)
        level = exponent_of(count.double())
        last = self._levels.shape[1] - 1
        begin = keys.begin.clamp(max=last)
        end = (keys.end - (1 << level)).clamp(min=0, max=last)
        largest = torch.maximum(self._levels[level, begin], self._levels[level, end])
        return torch.where(keys.count > 0, largest, 0.0)
