"""Which weights of a row, and which rows, may err alike: "The spread" of docs/theory/bounds.md.

Where fp64's roundings leave open whether two weights or rows count as alike, they count as apart:
limits are then smaller.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .formats import NumberFormat
from .masks import GROUP_ROWS
from .weights import WeightBlock

_MULTIPLIER = 0x9E3779B97F4A7C15 - 2**64
_LEAST_COUNTED = 24
"""Exponents so far below the row's largest are not counted."""
_UNCERTAIN = 2.0**-30
"""Part of a bin at its edges where a weight's bin is left open, beside what an exponent may be off
by.
"""
_MOST_BINS = 2**14
_FEW_INDEPENDENT = 16


def _table_bits(keys: int) -> int:
    return min(max(math.ceil(math.log2(4 * keys)), 12), 16)


def _largest_so_far(block: WeightBlock) -> Tensor:
    """The largest exponent up to the end of each key's tile of 64, [rows, keys]: what the command
    line has when it counts.

    Where rows begin at keys of their own, the largest of all, so that less is counted.
    """
    if block.first_key != 0 or bool((block.keys.begin > 0).any()):
        return block.maximum[:, None]
    rows, keys = block.exponents.shape
    tiles = -(-keys // GROUP_ROWS)
    padded = torch.nn.functional.pad(
        block.exponents, (0, tiles * GROUP_ROWS - keys), value=-math.inf
    )
    largest = padded.view(rows, tiles, GROUP_ROWS).amax(2).cummax(1).values
    return largest.repeat_interleave(GROUP_ROWS, 1)[:, :keys].clamp(min=-(2.0**60))


def alike_counts(block: WeightBlock, weight_format: NumberFormat, all_keys: int) -> Tensor:
    """How many weights of its row may round as each weight does, [rows, keys], at least 1.

    Bins of a quarter of an ulp of P's format are counted in a table of hashes, as ``scanScores``
    of ``src/audit/bounds/assembly/scores.ts`` does, so that counts are those of the command line.
    ``all_keys`` of the problem say how large that is.
    """
    bits = _table_bits(all_keys)
    bins = min(4 * 2 ** (weight_format.precision - 1), _MOST_BINS)
    counted = block.exponents >= _largest_so_far(block) - _LEAST_COUNTED
    places = torch.where(counted, block.exponents, block.maximum[:, None]) * bins
    near = places.round()
    slack = _UNCERTAIN + bins * 2.0 * block.trust[:, None] + places.abs() * 2.0**-50
    counted &= (places - near).abs_() < 0.5 - slack
    slots = ((near.to(torch.int64) * _MULTIPLIER) >> (64 - bits)) & (2**bits - 1)
    table = torch.zeros(slots.shape[0], 2**bits, dtype=torch.int32, device=slots.device)
    table.scatter_add_(1, slots, counted.to(torch.int32))
    counts = table.clamp_(1, 65535).gather(1, slots)
    return torch.where(counted, counts, 1).double()


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
    block_lse: Tensor,
    maximum: Tensor,
    out: Tensor,
    magnitude: Tensor,
    clustered: tuple[Tensor, Tensor],
    precision: int,
) -> Tensor:
    """Numbers of the rows of a head: rows of one number may err alike, int64 [rows].

    ``createRowNumbers`` of ``src/audit/bounds/alike.ts``: clustered rows have one number, and so
    have rows whose LSE and maximum (natural logarithms) agree to an ulp of P's format, of
    ``precision`` significant bits, and outputs to a quarter of that.
    """
    fine = 2.0 ** min(precision, 14)
    columns = min(out.shape[1], 4)
    size = magnitude[:, :columns] / (4 * fine)
    scaled = torch.where(size > 0, out[:, :columns] / size, 0.0)
    cells = torch.cat([block_lse[:, None] * fine, maximum[:, None] * fine, scaled], 1)
    near = cells.round()
    is_clustered, uncertain = clustered
    is_open = (
        uncertain | ((cells - near).abs() > 0.5 - 2.0**-20).any(1) | ~torch.isfinite(cells).all(1)
    )
    alone = torch.arange(cells.shape[0], device=cells.device, dtype=torch.float64)
    names = torch.where(is_clustered[:, None], 0.0, near)
    kind = torch.where(is_open, 2 + alone, is_clustered.double())
    names = torch.where(is_open[:, None], 0.0, names)
    numbers: Tensor = torch.unique(
        torch.cat([kind[:, None], names], 1), dim=0, return_inverse=True
    )[1]
    return numbers
