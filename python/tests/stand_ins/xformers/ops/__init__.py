"""Its operators."""

from .fmha import LowerTriangularMask, memory_efficient_attention
