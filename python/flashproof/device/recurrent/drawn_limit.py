"""How far errors may be from drawn ones: the lemma of docs/theory/bounds-recurrent.md."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def drawn_limit(probability: float, draws: int, freedom: Tensor) -> Tensor:
    """
    τ: the root mean square of errors exceeds τ times that of `draws` drawn ones with at most this probability.

    `freedom` is tr Σ / ‖Σ‖ of the errors' covariance Σ, or less: 1 for a single error or one linear statistic.
    """
    wanted = math.log(probability) / freedom.clamp_min(1)
    low, high = torch.ones_like(wanted), torch.full_like(wanted, 2.0**60)
    for _ in range(120):
        # The logarithms are bisected first, in effect: squares of 1 to 2^60.
        middle = (low * high).sqrt()
        is_above = _log_probability(middle, draws) > wanted
        low, high = torch.where(is_above, middle, low), torch.where(is_above, high, middle)
    return low.sqrt()


def _log_probability(square: Tensor, draws: int) -> Tensor:
    spread = ((draws + square) / (draws + 1)).log()
    return 0.5 * square.log() - (draws + 1) / 2 * spread


def freedom_of(energies: Tensor) -> Tensor:
    """tr Σ / ‖Σ‖ at least, by sums of squares [draws, …]: half of what few draws show."""
    mean, variance = energies.mean(0), energies.var(0, correction=0)
    found = (mean.square() / variance).sqrt()
    return torch.where(variance > 0, found, torch.ones_like(found)).clamp_min(1)
