"""Its kernels."""
