"""Calls of FlashInfer as words of a problem."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from ..problem import NotJudgedError
from .arguments import Given, Words, is_tensor

#: Arguments of all functions by their words; those that a reader reads have a word of their own.
NAMES = {
    "q": "q",
    "k": "k",
    "v": "v",
    "sm_scale": "scale",
    "causal": "causal",
    "window_left": "window_left",
    "logits_soft_cap": "softcap",
    "custom_mask": "mask",
    "kv_layout": "kv_layout",
    "scale_q": "q_descale",
    "scale_k": "k_descale",
    "scale_v": "v_descale",
    "q_scale": "q_factor",
    "k_scale": "k_factor",
    "v_scale": "v_factor",
    "sinks": "sink",
    "pos_encoding_mode": "position",
    # Of plan.
    "self": "wrapper",
    "paged_kv_cache": "cache",
    "qo_indptr": "cu_seqlens_q",
    "kv_indptr": "cu_seqlens_k",
    "paged_kv_indptr": "paged_kv_indptr",
    "paged_kv_indices": "paged_kv_indices",
    "paged_kv_last_page_len": "paged_kv_last_page_len",
    "indptr": "paged_kv_indptr",
    "indices": "paged_kv_indices",
    "last_page_len": "paged_kv_last_page_len",
}
WITHOUT_MEANING = frozenset(
    ("backend", "return_lse", "rope_scale", "rope_theta", "o_dtype", "use_tensor_cores")
    + ("out", "lse", "enable_pdl", "non_blocking", "num_qo_heads", "num_kv_heads", "head_dim")
    + ("head_dim_qk", "head_dim_vo", "page_size", "q_data_type", "kv_data_type", "o_data_type")
    + ("data_type", "seq_lens", "seq_lens_q", "block_tables", "max_token_per_sequence")
    # Of one query for each sequence alone.
    + ("max_sequence_kv", "fixed_split_size", "disable_split_kv", "q_len_per_req")
)


def read_single(words: Words) -> None:
    """Put what a call for one sequence asks for in its place. NotJudgedError for what is not known here."""
    layout = words.pop("kv_layout", Given("NHD")).value
    if layout == "HND":
        for name in ("k", "v"):
            words[name] = words[name].then(_rows_first)
    elif layout != "NHD":
        raise NotJudgedError(f"kv_layout is {layout}, which is not known here")
    _check_position(words)
    _read_factors(words)
    # A mask that is given is all there is.
    if "mask" in words:
        words.pop("causal", None)


def read_wrapped(words: Words) -> None:
    """Put what `run` and the `plan` before it ask for in their place. NotJudgedError for what is not known here."""
    wrapper = words.pop("wrapper").value
    if getattr(wrapper, "_backend", None) == "cudnn":
        raise NotJudgedError("the cudnn backend counts elements, and not rows")
    if "mask" in words:
        raise NotJudgedError("custom_mask has the masks of all sequences in one row")
    _check_position(words)
    _read_factors(words)
    layout = getattr(wrapper, "_kv_layout", None)
    if layout not in ("NHD", "HND"):
        raise NotJudgedError(f"kv_layout is {layout}, which is not known here")
    _read_cache(words)
    if layout == "HND":
        swap = functools.partial(torch.transpose, dim0=-3, dim1=-2)
        for name in ("k", "v"):
            words[name] = words[name].then(swap)


def read_decode(words: Words) -> None:
    """The same, of one query for each sequence."""
    read_wrapped(words)
    sequences = words["paged_kv_indptr"].value.numel() - 1
    q = words["q"].value
    if q.shape[0] != sequences:
        raise NotJudgedError(f"q has {q.shape[0]} rows of {sequences} sequences")
    ends = torch.arange(sequences + 1, dtype=torch.int32, device=q.device)
    words["cu_seqlens_q"] = Given(ends)


def _read_cache(words: Words) -> None:
    """Keys and values of a cache that has both: a pair, or [pages, 2, …]."""
    cache = words.pop("cache", None)
    if cache is None:
        return
    value = cache.value
    if is_tensor(value):
        for place, name in enumerate(("k", "v")):
            words[name] = Given(value, cache.argument, functools.partial(_half, place=place))
        return
    for one, name in zip(value, ("k", "v")):
        words[name] = Given(one)


def _half(x: Tensor, place: int) -> Tensor:
    return x[:, place]


def _check_position(words: Words) -> None:
    mode = words.pop("position", Given("NONE")).value
    if mode != "NONE":
        raise NotJudgedError(f"pos_encoding_mode is {mode}: the kernel changes Q and K itself")


def _read_factors(words: Words) -> None:
    """Factors of all elements: those of Q and K join the scale; that of V comes onto a rounded output, and is not judged."""
    for name in ("q", "k"):
        given = words.pop(f"{name}_factor", None)
        if given is not None and f"{name}_descale" not in words:
            words[f"{name}_descale"] = given
        elif given is not None:
            raise NotJudgedError(f"{given.argument} is given beside scale_{name}")
    given = words.pop("v_factor", None)
    if given is not None and not _is_one(given.value):
        raise NotJudgedError(f"{given.argument} multiplies an output that is rounded already")


def _is_one(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 1


def _rows_first(x: Tensor) -> Tensor:
    return x.transpose(0, 1)
