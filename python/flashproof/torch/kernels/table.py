"""Public kernels of attention, as data: where they are, and how their calls are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import flashinfer, transformer_engine
from .flash_attention_4 import read_window
from .row import Row
from .xformers_bias import read_bias

#: FlashAttention's arguments, of all its releases, by their words.
FLASH_NAMES = {
    "q": "q",
    "k": "k",
    "v": "v",
    "qkv": "qkv",
    "kv": "kv",
    "softmax_scale": "scale",
    "causal": "causal",
    "window_size": "window",
    "softcap": "softcap",
    "alibi_slopes": "alibi_slopes",
    "dropout_p": "dropout",
    "cu_seqlens": "cu_seqlens",
    "cu_seqlens_q": "cu_seqlens_q",
    "cu_seqlens_k": "cu_seqlens_k",
    "seqused_q": "seqused_q",
    "seqused_k": "seqused_k",
    "leftpad_k": "leftpad_k",
    "block_table": "block_table",
    "page_table": "block_table",
    "q_descale": "q_descale",
    "k_descale": "k_descale",
    "v_descale": "v_descale",
    "learnable_sink": "sink",
    "s_aux": "sink",
    "sinks": "sink",
}
#: The same of functions on a cache.
CACHE_NAMES = {
    **FLASH_NAMES,
    "k_cache": "k",
    "v_cache": "v",
    "k": "k_new",
    "v": "v_new",
    "cache_seqlens": "seqused_k",
    "cache_leftpad": "leftpad_k",
    "cache_batch_idx": "cache_batch_idx",
    "cu_seqlens_k_new": "cu_seqlens_k_new",
}
FLASH_WITHOUT_MEANING = frozenset(
    ("deterministic", "return_attn_probs", "return_softmax_lse", "return_lse", "max_seqlen")
    + ("max_seqlen_q", "max_seqlen_k", "min_seqlen_k", "num_splits", "pack_gqa", "sm_margin")
    + ("scheduler_metadata", "rotary_interleaved", "out", "seqlen_k_per_split", "fa_version")
    + ("disable_scheduler_metadata", "num_heads_q", "ver")
)


def _flash(names: Mapping[str, str] = FLASH_NAMES, **others: object) -> Row:
    return Row(names, FLASH_WITHOUT_MEANING, **others)  # type: ignore[arg-type]


_FLASH_2 = _flash(
    results=("out", "lse", None), has_lse_of_empty_rows=True, leaves_out_alibi_of_rows=True
)
_FLASH_2_CACHE = _flash(CACHE_NAMES, has_lse_of_empty_rows=True, leaves_out_alibi_of_rows=True)
_FLASH_3 = _flash(premises_of_8_bits="fa3-fp8", has_factors_of_8_bits_alone=True)
_FLASH_3_CACHE = _flash(CACHE_NAMES, premises_of_8_bits="fa3-fp8", has_factors_of_8_bits_alone=True)
_FLASH_4 = _flash(adapt=read_window)
#: vLLM's own copy of both: what either of them leaves out counts.
_FLASH_2_OR_3 = replace(_FLASH_3, has_lse_of_empty_rows=True, leaves_out_alibi_of_rows=True)
_XFORMERS_NAMES = {
    "query": "q",
    "key": "k",
    "value": "v",
    "attn_bias": "attn_bias",
    "p": "dropout",
    "scale": "scale",
}
#: Its LSE is padded, and is not judged.
_XFORMERS = Row(
    _XFORMERS_NAMES, frozenset(("op", "output_dtype")), results=("out", None), adapt=read_bias
)
_XFORMERS_FUNCTIONS = {
    "memory_efficient_attention": _XFORMERS,
    "memory_efficient_attention_forward": _XFORMERS,
    "memory_efficient_attention_forward_requires_grad": _XFORMERS,
}


def _flashinfer(adapt: object, **others: object) -> Row:
    return Row(
        flashinfer.NAMES,
        flashinfer.WITHOUT_MEANING,
        lse_has_heads_last=True,
        lse_base=2,
        premises_of_8_bits="flashinfer-fp8",
        adapt=adapt,  # type: ignore[arg-type]
        **others,  # type: ignore[arg-type]
    )


_SINGLE = _flashinfer(flashinfer.read_single)
_WRAPPED = _flashinfer(flashinfer.read_wrapped, plan="plan")
_DECODE = _flashinfer(flashinfer.read_decode, plan="plan")

#: By module and name, methods as `Class.method`. Facts: the signatures of flash_attn 2.8, of FlashAttention-3's flash_attn_interface and
#: FlashAttention-4's flash_attn.cute, of vLLM's and SGLang's copies, of Transformer Engine 2.20, FlashInfer 0.6.18 and xformers 0.0.35,
#: in their repositories of August 2026.
PUBLIC_KERNELS: Mapping[str, Mapping[str, Row]] = {
    "flash_attn.flash_attn_interface": {
        **dict.fromkeys(
            ("flash_attn_func", "flash_attn_qkvpacked_func", "flash_attn_kvpacked_func")
            + ("flash_attn_varlen_func", "flash_attn_varlen_qkvpacked_func")
            + ("flash_attn_varlen_kvpacked_func",),
            _FLASH_2,
        ),
        "flash_attn_with_kvcache": _FLASH_2_CACHE,
    },
    "flash_attn_interface": {
        "flash_attn_func": _FLASH_3,
        "flash_attn_varlen_func": _FLASH_3,
        "flash_attn_with_kvcache": _FLASH_3_CACHE,
    },
    "flash_attn.cute.interface": {
        "flash_attn_func": _FLASH_4,
        "flash_attn_varlen_func": _FLASH_4,
    },
    "vllm.vllm_flash_attn.flash_attn_interface": {"flash_attn_varlen_func": _FLASH_2_OR_3},
    "sgl_kernel.flash_attn": {
        "flash_attn_varlen_func": _FLASH_3,
        "flash_attn_with_kvcache": _FLASH_3_CACHE,
    },
    "transformer_engine.pytorch": {
        "DotProductAttention.forward": Row(
            transformer_engine.NAMES,
            transformer_engine.WITHOUT_MEANING,
            results=("out", None),
            adapt=transformer_engine.read_attention,
            check_after=transformer_engine.check_after,
        ),
    },
    "flashinfer": {
        "single_prefill_with_kv_cache": _SINGLE,
        "single_prefill_with_kv_cache_return_lse": _SINGLE,
        "single_decode_with_kv_cache": _SINGLE,
        "BatchPrefillWithPagedKVCacheWrapper.run": _WRAPPED,
        "BatchPrefillWithPagedKVCacheWrapper.run_return_lse": _WRAPPED,
        "BatchPrefillWithRaggedKVCacheWrapper.run": _WRAPPED,
        "BatchPrefillWithRaggedKVCacheWrapper.run_return_lse": _WRAPPED,
        "BatchDecodeWithPagedKVCacheWrapper.run": _DECODE,
        "BatchDecodeWithPagedKVCacheWrapper.run_return_lse": _DECODE,
    },
    "xformers.ops.fmha": _XFORMERS_FUNCTIONS,
    "mslk.attention.fmha": _XFORMERS_FUNCTIONS,
}
