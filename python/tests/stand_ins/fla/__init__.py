"""Functions that are called as flash-linear-attention's are, in plain PyTorch: for tests without a GPU."""
