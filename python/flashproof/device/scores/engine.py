"""What an engine does with scores, [heads, rows, keys] all of them in fp64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import torch
from torch import Tensor

from ..formats import NumberFormat
from ..masks import VisibleKeys


@dataclass(frozen=True)
class ScoreLaw:
    """What the numbers of a row's weights are made of, beside the weights: [heads, rows] each."""

    weight_format: NumberFormat
    """The format that P is rounded to."""
    all_keys: int
    """Keys of the whole problem."""
    seen: VisibleKeys
    """[rows]: the keys that rows see, counted over the whole problem."""
    first_key: int
    maximum: Tensor
    trust: Tensor
    """The largest relative error of a weight."""
    least: Tensor
    """What P may lose at least, relative to 1."""
    relative: float
    """What P may lose of a weight, relative to it."""
    of_exponential: float
    """The variance of the exponential, relative to the weight's square."""

    def of_rows(self, rows: slice) -> ScoreLaw:
        """Those of some rows."""
        of = {name: getattr(self, name)[:, rows] for name in ("maximum", "trust", "least")}
        return replace(self, seen=self.seen.rows(rows.start, rows.stop - rows.start), **of)


@dataclass(frozen=True)
class Weights:
    """Weights w = 2^(exponent − maximum) / total, 0 of keys that the row does not see."""

    maximum: Tensor
    """[heads, rows]: the largest exponent; 0 for a row without keys."""
    total: Tensor
    """[heads, rows]: Σ 2^(exponent − maximum)."""
    weights: Tensor


@dataclass(frozen=True)
class RowTotals:
    """Sums over the keys of each row, [heads, rows] but for ``variance``."""

    mass: Tensor
    """Σ w."""
    distance: Tensor
    """Σ w·d, d how far the exponent is below the maximum."""
    distance_squared: Tensor
    """Σ w·d²."""
    units: tuple[Tensor, Tensor, Tensor, Tensor]
    """Σ w u^n for n = 1 … 4, u the keys' units."""
    squares: Tensor
    """Σ w²."""
    squares_alike: Tensor
    """Σ n w², n how many weights of the row round as the key's does."""
    bias: Tensor
    """Σ min(w, least)."""
    additions: Tensor
    """Σ over tiles of 64 keys of their keys times the sum of weights up to their end."""
    heaviest: Tensor
    """The key of the largest weight, int64."""
    is_tied: Tensor
    """Whether fp64 leaves open which key that is."""
    variance: Tensor
    """[heads, rows, keys]: n ((relative · w + least)² / 3 + of_exponential · w²)."""

    @staticmethod
    def joined(parts: Sequence[RowTotals], variance: Tensor) -> RowTotals:
        """All parts, one behind the other, whose variances lie in ``variance``."""

        def member(name: str) -> Tensor:
            return torch.cat([getattr(part, name) for part in parts], 1)

        units = [torch.cat(of_parts, 1) for of_parts in zip(*(part.units for part in parts))]
        u1, u2, u3, u4 = units
        names = [one.name for one in fields(RowTotals) if one.name not in ("units", "variance")]
        of = {name: member(name) for name in names}
        return RowTotals(**of, units=(u1, u2, u3, u4), variance=variance)


@dataclass(frozen=True)
class Moments:
    """Of c = w·X·v over the keys, [directions, heads, rows]: Σ c², Σ c·w, Σ |c|."""

    squares: Tensor
    crossed: Tensor
    absolute: Tensor


class Engine(Protocol):
    """Passes over scores."""

    def weigh(self, exponents: Tensor, seen: VisibleKeys, first_key: int) -> Weights:
        """The weights of rows that see the keys ``seen`` [rows], of exponents from ``first_key`` on; these
        may be −∞ afterwards where keys are not seen.
        """

    def total(self, exponents: Tensor, weights: Tensor, units: Tensor, law: ScoreLaw) -> RowTotals:
        """The sums of each row; ``exponents`` are those that ``weigh`` has had, ``units`` [heads,
        keys], or [heads, rows, keys] where an engine takes what is not plain.
        """

    def moments(
        self, directions: Tensor, values: Tensor, weights: Tensor, seen: VisibleKeys
    ) -> Moments:
        """Of directions [directions, heads, rows, v dim] and values [heads, keys, v dim]; ``seen``
        [rows] counts from the first of the keys.
        """
