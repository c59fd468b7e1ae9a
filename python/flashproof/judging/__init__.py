"""A judge for kernels that nobody trusts: `judge`."""

from . import forms
from .budget import Budget
from .candidate import Candidate
from .contract import KernelContract, Shape
from .judge import judge
from .judgement import Accuracy, Judgement

__all__ = [
    "Accuracy",
    "Budget",
    "Candidate",
    "Judgement",
    "KernelContract",
    "Shape",
    "forms",
    "judge",
]
