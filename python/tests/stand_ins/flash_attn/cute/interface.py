"""Its function for sequences of one length."""

from plain_attention import each


def flash_attn_func(q, k, v, qv=None, gather_kv_indices=None, softmax_scale=None, causal=False,
                    window_size=(None, None), learnable_sink=None, softcap=0.0, num_splits=1, pack_gqa=None,
                    deterministic=False, score_mod=None, return_lse=False):  # fmt: skip
    left, right = window_size[0], 0 if causal else window_size[1]
    if left is not None and right is not None and left + right < 0:
        left, right = None, None
    ends = [-1 if one is None else one for one in (left, right)]
    out, lse = each(
        q,
        k,
        v,
        scale=softmax_scale,
        causal=causal,
        window=ends,
        softcap=softcap,
        sink=learnable_sink,
    )
    return (out, lse) if return_lse else out
