"""Recurrences of linear attention and delta rules, judged on the device that their tensors lie on, by PyTorch in fp64."""

from .judge import DRAWS, Findings, judge_recurrence
from .runs import LAWS, NORMALISATION, RecurrentProblem

__all__ = [
    "DRAWS",
    "LAWS",
    "NORMALISATION",
    "Findings",
    "RecurrentProblem",
    "judge_recurrence",
]
