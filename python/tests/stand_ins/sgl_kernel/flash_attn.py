"""Its copy of FlashAttention-3."""

from flash_attn_interface import flash_attn_with_kvcache as _flash_attn_with_kvcache


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, qv=None, cache_seqlens=None, page_table=None,
                            cu_seqlens_q=None, cu_seqlens_k_new=None, max_seqlen_q=None, q_descale=None,
                            k_descale=None, v_descale=None, softmax_scale=None, causal=False, window_size=(-1, -1),
                            softcap=0.0, num_splits=0, return_softmax_lse=False, sinks=None, ver=3):  # fmt: skip
    return _flash_attn_with_kvcache(
        q, k_cache, v_cache, cache_seqlens=cache_seqlens, page_table=page_table, cu_seqlens_q=cu_seqlens_q,
        softmax_scale=softmax_scale, causal=causal, window_size=window_size, softcap=softcap,
        return_softmax_lse=return_softmax_lse,
    )  # fmt: skip
