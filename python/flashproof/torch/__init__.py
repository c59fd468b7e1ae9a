"""Attention that PyTorch computes, judged call by call: `with flashproof.torch.judged_attention(): model(x)`."""

from .calls import JudgedCall, audit_call
from .judged_attention import JudgedAttention, NotJudgedWarning, judged_attention

__all__ = ["JudgedAttention", "JudgedCall", "NotJudgedWarning", "audit_call", "judged_attention"]
