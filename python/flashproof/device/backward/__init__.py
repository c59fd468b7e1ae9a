"""A kernel's gradients judged on the device that they lie on: docs/theory/bounds-backward.md."""

from .measure import BackwardFindings, GradientFindings, measure_gradients
from .problem import KernelGradients, fitted_gradients, why_gradients_not_covered

__all__ = [
    "BackwardFindings",
    "GradientFindings",
    "KernelGradients",
    "fitted_gradients",
    "measure_gradients",
    "why_gradients_not_covered",
]
