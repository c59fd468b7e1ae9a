"""Calls of Transformer Engine's `DotProductAttention` as words of a problem."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..problem import NotJudgedError
from .arguments import Given, Words

#: Arguments of `forward` by their words: those that `read_attention` reads have a word of their own.
NAMES = {
    "self": "module",
    "query_layer": "q",
    "key_layer": "k",
    "value_layer": "v",
    "attention_mask": "hidden",
    "qkv_format": "format",
    "cu_seqlens_q": "cu_seqlens_q",
    "cu_seqlens_kv": "cu_seqlens_k",
    "cu_seqlens_q_padded": "padded_q",
    "cu_seqlens_kv_padded": "padded_k",
    "attn_mask_type": "mask_type",
    "window_size": "window",
    "bottom_right_diagonal": "to_last",
    "core_attention_bias_type": "bias_type",
    "core_attention_bias": "bias",
    "alibi_slopes": "alibi_slopes",
}
WITHOUT_MEANING = frozenset(
    ("max_seqlen_q", "max_seqlen_kv", "checkpoint_core_attention", "fast_zero_fill", "num_splits")
    + ("pad_between_seqs", "bf16_backward", "fp8_output", "qkv_interleave_dim")
)
_MASKS = ("no_mask", "padding", "causal", "padding_causal", "causal_bottom_right")


def read_attention(words: Words) -> None:
    """
    Put what a call and its module ask for in their place. NotJudgedError for what is not known here.

    Facts: `DotProductAttention` and `check_set_window_size` of Transformer Engine 2.20.
    """
    module = words["module"].value
    _check_module(module)
    kind = _chosen(words, "mask_type", module.attn_mask_type)
    kind = {"padding,causal": "padding_causal", "causal,padding": "padding_causal"}.get(kind, kind)
    if kind not in (*_MASKS, "padding_causal_bottom_right", "arbitrary"):
        raise NotJudgedError(f"attn_mask_type is {kind}, which is not known here")
    is_causal = "causal" in kind
    _read_window(words, module, kind, is_causal=is_causal)
    _read_hidden(words, kind)
    _read_bias(words)
    _read_format(words, module, kind)
    scale = getattr(module, "softmax_scale", None)
    if scale is None:
        scale = getattr(getattr(module, "unfused_attention", None), "softmax_scale", None)
    if scale is not None:
        words["scale"] = Given(scale)


def _check_module(module: Any) -> None:
    if module.training and getattr(module, "attention_dropout", 0) > 0:
        raise NotJudgedError(
            f"attention_dropout is {module.attention_dropout}, and which weights it dropped is not known"
        )
    if getattr(module, "cp_group", None) is not None:
        raise NotJudgedError("cp_group is set: each process has a part of the keys")
    if getattr(module, "softmax_type", "vanilla") != "vanilla":
        raise NotJudgedError(f"softmax_type is {module.softmax_type}, which is not known here")


def check_after(words: Words) -> None:
    """NotJudgedError where the module quantises Q, K and V itself, which it knows once it was called."""
    module = words["module"].value
    if getattr(module, "fp8", False) and module.fp8_meta["recipe"].fp8_dpa:
        raise NotJudgedError("the module computes in fp8, by factors of its own")


def _chosen(words: Words, name: str, own: Any) -> Any:
    given = words.pop(name, None)
    return own if given is None else given.value


def _read_window(words: Words, module: Any, kind: str, *, is_causal: bool) -> None:
    window = _chosen(words, "window", getattr(module, "window_size", None))
    to_last = _chosen(words, "to_last", getattr(module, "bottom_right_diagonal", None))
    if "bottom_right" in kind:
        to_last = True
    elif is_causal:
        to_last = False
    words["from_first"] = Given(to_last is False)
    words["causal"] = Given(is_causal)
    # Of a mask that is not causal (−1, 0) means no window.
    if window is not None and tuple(window) not in ((-1, -1), (-1, 0)):
        words["window"] = Given(tuple(window))


def _read_hidden(words: Words, kind: str) -> None:
    """A mask that is true where a key is hidden."""
    hidden = words.pop("hidden", None)
    if kind == "arbitrary" and hidden is not None:
        words["mask"] = Given(hidden.value, hidden.argument, torch.logical_not)
    elif hidden is not None and "padding" in kind and "cu_seqlens_q" not in words:
        raise NotJudgedError("attention_mask gives the padding; cu_seqlens_q would be judged")


def _read_bias(words: Words) -> None:
    kind = _chosen(words, "bias_type", "no_bias")
    if kind not in ("no_bias", "post_scale_bias", "alibi"):
        raise NotJudgedError(f"core_attention_bias_type is {kind}, which is not known here")
    if kind != "post_scale_bias":
        words.pop("bias", None)
    if kind == "alibi" and "alibi_slopes" not in words:
        raise NotJudgedError("alibi_slopes are the module's own")
    if kind != "alibi":
        words.pop("alibi_slopes", None)


def _read_format(words: Words, module: Any, kind: str) -> None:
    """Q, K, V and the output as [batch, rows, heads, dim], or [rows, heads, dim] of packed ones."""
    order = _chosen(words, "format", module.qkv_format)
    if order not in ("sbhd", "bshd", "thd"):
        raise NotJudgedError(f"qkv_format is {order}, which is not known here")
    for name in ("q", "k"):
        padded = words.pop(f"padded_{name}", None)
        ends = words.get(f"cu_seqlens_{name}")
        if padded is None or ends is None or padded.value is ends.value:
            continue
        if not torch.equal(padded.value, ends.value):
            words[f"seqused_{name}"] = Given(_differences(ends.value))
            words[f"cu_seqlens_{name}"] = padded
    heads = words["q"].value.shape[-2]
    words["out_as"] = Given(None, None, lambda x: x.unflatten(-1, (heads, -1)))
    if order == "thd":
        return
    lengths = {name: words.pop(f"cu_seqlens_{name}", None) for name in ("q", "k")}
    if "padding" in kind:
        for name, ends in lengths.items():
            if ends is None:
                raise NotJudgedError(
                    f"attn_mask_type is {kind} without cu_seqlens_q and cu_seqlens_kv"
                )
            words[f"seqused_{name}"] = Given(_differences(ends.value))
    if order == "sbhd":
        for name in ("q", "k", "v"):
            words[name] = words[name].then(_batch_first)
        words["out_as"] = words["out_as"].then(_batch_first)


def _batch_first(x: Tensor) -> Tensor:
    return x.transpose(0, 1)


def _differences(ends: Tensor) -> Tensor:
    return ends[1:] - ends[:-1]
