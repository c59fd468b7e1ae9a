"""Its masks, as far as they say what a query sees."""

from types import SimpleNamespace

import torch


class LowerTriangularMask:
    pass


class LowerTriangularFromBottomRightMask:
    pass


class LowerTriangularFromBottomRightLocalAttentionMask:
    def __init__(self, window):
        self._window_size = window


class LowerTriangularMaskWithTensorBias(LowerTriangularMask):
    def __init__(self, bias):
        self._bias = bias


class LocalAttentionFromBottomRightMask:
    def __init__(self, window_left, window_right):
        self.window_left, self.window_right = window_left, window_right


class BlockDiagonalMask:
    def __init__(self, ends_q, ends_k, lengths=None):
        self.q_seqinfo = SimpleNamespace(seqstart=ends_q)
        self.k_seqinfo = SimpleNamespace(seqstart=ends_k, seqlen=lengths)


class BlockDiagonalCausalFromBottomRightMask(BlockDiagonalMask):
    pass


class BlockDiagonalCausalWithOffsetPaddedKeysMask(BlockDiagonalMask):
    pass


class PagedBlockDiagonalGappyKeysMask(BlockDiagonalMask):
    pass


def settings(bias, rows, keys):
    """What a mask means."""
    name = type(bias).__name__
    if name == "LowerTriangularMask":
        return {"mask": torch.ones(rows, keys, dtype=torch.bool).tril()}
    if name == "LowerTriangularMaskWithTensorBias":
        return {"mask": torch.ones(rows, keys, dtype=torch.bool).tril(), "bias": bias._bias[0]}
    if name == "LowerTriangularFromBottomRightMask":
        return {"causal": True}
    if name == "LowerTriangularFromBottomRightLocalAttentionMask":
        return {"causal": True, "window": (bias._window_size - 1, -1)}
    if name == "LocalAttentionFromBottomRightMask":
        return {"window": (bias.window_left, bias.window_right)}
    return {}
