"""What the errors of pairs of a query and a key are made of, what they sum up to, and what they are:
Theorems 4 to 7 of docs/theory/bounds-backward.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ..masks import VisibleKeys
from ..weights import HeadTensors, WeightBlock
from .premises import MOST_PRODUCTS, PairArithmetic


@dataclass(frozen=True)
class PairLaw:
    """Numbers of the rows [heads, rows] and keys [heads, keys] of a block."""

    arithmetic: PairArithmetic
    seen: VisibleKeys
    """[rows]: the keys that rows see, from the block's first on."""
    lse: Tensor
    norms: Tensor
    """|scale|·‖q‖."""
    derivative_norms: Tensor
    """‖dO‖."""
    key_norms: Tensor
    value_norms: Tensor

    @classmethod
    def of(
        cls, arithmetic: PairArithmetic, head: HeadTensors, block: WeightBlock, dout: Tensor
    ) -> PairLaw:
        """Of a block; ``dout`` is [rows, v dim]."""
        return cls(
            arithmetic,
            block.seen.after(block.first_key),
            block.by_head(block.lse),
            abs(arithmetic.scale) * head.query_norm[:, block.queries],
            block.by_head(_norms(dout)),
            head.key_norm[:, block.columns],
            _norms(head.v[:, block.columns]),
        )

    @property
    def derivative_error(self) -> tuple[Tensor, Tensor, float]:
        """Of x at most: numbers of the row and of the key, whose product counts, and what is added."""
        worst = self.arithmetic.products.worst * (1 + 2.0**-8)
        return self.derivative_norms * worst, self.value_norms, self.floor

    @property
    def floor(self) -> float:
        """What underflows of a dot product's terms come to."""
        return self.arithmetic.premises.underflow * MOST_PRODUCTS

    def are_in_range(self) -> Tensor:
        """Whether products and scores are far below what fp32 holds, [heads, rows]."""
        scale = min(1.0, abs(self.arithmetic.scale) or 1.0)
        of_scores = self.norms * self.key_norms.amax(1, keepdim=True) / scale < _LARGEST
        return of_scores & (
            self.derivative_norms * self.value_norms.amax(1, keepdim=True) < _LARGEST
        )


_LARGEST = 2.0**120


def _norms(x: Tensor) -> Tensor:
    return x.square().sum(-1).sqrt()


@dataclass(frozen=True)
class PairSums:
    """Sums over the keys of a row, [rows] of all heads: ``RowSums``. x = dO·v."""

    mean: Tensor
    """D = Σ P x."""
    size: Tensor
    """Σ P|x|."""
    squares: Tensor
    """Σ (P x)²."""
    errors: Tensor
    """Σ of what errors of P and of x make of P|x|."""
    typical: Tensor
    variance: Tensor
    weight_errors: Tensor
    """Σ of errors of P."""
    typical_weights: Tensor
    weight_variance: Tensor
    scatter: Tensor
    """Σ of errors of P, times |x − D|."""
    typical_scatter: Tensor
    scatter_variance: Tensor
    largest_error: Tensor
    """Of a score's error, in natural units, the largest; P's relative error to the first order."""


@dataclass(frozen=True)
class PairMatrices:
    """Numbers of pairs, [heads, rows, keys]. P is what dV has, dS without the scale what dQ and dK
    have. Terms as they may be, errors and all, are ``whole``.
    """

    share: Tensor
    """dS = P (x − D)."""
    size: Tensor
    """|dS|."""
    worst: Tensor
    whole: Tensor
    """``worst``, with what rows have in common."""
    systematic: Tensor
    variance: Tensor
    key_systematic: Tensor
    """``systematic`` as dK has it, without what counts for all of a row's |dS|."""
    key_variance: Tensor
    weight_worst: Tensor
    """Of P."""
    weight_systematic: Tensor
    weight_variance: Tensor
    weight_known: Tensor
    """The rounding of P where it is certain, signed; else 0."""
    weight_open: Tensor | None
    """At most the size of roundings of which that is left open, else 0; None where there are none."""
    largest: Tensor
    """[rows] of all heads: the largest |dS| with all its errors."""


@dataclass(frozen=True)
class Rows:
    """What the pairs of a row have in common, [rows]."""

    mean: Tensor
    """D."""
    weight: Tensor
    """What all P may be off by together, relatively; what of it does not average out; its variance."""
    typical_weight: Tensor
    weight_variance: Tensor
    worst_mean: Tensor
    """The same of D, absolutely."""
    typical_mean: Tensor
    mean_variance: Tensor
    is_judged: Tensor
    """Whether all this holds: errors are small enough, and nothing leaves its range."""


class Pairs(Protocol):
    """The pairs of a block."""

    def sums(self, *, with_scatter: bool) -> PairSums:
        """Their sums, those of |x − D| where they are asked for, else 0."""

    def matrices(self, rows: Rows) -> PairMatrices:
        """Their errors, by what rows have in common. Called once, after ``sums``."""


def by_row(x: Tensor, law: PairLaw) -> Tensor:
    """Numbers of all rows as [heads, rows, 1]."""
    return x.view(law.lse.shape)[:, :, None]


def outer(rows: Tensor, keys: Tensor) -> Tensor:
    """Products of numbers of rows [heads, rows] and keys [heads, keys]."""
    return torch.einsum("hr,hk->hrk", rows, keys)
