"""Kernels of recurrences that are judged whenever they are called, and results that are judged where they lie."""

from .judged import JudgedRecurrent, judged_recurrent
from .on_device import audit_recurrent_on_device

__all__ = ["JudgedRecurrent", "audit_recurrent_on_device", "judged_recurrent"]
