"""Numbers that count only where something holds.

``torch.where`` with a number of Python copies that to a GPU each time, for which both wait.
"""

from __future__ import annotations

import torch
from torch import Tensor


def kept_where(condition: Tensor, x: Tensor) -> Tensor:
    """x where the condition holds, else 0."""
    return torch.where(condition, x, x.new_zeros(()))


def zero_where(condition: Tensor, x: Tensor) -> Tensor:
    """0 where the condition holds, else x."""
    return torch.where(condition, x.new_zeros(()), x)
