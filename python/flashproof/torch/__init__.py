"""Attention that PyTorch computes, judged call by call: `with flashproof.torch.judged_attention(): model(x)`."""

from .calls import audit_call
from .judged_attention import JudgedAttention, judged_attention
from .judged_recurrences import JudgedRecurrences
from .verdicts import JudgedCall, NotJudgedWarning

__all__ = [
    "JudgedAttention",
    "JudgedCall",
    "JudgedRecurrences",
    "NotJudgedWarning",
    "audit_call",
    "judged_attention",
]
