"""Proof instead of allclose: verifies the numerics of attention kernels."""

from .audits import Tolerance, assert_attention, audit, audit_on_device, tolerance
from .checks import CheckReport, Declined, Promises, Replay, assert_kernel, check, laws, replay
from .node import NodeNotFoundError
from .report import Finding, Report
from .safetensors import Array
from .server import RequestError
from .surroundings import InvarianceReport, invariance

__all__ = [
    "Array",
    "CheckReport",
    "Declined",
    "Finding",
    "InvarianceReport",
    "NodeNotFoundError",
    "Promises",
    "Replay",
    "Report",
    "RequestError",
    "Tolerance",
    "assert_attention",
    "assert_kernel",
    "audit",
    "audit_on_device",
    "check",
    "invariance",
    "laws",
    "replay",
    "tolerance",
]
