"""Attention biases of xformers as words of a problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ..problem import NotJudgedError
from .arguments import Given, Words, is_tensor, same


def read_bias(words: Words) -> None:
    """
    Put what `attn_bias` asks for in its place. NotJudgedError for a class that is not known here.

    Facts: the classes of `xformers.ops.fmha.attn_bias`, xformers 0.0.35.
    """
    _read_sizes(words)
    given = words.pop("attn_bias", None)
    if given is None:
        return
    bias = given.value
    if is_tensor(bias):
        words["bias"] = Given(bias, given.argument, _bias_take(words, bias))
        return
    name = type(bias).__name__
    reader = _READERS.get(name)
    if reader is None:
        raise NotJudgedError(f"attn_bias is a {name}, which is not known here")
    reader(words, bias)


def _bias_take(words: Words, bias: Tensor) -> Callable[[Tensor], Tensor]:
    dims = words["q"].value.dim()
    if bias.dim() == dims == 4:
        return same
    if dims == 3 and bias.dim() == 3:
        return lambda x: x[:, None]
    if dims == 5 and bias.dim() == 5:
        return lambda x: x.flatten(1, 2)
    raise NotJudgedError(f"attn_bias has {list(bias.shape)} of inputs with {dims} dimensions")


def _read_sizes(words: Words) -> None:
    """[batch, rows, heads, dim], of [batch, rows, dim] and of [batch, rows, groups, heads, dim]."""
    dims = words["q"].value.dim()
    if dims == 4:
        return
    if dims == 3:
        shape: Callable[[Tensor], Tensor] = lambda x: x[:, :, None]  # noqa: E731
    elif dims == 5:
        shape = lambda x: x.flatten(2, 3)  # noqa: E731
    else:
        raise NotJudgedError(f"query has {dims} dimensions")
    for name in ("q", "k", "v"):
        words[name] = words[name].then(shape)
    words["out_as"] = Given(None, None, shape)


def _set(words: Words, **values: Any) -> None:
    words.update({name: Given(value) for name, value in values.items()})


def _causal(words: Words, _bias: Any) -> None:
    _set(words, causal=True, from_first=True)


def _causal_to_last(words: Words, _bias: Any) -> None:
    _set(words, causal=True)


def _causal_local(words: Words, bias: Any) -> None:
    # The window counts the query's own key.
    _set(words, causal=True, window=(bias._window_size - 1, -1))


def _causal_with_tensor(words: Words, bias: Any) -> None:
    _set(words, causal=True, from_first=True)
    words["bias"] = Given(bias._bias, None, _bias_take(words, bias._bias))


def _local(words: Words, bias: Any) -> None:
    _set(words, window=(bias.window_left, bias.window_right))


def _blocks(words: Words, bias: Any) -> None:
    """Sequences one behind the other in a batch of one."""
    for name in ("q", "k", "v"):
        words[name] = words[name].then(_first)
    out = words.get("out_as", Given(None)).then(_first)
    words["out_as"] = out
    _set(words, cu_seqlens_q=bias.q_seqinfo.seqstart, cu_seqlens_k=bias.k_seqinfo.seqstart)


def _first(x: Tensor) -> Tensor:
    return x.squeeze(0)


def _causal_blocks(words: Words, bias: Any) -> None:
    _blocks(words, bias)
    _causal(words, bias)


def _causal_blocks_to_last(words: Words, bias: Any) -> None:
    _blocks(words, bias)
    _set(words, causal=True)


def _padded_keys(words: Words, bias: Any) -> None:
    _blocks(words, bias)
    _set(words, seqused_k=bias.k_seqinfo.seqlen)


def _causal_padded_keys(words: Words, bias: Any) -> None:
    _padded_keys(words, bias)
    _set(words, causal=True)


_READERS: dict[str, Callable[[Words, Any], None]] = {
    "LowerTriangularMask": _causal,
    "LowerTriangularFromBottomRightMask": _causal_to_last,
    "LowerTriangularFromBottomRightLocalAttentionMask": _causal_local,
    "LowerTriangularMaskWithTensorBias": _causal_with_tensor,
    "LocalAttentionFromBottomRightMask": _local,
    "BlockDiagonalMask": _blocks,
    "BlockDiagonalCausalMask": _causal_blocks,
    "BlockDiagonalCausalFromBottomRightMask": _causal_blocks_to_last,
    "BlockDiagonalPaddedKeysMask": _padded_keys,
    "BlockDiagonalCausalWithOffsetPaddedKeysMask": _causal_padded_keys,
}
