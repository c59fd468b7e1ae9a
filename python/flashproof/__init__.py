"""Proof instead of allclose: verifies the numerics of attention kernels."""

from .audit import Tolerance, assert_attention, audit, tolerance
from .check import CheckReport, Promises, assert_kernel, check, laws
from .node import NodeNotFoundError
from .report import Finding, Report
from .safetensors import Array
from .server import RequestError

__all__ = [
    "Array",
    "CheckReport",
    "Finding",
    "NodeNotFoundError",
    "Promises",
    "Report",
    "RequestError",
    "Tolerance",
    "assert_attention",
    "assert_kernel",
    "audit",
    "check",
    "laws",
    "tolerance",
]
