"""Passes over scores as kernels of Triton, on an NVIDIA GPU; products of matrices are cuBLAS's."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from ..alike import LEAST_COUNTED, MULTIPLIER, bins_of, counts_so_far, slack_of, table_bits
from ..masks import VisibleKeys
from ..places import GROUP_ROWS
from . import kernels
from .eager import GROWN, TIED
from .engine import Moments, RowTotals, ScoreLaw, Weights

_MOST_BLOCK = 1024
_PROGRAMS_PER_PROCESSOR = 2
_LARGEST_PACKED = 2**16 - 1
"""Keys whose counts fit half a word."""


def block_of(keys: int, most: int) -> int:
    """How many keys a program takes at once."""
    return int(min(most, max(128, triton.next_power_of_2(keys))))


def _ranges(seen: VisibleKeys) -> tuple[Tensor, Tensor]:
    return seen.begin.int(), seen.end.int()


def _processors(device: torch.device) -> int:
    if device.type != "cuda":
        return 1
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


class TritonEngine:
    """Kernels of Triton."""

    def weigh(self, exponents: Tensor, seen: VisibleKeys, first_key: int) -> Weights:
        """See ``Engine``."""
        heads, rows, keys = exponents.shape
        maximum, total = (exponents.new_empty(heads, rows) for _ in range(2))
        weights = torch.empty_like(exponents)
        ranges = _ranges(seen.after(first_key))
        kernels.weigh_rows[(heads * rows,)](
            exponents,
            weights,
            maximum,
            total,
            *ranges,
            rows,
            keys,
            BLOCK=block_of(keys, _MOST_BLOCK),
        )
        return Weights(maximum, total, weights)

    def total(self, exponents: Tensor, weights: Tensor, units: Tensor, law: ScoreLaw) -> RowTotals:
        """See ``Engine``."""
        heads, rows, keys = exponents.shape
        count, device = heads * rows, exponents.device
        bits, is_packed = table_bits(law.all_keys), law.all_keys <= _LARGEST_PACKED
        programs = min(count, _PROGRAMS_PER_PROCESSOR * _processors(device))
        words = 2**bits // 2 if is_packed else 2**bits
        sums = exponents.new_empty(12, heads, rows)
        heaviest = torch.empty(heads, rows, dtype=torch.int64, device=device)
        variance = torch.empty_like(exponents)
        constants = [law.relative, law.of_exponential]
        kernels.total_rows[(programs,)](
            exponents,
            weights,
            variance,
            units.contiguous(),
            torch.zeros(programs, words, dtype=torch.int32, device=device),
            torch.stack([law.maximum, slack_of(law), law.least]),
            torch.tensor(constants, dtype=torch.float64, device=device),
            *_ranges(law.seen.after(law.first_key)),
            *_ranges(law.seen.of_groups().after(law.first_key)),
            sums,
            heaviest,
            count,
            rows,
            keys,
            LAW=(bins_of(law.weight_format), bits, LEAST_COUNTED, MULTIPLIER),
            GROWN=GROWN,
            TIED=TIED,
            SO_FAR=counts_so_far(law),
            PACKED=is_packed,
            BLOCK=block_of(keys, _MOST_BLOCK),
            TILE=GROUP_ROWS,
            num_warps=16,
        )
        mass, distance, squared, u1, u2, u3, u4, squares, alike, bias, additions, ties = sums
        return RowTotals(
            mass,
            distance,
            squared,
            (u1, u2, u3, u4),
            squares,
            alike,
            bias,
            additions,
            heaviest,
            ties > 1,
            variance,
        )

    def moments(
        self, directions: Tensor, values: Tensor, weights: Tensor, seen: VisibleKeys
    ) -> Moments:
        """See ``Engine``."""
        number, heads, rows, _ = directions.shape
        keys = values.shape[1]
        stacked = directions.transpose(0, 1).reshape(heads, number * rows, -1)
        products = torch.bmm(stacked, values.transpose(1, 2))
        sums = products.new_empty(3, heads, number, rows)
        count = heads * number * rows
        kernels.multiply_rows[(count,)](
            products,
            weights.contiguous(),
            sums,
            *_ranges(seen),
            rows,
            keys,
            number,
            count,
            BLOCK=block_of(keys, _MOST_BLOCK),
        )
        return Moments(*(x.transpose(0, 1) for x in sums))
