"""Attention judged on the device that its tensors lie on, by PyTorch in fp64.

``judge`` gives the verdict of ``flashproof audit`` for problems of bf16, fp16, fp32, e4m3 and e5m2
tensors with masks of any kind, a bias, ALiBi, a sink, a softcap, factors of heads, grouped heads, and
sequences of their own lengths, in pages perhaps (``posed_problem``); and of gradients where the inputs
have 16 bits, causal and window masks, and no softcap. What it does not decide it hands to the command
line, and says so.
``exact_gradients`` gives gradients with a radius.
"""

from .backward import BackwardFindings, KernelGradients
from .command_line import Auditor, AuditReport, CommandLineError, run_command_line
from .features import Features
from .gradients import Gradient, Gradients, exact_gradients
from .judge import USUAL_FALSE_ALARM_RATE, DeviceVerdict, judge, judge_here
from .measure import DeviceFindings
from .posing import NotPosedError, PosedProblem, posed_problem
from .problem import AttentionProblem, KernelOutputs

__all__ = [
    "USUAL_FALSE_ALARM_RATE",
    "AttentionProblem",
    "AuditReport",
    "Auditor",
    "BackwardFindings",
    "CommandLineError",
    "DeviceFindings",
    "DeviceVerdict",
    "Features",
    "Gradient",
    "Gradients",
    "KernelGradients",
    "KernelOutputs",
    "NotPosedError",
    "PosedProblem",
    "exact_gradients",
    "judge",
    "judge_here",
    "posed_problem",
    "run_command_line",
]
