"""Binary floating-point formats as tables, and what rounding to them does to fp64 tensors.

The table is that of ``src/formats/format.ts``; IEEE 754-2019 for fp16 and fp32, the OCP
specification of 8-bit formats for e4m3 and e5m2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class NumberFormat:
    """A format: ``precision`` significant bits, exponents of its normal numbers, and its largest
    finite number.
    """

    name: str
    precision: int
    min_exponent: int
    max_exponent: int
    max_finite: float

    @property
    def unit_roundoff(self) -> float:
        """2^-precision: the largest relative error of rounding to nearest."""
        return 2.0**-self.precision

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with a full significand."""
        return 2.0**self.min_exponent

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive number, the spacing of the subnormals."""
        return 2.0 ** (self.min_exponent - self.precision + 1)


def _ieee(name: str, precision: int, min_exponent: int, max_exponent: int) -> NumberFormat:
    largest = (2 - 2.0 ** (1 - precision)) * 2.0**max_exponent
    return NumberFormat(name, precision, min_exponent, max_exponent, largest)


FORMATS: dict[torch.dtype, NumberFormat] = {
    torch.float32: _ieee("fp32", 24, -126, 127),
    torch.bfloat16: _ieee("bf16", 8, -126, 127),
    torch.float16: _ieee("fp16", 11, -14, 15),
    torch.float8_e5m2: _ieee("e5m2", 3, -14, 15),
    # No infinity, and the largest significand of the top binade is NaN.
    torch.float8_e4m3fn: NumberFormat("e4m3", 4, -6, 8, 448.0),
}
"""The formats that tensors are judged in, by PyTorch's name; fp64 is that of the judge itself."""


def exponent_of(x: Tensor) -> Tensor:
    """⌊log2 |x|⌋ of fp64 numbers as int64; −1023 for 0 and fp64's subnormals."""
    return ((x.view(torch.int64) >> 52) & 0x7FF) - 1023


def binade(x: Tensor) -> Tensor:
    """2^⌊log2 |x|⌋ of finite fp64 numbers; 0 for 0 and fp64's subnormals."""
    return (x.view(torch.int64) & (0x7FF << 52)).view(torch.float64)


def ulp(number_format: NumberFormat, x: Tensor) -> Tensor:
    """The spacing of a format's numbers in the binade of |x|: ``ulp`` of ``src/formats/round.ts``,
    for finite fp64 x.
    """
    largest = 2.0**number_format.max_exponent
    power = binade(x).clamp_(number_format.smallest_normal, largest)
    return power.mul_(2.0 ** (1 - number_format.precision))


def nearest(number_format: NumberFormat, x: Tensor) -> Tensor:
    """The nearest number of the format, ties to even, as if its exponents had no upper end; for
    finite fp64 x.
    """
    quantum = binade(x).clamp_(min=number_format.smallest_normal)
    quantum.mul_(2.0 ** (1 - number_format.precision))
    return (x / quantum).round_().mul_(quantum)
