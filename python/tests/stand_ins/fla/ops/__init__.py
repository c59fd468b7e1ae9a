from .delta_rule import chunk_delta_rule, fused_recurrent_delta_rule
from .gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule
from .gla import chunk_gla, fused_recurrent_gla
from .linear_attn import chunk_linear_attn, fused_recurrent_linear_attn
from .retention import chunk_retention, fused_recurrent_retention
from .simple_gla import chunk_simple_gla, fused_recurrent_simple_gla

__all__ = [
    "chunk_delta_rule",
    "chunk_gated_delta_rule",
    "chunk_gla",
    "chunk_linear_attn",
    "chunk_retention",
    "chunk_simple_gla",
    "fused_recurrent_delta_rule",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_gla",
    "fused_recurrent_linear_attn",
    "fused_recurrent_retention",
    "fused_recurrent_simple_gla",
]
