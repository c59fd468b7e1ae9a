"""Which keys each query sees: causal and window masks, aligned to the last query and the last key of
its sequence, and what further masks leave of these.

A query sees keys from a first to a last one, most often all between them. ``problemMask`` of
``src/problem/masks/mask.ts`` is the law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .formats import exponent_of
from .holes import Holes, Part, seen_between, visible_parts
from .places import GROUP_ROWS, row_places
from .problem import AttentionProblem, Shape
from .selection import kept_where, zero_where

_NOTHING = 2**40
"""Behind every key."""
_SCANNED = 2**24
"""Pairs of a query and a key that are looked at together."""


@dataclass(frozen=True)
class VisibleKeys:
    """Of each query the keys from ``begin`` up to ``end``, int64 [queries], but for holes; none where
    both are equal.
    """

    begin: Tensor
    end: Tensor
    may_begin_late: bool = True
    """Whether some may not see the first key of all."""
    groups: tuple[Tensor, Tensor] | None = None
    """Of each query the first and the last key that any query of its group sees; None where groups
    begin at multiples of ``GROUP_ROWS``.
    """
    holes: Holes | None = None
    """Keys between them that are not seen."""
    seen: Tensor | None = None
    """How many keys each query sees, where there are holes."""

    def rows(self, first: int, count: int) -> VisibleKeys:
        """Those of some queries."""
        return self._mapped(slice(first, first + count)).with_holes_from(first, 0)

    def _mapped(self, rows: slice) -> VisibleKeys:
        groups = None if self.groups is None else (self.groups[0][rows], self.groups[1][rows])
        seen = None if self.seen is None else self.seen[rows]
        return replace(self, begin=self.begin[rows], end=self.end[rows], groups=groups, seen=seen)

    def with_holes_from(self, row: int, key: int) -> VisibleKeys:
        """The same, whose first query and key are those of the holes."""
        return self if self.holes is None else replace(self, holes=self.holes.after(row, key))

    @property
    def count(self) -> Tensor:
        """How many keys each query sees, int64 [queries]."""
        return self.end - self.begin if self.seen is None else self.seen

    def repeated(self, heads: int) -> VisibleKeys:
        """The ranges and counts of so many heads, one behind the other, without what is between."""
        seen = None if self.seen is None else self.seen.repeat(heads)
        return VisibleKeys(
            self.begin.repeat(heads), self.end.repeat(heads), self.may_begin_late, seen=seen
        )

    def after(self, first_key: int) -> VisibleKeys:
        """The same, counted from a key on that no query sees one before."""

        def moved(x: Tensor) -> Tensor:
            return (x - first_key).clamp(min=0)

        groups = None if self.groups is None else (moved(self.groups[0]), moved(self.groups[1]))
        found = replace(self, begin=moved(self.begin), end=moved(self.end), groups=groups)
        return found.with_holes_from(0, first_key)

    def here(self) -> VisibleKeys:
        """The ranges alone, where they can be read without a wait for a GPU."""
        return VisibleKeys(self.begin.cpu(), self.end.cpu(), self.may_begin_late)

    def of_groups(self) -> VisibleKeys:
        """Of each query the keys that any query of its group sees, from the first to the last."""
        if self.groups is not None:
            return VisibleKeys(*self.groups, self.may_begin_late)
        queries = self.begin.shape[0]
        numbers = torch.arange(queries, device=self.begin.device) // GROUP_ROWS
        return VisibleKeys(*_spans(self, numbers, -(-queries // GROUP_ROWS)), self.may_begin_late)


def _spans(seen: VisibleKeys, groups: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Of each query the first and one behind the last key of its group, by the groups' numbers [queries], which
    are below ``count``.
    """
    sees = seen.count > 0
    begin = torch.full((count,), _NOTHING, dtype=torch.int64, device=groups.device)
    end = torch.zeros_like(begin)
    begin.scatter_reduce_(0, groups, seen.begin.masked_fill(~sees, _NOTHING), "amin")
    end.scatter_reduce_(0, groups, zero_where(~sees, seen.end), "amax")
    return torch.minimum(begin, end)[groups], end[groups]


def visible_keys(
    problem: AttentionProblem, shape: Shape, device: torch.device, head: int = 0
) -> VisibleKeys:
    """The keys that each query of the problem sees in a head, counted over [batch, heads]."""
    places = row_places(problem, shape, device)
    diagonal, first, behind = places.diagonal, places.first_key, places.behind
    begin, end = first, behind
    left, right = problem.window if problem.window is not None else (-1, -1)
    if problem.causal:
        end = torch.minimum(end, diagonal + 1)
    if right >= 0:
        end = torch.minimum(end, diagonal + right + 1)
    if left >= 0:
        begin = torch.maximum(begin, diagonal - left)
    end = torch.maximum(end, first)
    begin = torch.minimum(begin, end)
    parts = visible_parts(problem, shape, head)
    if problem.features.prefix > 0:
        before = torch.minimum(first + problem.features.prefix, behind)
        if bool(((begin > before) & (begin < end)).any()):
            parts.append(_either(before, begin, end))
        begin, end = first, torch.maximum(end, before)
    is_packed = problem.features.sequences is not None
    found = VisibleKeys(begin, end, left >= 0 or is_packed)
    if parts:
        found = _within(found, Holes(tuple(parts), shape.keys))
    if is_packed:
        found = replace(found, groups=_spans(found, places.groups, shape.queries))
    return found


def _either(before: Tensor, begin: Tensor, end: Tensor) -> Part:
    """Keys before one, or in a range, of each query [queries]."""

    def part(rows: slice, keys: slice) -> Tensor:
        place = torch.arange(keys.start, keys.stop, device=begin.device)
        return (place < before[rows, None]) | seen_between(begin[rows], end[rows], place)

    return part


def _within(seen: VisibleKeys, holes: Holes) -> VisibleKeys:
    """What further masks leave: ranges where that is all."""
    queries, keys = seen.begin.shape[0], holes.keys
    step = max(1, _SCANNED // max(keys, 1))
    place = torch.arange(keys, device=seen.begin.device)
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for row in range(0, queries, step):
        rows = slice(row, min(row + step, queries))
        visible = holes.visible(rows, slice(0, keys))
        visible = visible & seen_between(seen.begin[rows], seen.end[rows], place)
        count = visible.sum(1)
        begin = place.masked_fill(~visible, _NOTHING).amin(1)
        end = (place + 1).masked_fill(~visible, 0).amax(1)
        found.append((torch.minimum(begin, end), end, count))
    begin, end, count = (torch.cat(x) for x in zip(*found, strict=True))
    if bool((count == end - begin).all()):
        return VisibleKeys(begin, end)
    return VisibleKeys(begin, end, holes=holes, seen=count)


def hidden_keys(seen: VisibleKeys, first_key: int, keys: int) -> Tensor | None:
    """Where queries do not see one of so many keys, [queries, keys]; None where all see all."""
    place = torch.arange(first_key, first_key + keys, device=seen.begin.device)
    hidden = None
    if bool(((seen.begin > first_key) | (seen.end < first_key + keys)).any()):
        hidden = ~seen_between(seen.begin, seen.end, place)
    if seen.holes is None:
        return hidden
    rows = slice(0, seen.begin.shape[0])
    of_holes = ~seen.holes.visible(rows, slice(first_key, first_key + keys))
    return of_holes if hidden is None else hidden | of_holes


def largest_seen(values: Tensor, keys: VisibleKeys) -> Tensor:
    """The largest of values [..., heads, keys], at least 0, that each query sees, [..., heads, queries];
    0 for one that sees none.
    """
    if keys.holes is None:
        return RangeMaxima(values).over(keys)
    count = values.shape[-1]
    step = max(1, _SCANNED // max(values.numel(), 1))
    queries = keys.begin.shape[0]
    found = []
    for row in range(0, queries, step):
        hidden = hidden_keys(keys.rows(row, min(step, queries - row)), 0, count)
        of_rows = values[..., None, :]
        if hidden is not None:
            of_rows = zero_where(hidden, of_rows)
        found.append(of_rows.amax(-1).expand(*values.shape[:-1], min(step, queries - row)))
    return torch.cat(found, -1)


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
