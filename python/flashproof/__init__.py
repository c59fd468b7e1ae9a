"""Proof instead of allclose: verifies the numerics of attention kernels."""

from .audits import Tolerance, assert_attention, audit, audit_on_device, tolerance
from .caches import assert_cache_write, audit_cache_write
from .chains import ChainRecorder, Result, assert_chain, audit_chain, record_chain, result
from .checks import CheckReport, Promises, Replay, assert_kernel, check, laws, replay
from .judging import Budget, Candidate, Judgement, KernelContract, forms, judge
from .kernel_host import Declined
from .node import NodeNotFoundError
from .recurrences import assert_recurrent, audit_recurrent
from .recurrent import JudgedRecurrent, audit_recurrent_on_device, judged_recurrent
from .report import Finding, Report
from .safetensors import Array
from .server import RequestError
from .surroundings import InvarianceReport, invariance

__all__ = [
    "Array",
    "Budget",
    "Candidate",
    "ChainRecorder",
    "CheckReport",
    "Declined",
    "Finding",
    "InvarianceReport",
    "JudgedRecurrent",
    "Judgement",
    "KernelContract",
    "NodeNotFoundError",
    "Promises",
    "Replay",
    "Report",
    "RequestError",
    "Result",
    "Tolerance",
    "assert_attention",
    "assert_cache_write",
    "assert_chain",
    "assert_kernel",
    "assert_recurrent",
    "audit",
    "audit_cache_write",
    "audit_chain",
    "audit_on_device",
    "audit_recurrent",
    "audit_recurrent_on_device",
    "check",
    "forms",
    "invariance",
    "judge",
    "judged_recurrent",
    "laws",
    "record_chain",
    "replay",
    "result",
    "tolerance",
]
