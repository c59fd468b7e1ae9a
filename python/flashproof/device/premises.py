"""How coarsely any correct kernel may compute: the numbers of ``src/audit/premises/premises.ts``,
by the format of Q.

They are what a kernel that declares nothing is judged by. The sources of each number stand there.
"""

from __future__ import annotations

from dataclasses import dataclass

from .formats import NumberFormat

FP32_ROUNDOFF = 2.0**-24
LARGEST_SCORE = 2.0**127
"""Raw and scaled scores from here on may leave the range of fp32: ``largestScore32``."""
LARGEST_SUM = 2.0**102
"""Sums over keys from here on may, with weights of up to 2^24: ``largestSum32``."""


@dataclass(frozen=True)
class Premises:
    """Errors of any correct kernel; relative unless said otherwise."""

    accumulation: float
    """One product of a sum, and one addition to the row sum."""
    exponential: float
    weight_format: NumberFormat
    """The format that P is rounded to: V's."""
    weight_scale: float
    """What P is multiplied by at least before that."""
    elementwise: float = 2.0**-23
    logarithm: float = 2.0**-21
    """Absolute, and relative to a logarithm above 1."""
    underflow: float = 2.0**-126
    """Absolute: an operation whose result is subnormal, flushed perhaps."""
    tanh: float = 2.0**-10.9


def premises_of(inputs: NumberFormat, values: NumberFormat) -> Premises:
    """The premises for Q and K in ``inputs`` and V in ``values``, whatever the output's format."""
    eight_bits = inputs.name in ("e4m3", "e5m2")
    return Premises(
        accumulation=(34 / 32) * 2.0**-13 if eight_bits else 1.375 * 2.0**-24,
        exponential=2.0**-21 if inputs.name == "fp32" else 2.0**-13.4,
        weight_format=values,
        # Of 8-bit formats e4m3 has so few small numbers that kernels raise P: usualWeightScales.
        weight_scale=2.0**7 if values.name == "e4m3" else 1.0,
    )
