"""Its operators."""

from .fmha import LowerTriangularMask, memory_efficient_attention

__all__ = ["LowerTriangularMask", "memory_efficient_attention"]
