"""Attention in running code, judged call by call: `with flashproof.torch.judged_attention(): model(x)`."""

from .calls import audit_call
from .judged_attention import JudgedAttention, judged_attention
from .judged_call import JudgedCall
from .judged_recurrences import JudgedRecurrences
from .kernels import JudgedFunction, Kernel, judged
from .verdicts import NotJudgedWarning

__all__ = [
    "JudgedAttention",
    "JudgedCall",
    "JudgedFunction",
    "JudgedRecurrences",
    "Kernel",
    "NotJudgedWarning",
    "audit_call",
    "judged",
    "judged_attention",
]
