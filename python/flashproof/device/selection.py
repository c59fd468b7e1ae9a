"""Numbers that count only where something holds.

``torch.where`` with a number of Python copies that to a GPU each time, for which both wait.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor


@functools.cache
def _zero(dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.zeros((), dtype=dtype, device=device)


def kept_where(condition: Tensor, x: Tensor) -> Tensor:
    """x where the condition holds, else 0."""
    return torch.where(condition, x, _zero(x.dtype, x.device))


def zero_where(condition: Tensor, x: Tensor) -> Tensor:
    """0 where the condition holds, else x."""
    return torch.where(condition, _zero(x.dtype, x.device), x)
