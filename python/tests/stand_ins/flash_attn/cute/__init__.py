"""Stands in for FlashAttention-4."""
