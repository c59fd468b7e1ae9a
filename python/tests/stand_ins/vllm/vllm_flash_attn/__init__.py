"""Its copy of FlashAttention."""
