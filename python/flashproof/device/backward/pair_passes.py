"""What passes over the pairs of a block on its device."""

from __future__ import annotations

from torch import Tensor

from ..scores import runs_triton
from .eager_pairs import EagerPairs
from .pair_law import PairLaw, Pairs


def pairs_of(law: PairLaw, exponents: Tensor, weights: Tensor, products: Tensor) -> Pairs:
    """The pairs of a block; ``products`` are x = dO·v, [heads, rows, keys]."""
    if law.seen.holes is not None or not runs_triton(weights.device):
        return EagerPairs(law, exponents, weights, products)
    from .fused_pairs import FusedPairs

    return FusedPairs(law, exponents, weights, products)
