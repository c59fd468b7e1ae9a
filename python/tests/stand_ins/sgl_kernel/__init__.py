"""Stands in for SGLang's kernels."""
