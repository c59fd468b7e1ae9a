"""Its Triton kernel on a cache in pages, which writes into an argument."""

from plain_attention import packed, pages


def unified_attention(q, k, v, out, cu_seqlens_q, max_seqlen_q, seqused_k, max_seqlen_k, softmax_scale, causal,
                      window_size, block_table, softcap, q_descale, k_descale, v_descale, seq_threshold_3D=None,
                      num_par_softmax_segments=None, softmax_segm_output=None, softmax_segm_max=None,
                      softmax_segm_expsum=None, alibi_slopes=None, output_scale=None, qq_bias=None, sinks=None):  # fmt: skip
    keys, values = ([pages(x, t, n) for t, n in zip(block_table, seqused_k)] for x in (k, v))
    made, _ = packed(q, keys, values, cu_seqlens_q, None, scale=softmax_scale, causal=causal, window=window_size,
                     softcap=softcap, slopes=alibi_slopes, sink=sinks)  # fmt: skip
    out.copy_(made)
