"""Stands in for FlashAttention-3's interface."""

import torch
from plain_attention import each, packed, pages, widened


def flash_attn_func(q, k, v, softmax_scale=None, causal=False, qv=None, q_descale=None, k_descale=None,
                    v_descale=None, window_size=(-1, -1), attention_chunk=0, softcap=0.0, num_splits=1,
                    pack_gqa=None, deterministic=False, sm_margin=0, return_attn_probs=False):  # fmt: skip
    dtype = torch.bfloat16 if q.dtype.itemsize == 1 else q.dtype
    q, k, v = widened(q, q_descale, "q"), widened(k, k_descale, "k"), widened(v, v_descale, "v")
    out, lse = each(
        q, k, v, scale=softmax_scale, causal=causal, window=window_size, softcap=softcap
    )
    return (out.to(dtype), lse) if return_attn_probs else out.to(dtype)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, seqused_q=None,
                           seqused_k=None, softmax_scale=None, causal=False, qv=None, q_descale=None,
                           k_descale=None, v_descale=None, window_size=(-1, -1), attention_chunk=0, softcap=0.0,
                           num_splits=1, pack_gqa=None, deterministic=False, sm_margin=0,
                           return_attn_probs=False):  # fmt: skip
    settings = {"scale": softmax_scale, "causal": causal, "window": window_size, "softcap": softcap}
    out, lse = packed(q, k, v, cu_seqlens_q, cu_seqlens_k, **settings)
    return (out, lse) if return_attn_probs else out


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, qv=None, rotary_cos=None, rotary_sin=None,
                            cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None, page_table=None,
                            cu_seqlens_q=None, cu_seqlens_k_new=None, max_seqlen_q=None, rotary_seqlens=None,
                            q_descale=None, k_descale=None, v_descale=None, softmax_scale=None, causal=False,
                            window_size=(-1, -1), attention_chunk=0, softcap=0.0, rotary_interleaved=True,
                            scheduler_metadata=None, num_splits=0, pack_gqa=None, sm_margin=0,
                            return_softmax_lse=False):  # fmt: skip
    keys, values = (
        [pages(x, t, n) for t, n in zip(page_table, cache_seqlens)] for x in (k_cache, v_cache)
    )
    settings = {"scale": softmax_scale, "causal": causal, "window": window_size, "softcap": softcap}
    out, lse = packed(q, keys, values, cu_seqlens_q, None, **settings)
    return (out, lse) if return_softmax_lse else out
