"""Every element against its worst case, and every LSE: ``src/audit/element-test.ts`` and
``number-test.ts``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from .bounds import BlockBounds
from .formats import NumberFormat
from .limits import SURE, output_rounding
from .selection import kept_where, zero_where
from .weights import WeightBlock


@dataclass(frozen=True)
class Place:
    """Where a block of rows lies: of which heads, counted over [batch, heads], and how many rows of each
    from which on.
    """

    heads: range
    first_row: int
    rows: int


@dataclass
class Worst:
    """The largest share of a limit that is used, and where."""

    ratio: float = 0.0
    head: int = -1
    """Counted over [batch, heads]."""
    query: int = -1
    column: int = -1
    """−1 for a number of a row."""
    error: float = 0.0
    limit: float = 0.0

    def meet(self, numbers: list[float], columns: int, place: Place) -> None:
        """Meets the largest ratio of a block of so many columns: its place among all elements, itself,
        the error and the limit.
        """
        ratio = numbers[1]
        if ratio <= self.ratio and self.head >= 0:
            return
        row, column = divmod(int(numbers[0]), columns)
        head, query = divmod(row, place.rows)
        self.ratio, self.head = ratio, place.heads[head]
        self.query, self.column = place.first_row + query, column
        self.error, self.limit = numbers[2:]


@dataclass
class LimitTest:
    """How elements, or numbers of rows, stand against their limits."""

    elements: int = 0
    outside: int = 0
    """Beyond the limit as the command line states it."""
    surely_outside: int = 0
    """Beyond it, whatever fp64 leaves open."""
    open: int = 0
    """Neither within the limit nor beyond it for sure."""
    worst: Worst = field(default_factory=Worst)
    _unsettled: list[tuple[Tensor, int, Place]] = field(default_factory=list)
    """Blocks whose numbers are still on their device."""

    def meet(self, numbers: list[Tensor], columns: int, place: Place) -> None:
        """Meets a block of so many columns, as threads may do at one time: how many elements are outside, surely outside and open; and
        the place of the largest ratio among all elements, it, the error and the limit.

        A GPU is not waited for: ``settle`` does that, for all blocks together.
        """
        self._unsettled.append((torch.stack([x.double() for x in numbers]), columns, place))

    def settle(self) -> None:
        """Takes in what blocks left to do."""
        if not self._unsettled:
            return
        numbers = torch.stack([x for x, _, _ in self._unsettled]).tolist()
        for (_, columns, place), found in zip(self._unsettled, numbers, strict=True):
            outside, surely, left_open, *worst = found
            self.elements += len(place.heads) * place.rows * columns
            self.outside += int(outside)
            self.surely_outside += int(surely)
            self.open += int(left_open)
            self.worst.meet(worst, columns, place)
        self._unsettled.clear()


_MOST_OF_UNDERFLOW = 2.0**64 * 2.0**-126
"""Bounds from here on are not of underflow alone: ``mostTimes`` of ``element-test.ts``."""
_SURELY_TIMES = 4
"""So many times its limit here an element is surely larger than its bound on the command line."""


@dataclass
class LostTest:
    """Whether the command line may find that underflow may take all of a quantity, which it then
    does not judge: ``countLost``.
    """

    has_larger: bool = False
    """Whether an element is surely larger than its bound."""
    has_small: bool = False
    """Whether one may be no larger than what underflow takes."""
    _unsettled: list[Tensor] = field(default_factory=list)

    def meet(self, exact: Tensor, radius: Tensor, total: Tensor, is_judged: Tensor) -> None:
        """Meets elements [rows, columns] that are ``exact`` to within ``radius``, and limits that
        are no more than the command line's, of rows that are judged or not.
        """
        judged = is_judged[:, None]
        larger = (exact.abs() - radius > _SURELY_TIMES * (total + radius)) & judged
        # A bound of 0 is that of an exact 0, which a kernel has to give.
        is_small = ~larger & ~((total >= _MOST_OF_UNDERFLOW) | (total == 0)) | ~judged
        self._unsettled.append(torch.stack([larger.any(), is_small.any()]))

    def settle(self) -> None:
        """Takes in what blocks left to do: see ``LimitTest``."""
        for has_larger, has_small in torch.stack(self._unsettled).tolist():
            self.has_larger |= has_larger
            self.has_small |= has_small
        self._unsettled.clear()

    @property
    def may_be_all(self) -> bool:
        """Whether it is left open that anything is larger than what underflow may take."""
        return self.has_small and not self.has_larger


def ratio_of(errors: Tensor, limits: Tensor) -> Tensor:
    """error / limit; 0 for no error, whatever the limit is."""
    return zero_where(errors == 0, errors / limits)


def hold_against(
    test: LimitTest,
    errors: Tensor,
    distance: Tensor,
    limits: tuple[Tensor, Tensor],
    is_judged: Tensor,
    place: Place,
) -> Tensor:
    """Holds errors of a block against limits, [rows, columns]; returns the rows with an element
    that is not surely within its limit.

    ``limits`` are those as stated, the radius included, and those that are surely no more, without
    it; ``distance`` is how far the command line's exact value may be. Rows that are not judged
    count as open.
    """
    stated, sure = limits
    ratios = kept_where(is_judged[:, None], ratio_of(errors, stated))
    # An exact 0 of a row without keys has no radius that could excuse another number.
    is_within = (errors == 0) & (stated == 0) | (errors + distance <= sure * (1 - SURE))
    is_within &= is_judged[:, None]
    beyond = (errors > (stated + distance) * (1 + SURE)) & is_judged[:, None]
    at = ratios.argmax()
    found = [
        (ratios > 1).sum(),
        beyond.sum(),
        (~is_within & ~beyond).sum(),
        at,
        *(x.flatten()[at] for x in (ratios, errors, stated)),
    ]
    test.meet(found, errors.shape[1], place)
    return ~is_within.all(1)


def judge_elements(
    test: LimitTest, block: WeightBlock, bounds: BlockBounds, out: Tensor, place: Place
) -> Tensor:
    """Tests the elements of a block of ``out`` [rows, v dim], fp64; returns the rows that are not
    surely within.
    """
    limits = (bounds.stated.total + block.out_radius, bounds.sure.total)
    return hold_against(
        test,
        (out - block.out).abs(),
        block.out_distance,
        limits,
        bounds.is_judged,
        place,
    )


def judge_numbers(
    test: LimitTest,
    block: WeightBlock,
    bounds: BlockBounds,
    lse: Tensor,
    stored: NumberFormat,
    place: Place,
) -> Tensor:
    """Tests the LSEs of a block, [rows], fp64, that are stored in a format; returns the rows that
    are not surely within.
    """
    # Of a row without keys, unless it has a sink.
    is_empty = (block.total == 0) & (block.lse == -torch.inf)
    exact = zero_where(is_empty, block.lse)
    error = torch.where(is_empty, (lse != block.lse).double(), (lse - exact).abs())
    stated = bounds.lse + block.lse_radius
    limit = zero_where(is_empty, stated + output_rounding(stored, exact, stated, surely=False))
    sure = zero_where(
        is_empty, bounds.lse + output_rounding(stored, exact, bounds.lse, surely=True)
    )
    return hold_against(
        test,
        error[:, None],
        block.lse_distance[:, None],
        (limit[:, None], sure[:, None]),
        bounds.is_judged,
        place,
    )
