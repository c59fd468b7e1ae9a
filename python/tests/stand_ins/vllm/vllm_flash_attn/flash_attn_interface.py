"""The one function that its layers call, on pages and on packed keys."""

from plain_attention import packed, pages


def flash_attn_varlen_func(q, k, v, max_seqlen_q, cu_seqlens_q, max_seqlen_k, cu_seqlens_k=None, seqused_k=None,
                           q_v=None, dropout_p=0.0, softmax_scale=None, causal=False, window_size=None, softcap=0.0,
                           alibi_slopes=None, deterministic=False, return_attn_probs=False, block_table=None,
                           return_softmax_lse=False, out=None, scheduler_metadata=None, q_descale=None,
                           k_descale=None, v_descale=None, num_splits=0, fa_version=2, s_aux=None, cp_world_size=1,
                           cp_rank=0, cp_tot_seqused_k=None):  # fmt: skip
    if block_table is not None:
        k, v = ([pages(x, t, n) for t, n in zip(block_table, seqused_k)] for x in (k, v))
    made, lse = packed(q, k, v, cu_seqlens_q, cu_seqlens_k, scale=softmax_scale, causal=causal,
                       window=window_size or (-1, -1), softcap=softcap, slopes=alibi_slopes, sink=s_aux)  # fmt: skip
    if out is not None:
        made = out.copy_(made)
    return (made, lse) if return_softmax_lse else made
