"""Kernels of attention of other packages, and functions of your own: how their calls are read, and judged."""

from .functions import JudgedFunction, Kernel, judged

__all__ = ["JudgedFunction", "Kernel", "judged"]
