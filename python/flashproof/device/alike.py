"""Which weights of a row, and which rows, may err alike: "The spread" of docs/theory/bounds.md.

Where fp64's roundings leave open whether two weights or rows count as alike, they count as apart:
limits are then smaller.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .formats import NumberFormat
from .places import GROUP_ROWS
from .selection import kept_where, zero_where

if TYPE_CHECKING:
    from .scores.engine import ScoreLaw

MULTIPLIER = 0x9E3779B97F4A7C15 - 2**64
LEAST_COUNTED = 24
"""Exponents so far below the row's largest are not counted."""
UNCERTAIN = 2.0**-30
"""Part of a bin at its edges where a weight's bin is left open, beside what an exponent may be off
by.
"""
_MOST_BINS = 2**14
_FEW_INDEPENDENT = 16


def table_bits(keys: int) -> int:
    """The logarithm of the size of a row's table."""
    return min(max(math.ceil(math.log2(4 * keys)), 12), 16)


def bins_of(weight_format: NumberFormat) -> int:
    """Bins of an octave."""
    return int(min(4 * 2 ** (weight_format.precision - 1), _MOST_BINS))


def counts_so_far(law: ScoreLaw) -> bool:
    """Whether exponents count by the largest up to the end of each key's tile of 64, which is what the
    command line has when it counts.

    Where rows begin at keys of their own, or have holes, it is the largest of all, so that less is counted.
    """
    is_late = law.seen.may_begin_late and bool((law.seen.begin > 0).any())
    return law.first_key == 0 and not is_late and law.seen.holes is None


def slack_of(law: ScoreLaw) -> Tensor:
    """How near to the edge of a bin exponents may be, but for their own rounding, [heads, rows]."""
    return UNCERTAIN + bins_of(law.weight_format) * 2.0 * law.trust


def _largest_so_far(exponents: Tensor, law: ScoreLaw) -> Tensor:
    if not counts_so_far(law):
        return law.maximum[:, :, None]
    keys = exponents.shape[2]
    tiles = -(-keys // GROUP_ROWS)
    padding = tiles * GROUP_ROWS - keys
    padded = (
        torch.nn.functional.pad(exponents, (0, padding), value=-math.inf) if padding else exponents
    )
    largest = padded.unflatten(2, (tiles, GROUP_ROWS)).amax(3).cummax(2).values
    return largest.clamp_(min=-(2.0**60)).repeat_interleave(GROUP_ROWS, 2)[:, :, :keys]


def alike_counts(exponents: Tensor, law: ScoreLaw) -> Tensor:
    """How many weights of its row may round as each weight does, [heads, rows, keys], at least 1.

    Bins of a quarter of an ulp of P's format are counted in a table of hashes, as ``scanScores``
    of ``src/audit/bounds/assembly/scores.ts`` does, so that counts are those of the command line.
    """
    bits, bins = table_bits(law.all_keys), bins_of(law.weight_format)
    counted = exponents >= _largest_so_far(exponents, law) - LEAST_COUNTED
    places = torch.where(counted, exponents, law.maximum[:, :, None]).mul_(bins)
    near = places.round()
    edge = torch.add(0.5 - slack_of(law)[:, :, None], places.abs(), alpha=-(2.0**-50))
    counted &= places.sub_(near).abs_() < edge
    slots = near.to(torch.int64).mul_(MULTIPLIER)
    slots.bitwise_right_shift_(64 - bits).bitwise_and_(2**bits - 1)
    table = torch.zeros(*slots.shape[:2], 2**bits, dtype=torch.int32, device=slots.device)
    table.scatter_add_(2, slots, counted.to(torch.int32))
    counts = table.clamp_(1, 65535).gather(2, slots)
    return counts.masked_fill_(counted.logical_not_(), 1).double()


def is_clustered(mass: Tensor, squares: Tensor, squares_alike: Tensor) -> tuple[Tensor, Tensor]:
    """Whether most of a row's weights share their bins and few bins hold them; and whether that is
    left open.

    ``isClustered`` of ``src/audit/bounds/alike.ts``, by the row's Σ w, Σ w², and Σ w² times how
    many weights are alike.
    """
    shared = squares_alike - 2 * squares
    few = _FEW_INDEPENDENT * squares_alike - mass.square()
    uncertain = (shared.abs() <= 2.0**-20 * squares) | (few.abs() <= 2.0**-20 * mass.square())
    return (shared >= 0) & (few >= 0), uncertain


def row_units(
    head: Tensor,
    block_lse: Tensor,
    maximum: Tensor,
    out: Tensor,
    magnitude: Tensor,
    clustered: tuple[Tensor, Tensor],
    precision: int,
) -> Tensor:
    """Numbers of the rows of some heads, ``head`` of each row [rows]: rows of one number may err alike,
    int64 [rows].

    ``createRowNumbers`` of ``src/audit/bounds/alike.ts``: clustered rows have one number, and so
    have rows whose LSE and maximum (natural logarithms) agree to an ulp of P's format, of
    ``precision`` significant bits, and outputs to a quarter of that.
    """
    fine = 2.0 ** min(precision, 14)
    columns = min(out.shape[1], 4)
    size = magnitude[:, :columns] / (4 * fine)
    scaled = kept_where(size > 0, out[:, :columns] / size)
    cells = torch.cat([block_lse[:, None] * fine, maximum[:, None] * fine, scaled], 1)
    near = cells.round()
    is_clustered, uncertain = clustered
    is_open = (
        uncertain | ((cells - near).abs() > 0.5 - 2.0**-20).any(1) | ~torch.isfinite(cells).all(1)
    )
    alone = torch.arange(cells.shape[0], device=cells.device, dtype=torch.float64)
    names = zero_where(is_clustered[:, None], near)
    kind = torch.where(is_open, 2 + alone, is_clustered.double())
    names = zero_where(is_open[:, None], names)
    return _row_numbers([kind, *names.unbind(1)], head)


def _row_numbers(columns: list[Tensor], numbers: Tensor) -> Tensor:
    """One number for all rows that agree in ``numbers``, int64 from 0 on, and in all columns.

    Column by column, until no two agree: PyTorch's search for equal rows takes many times as long.
    """
    for column in columns:
        values, place = torch.unique(column, return_inverse=True)
        distinct, numbers = torch.unique(numbers * values.shape[0] + place, return_inverse=True)
        if distinct.shape[0] == numbers.shape[0]:
            break
    return numbers
