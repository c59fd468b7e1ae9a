"""What rounding may do to values: half an ulp, and draws of it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..formats import FORMATS, NumberFormat

TF32 = NumberFormat("tf32", 11, -126, 127, FORMATS[torch.float32].max_finite)
"""As tensor cores read fp32."""


def operand_format(dtype: torch.dtype) -> NumberFormat:
    """The format that products of a chunk read values of a dtype in."""
    return TF32 if dtype is torch.float32 else FORMATS[dtype]


def half_ulp(x: Tensor, of: NumberFormat) -> Tensor:
    """Half an ulp of each value's own size; 0 of zero."""
    exponent = torch.frexp(x.abs().clamp_min(of.smallest_normal)).exponent - 1
    half = torch.ldexp(torch.full_like(x, 2.0**-of.precision), exponent)
    return torch.where(x == 0, torch.zeros_like(x), half)


CUT_DOTS = 2.0 ** (2 - TF32.precision)
"""What dots of operands that hold decays lose at most, relative: tensor cores cut both operands to tf32, by an ulp each."""


class Unrounded:
    """No rounding, of one draw."""

    draws = 1

    def on(self, x: Tensor, of: NumberFormat) -> Tensor:
        """The values as they are."""
        return x


class Noise:
    """Roundings that are drawn, with the variance of one that is uniform within half an ulp."""

    def __init__(self, draws: int, device: torch.device, seed: int) -> None:
        self.draws = draws
        self._generator = torch.Generator(device).manual_seed(seed)

    def on(self, x: Tensor, of: NumberFormat) -> Tensor:
        """[draws, …]: values that have that dimension already, or have it not yet, with an error each."""
        return x + half_ulp(x, of) * self._normal(x.shape[1:], x.device) / math.sqrt(3)

    def of(self, variance: Tensor) -> Tensor:
        """[draws, …]: independent errors of a variance."""
        return variance.sqrt() * self._normal(variance.shape, variance.device)

    def _normal(self, shape: torch.Size, device: torch.device) -> Tensor:
        size = (self.draws, *shape)
        return torch.randn(size, generator=self._generator, dtype=torch.float64, device=device)
