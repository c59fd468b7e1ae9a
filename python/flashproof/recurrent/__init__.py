"""Kernels of recurrences that are judged whenever they are called."""

from .judged import JudgedRecurrent, judged_recurrent

__all__ = ["JudgedRecurrent", "judged_recurrent"]
