"""FlashAttention-2's functions."""

import torch
from plain_attention import each, packed, pages


def _given(made, return_attn_probs):
    out, lse = made
    # Rows without keys have +∞, as its kernels have.
    return (out, torch.where(lse == -torch.inf, torch.inf, lse), None) if return_attn_probs else out


def _settings(scale, causal, window, softcap, slopes):
    return {
        "scale": scale,
        "causal": causal,
        "window": window,
        "softcap": softcap,
        "slopes": slopes,
    }


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1),
                    softcap=0.0, alibi_slopes=None, deterministic=False, return_attn_probs=False):  # fmt: skip
    settings = _settings(softmax_scale, causal, window_size, softcap, alibi_slopes)
    return _given(each(q, k, v, **settings), return_attn_probs)


def flash_attn_qkvpacked_func(qkv, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1),
                              softcap=0.0, alibi_slopes=None, deterministic=False, return_attn_probs=False):  # fmt: skip
    settings = _settings(softmax_scale, causal, window_size, softcap, alibi_slopes)
    return _given(each(*qkv.unbind(2), **settings), return_attn_probs)


def flash_attn_kvpacked_func(q, kv, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1),
                             softcap=0.0, alibi_slopes=None, deterministic=False, return_attn_probs=False):  # fmt: skip
    settings = _settings(softmax_scale, causal, window_size, softcap, alibi_slopes)
    return _given(each(q, *kv.unbind(2), **settings), return_attn_probs)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                           softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                           alibi_slopes=None, deterministic=False, return_attn_probs=False, block_table=None):  # fmt: skip
    settings = _settings(softmax_scale, causal, window_size, softcap, alibi_slopes)
    ends = cu_seqlens_k
    if block_table is not None:
        lengths = cu_seqlens_k.diff()
        k, v = ([pages(x, t, n) for t, n in zip(block_table, lengths)] for x in (k, v))
        ends = None
    return _given(packed(q, k, v, cu_seqlens_q, ends, **settings), return_attn_probs)


def flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_seqlen, dropout_p=0.0, softmax_scale=None, causal=False,
                                     window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False,
                                     return_attn_probs=False):  # fmt: skip
    settings = _settings(softmax_scale, causal, window_size, softcap, alibi_slopes)
    return _given(packed(*qkv.unbind(1), cu_seqlens, cu_seqlens, **settings), return_attn_probs)


def flash_attn_varlen_kvpacked_func(q, kv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                                    softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                                    alibi_slopes=None, deterministic=False, return_attn_probs=False):  # fmt: skip
    settings = _settings(softmax_scale, causal, window_size, softcap, alibi_slopes)
    made = packed(q, *kv.unbind(1), cu_seqlens_q, cu_seqlens_k, **settings)
    return _given(made, return_attn_probs)


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None,
                            cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None, block_table=None,
                            softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                            rotary_interleaved=True, alibi_slopes=None, num_splits=0, return_softmax_lse=False):  # fmt: skip
    batch, rows = q.shape[:2]
    lengths = torch.as_tensor(cache_seqlens if cache_seqlens is not None else k_cache.shape[1])
    lengths = lengths.expand(batch).tolist()
    slots = range(batch) if cache_batch_idx is None else cache_batch_idx.tolist()
    keys, values = [], []
    for i, slot in enumerate(slots):
        if k is not None:
            k_cache[slot, lengths[i] : lengths[i] + k.shape[1]] = k[i]
            v_cache[slot, lengths[i] : lengths[i] + k.shape[1]] = v[i]
            lengths[i] += k.shape[1]
        start = 0 if cache_leftpad is None else cache_leftpad[i]
        for cache, found in ((k_cache, keys), (v_cache, values)):
            one = cache[slot] if block_table is None else pages(cache, block_table[i], lengths[i])
            found.append(one[start : lengths[i]])
    settings = _settings(softmax_scale, causal, window_size, softcap, alibi_slopes)
    ends = list(range(0, (batch + 1) * rows, rows))
    out, lse = packed(q.flatten(0, 1), keys, values, ends, None, **settings)
    out, lse = out.view(q.shape), lse.view(-1, batch, rows).transpose(0, 1)
    return (out, lse) if return_softmax_lse else out
