"""Stands in for FlashInfer: its functions and wrappers by their signatures, in PyTorch on the CPU."""

import functools
import math

import torch
from plain_attention import Faults, attend, packed

_BASE = math.log(2)


def _given(out, lse, dtype, return_lse):
    # Its LSE is in base 2, with heads last.
    return (out.to(dtype), lse.mT / _BASE) if return_lse else out.to(dtype)


def _rows_first(x, layout):
    return x.transpose(-3, -2) if layout == "HND" else x


def single_prefill_with_kv_cache(q, k, v, scale_q=None, scale_k=None, scale_v=None, o_dtype=None, custom_mask=None,
                                 packed_custom_mask=None, causal=False, kv_layout="NHD", pos_encoding_mode="NONE",
                                 use_fp16_qk_reduction=False, sm_scale=None, window_left=-1, logits_soft_cap=None,
                                 rope_scale=None, rope_theta=None, backend="auto", return_lse=False,
                                 kv_cache_sf=None, k_scale=None, v_scale=None):  # fmt: skip
    k, v = (_rows_first(x, kv_layout) for x in (k, v))
    scale = q.shape[-1] ** -0.5 if sm_scale is None else sm_scale
    scale *= 1 if k_scale is None or Faults.now == "k_descale" else k_scale
    out, lse = attend(q, k, v, scale=scale, causal=causal and custom_mask is None, window=(window_left, -1),
                      softcap=logits_soft_cap or 0.0, mask=custom_mask)  # fmt: skip
    return _given(out, lse, q.dtype, return_lse)


single_prefill_with_kv_cache_return_lse = functools.partial(
    single_prefill_with_kv_cache, return_lse=True
)


def single_decode_with_kv_cache(q, k, v, kv_layout="NHD", pos_encoding_mode="NONE", use_tensor_cores=False,
                                q_scale=None, k_scale=None, v_scale=None, window_left=-1, logits_soft_cap=None,
                                sm_scale=None, rope_scale=None, rope_theta=None, return_lse=False):  # fmt: skip
    k, v = (_rows_first(x, kv_layout) for x in (k, v))
    out, lse = attend(
        q[None], k, v, scale=sm_scale, window=(window_left, -1), softcap=logits_soft_cap or 0.0
    )
    made = _given(out, lse, q.dtype, return_lse)
    return (made[0][0], made[1][0]) if return_lse else made[0]


class _Wrapper:
    def __init__(self, float_workspace_buffer, kv_layout="NHD", backend="auto"):
        self._kv_layout, self._backend = kv_layout, backend

    def _pages(self, cache, place):
        x = cache[place] if isinstance(cache, tuple) else cache[:, place]
        x = _rows_first(x, self._kv_layout)
        begin, pages, last = self._lists
        found = []
        for i, tail in enumerate(last.tolist()):
            own = x[pages[begin[i] : begin[i + 1]].long()]
            found.append(own.flatten(0, 1)[: (len(own) - 1) * x.shape[1] + tail])
        return found

    def _run(self, q, k, v, ends_q, ends_k, return_lse):
        return _given(*packed(q, k, v, ends_q, ends_k, **self._settings), q.dtype, return_lse)


class BatchPrefillWithPagedKVCacheWrapper(_Wrapper):
    def plan(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads,
             head_dim_qk, page_size, head_dim_vo=None, custom_mask=None, packed_custom_mask=None, causal=False,
             pos_encoding_mode="NONE", use_fp16_qk_reduction=False, sm_scale=None, window_left=-1,
             logits_soft_cap=None, rope_scale=None, rope_theta=None, q_data_type="float16", kv_data_type=None,
             non_blocking=True):  # fmt: skip
        self._ends = qo_indptr.clone()
        self._lists = [
            x.clone() for x in (paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len)
        ]
        self._settings = {"scale": sm_scale, "causal": causal, "window": (window_left, -1),
                          "softcap": logits_soft_cap or 0.0}  # fmt: skip

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None, lse=None,
            return_lse=False, enable_pdl=None, window_left=None, sinks=None):  # fmt: skip
        k, v = (self._pages(paged_kv_cache, place) for place in (0, 1))
        return self._run(q, k, v, self._ends, None, return_lse)

    run_return_lse = functools.partialmethod(run, return_lse=True)


class BatchPrefillWithRaggedKVCacheWrapper(_Wrapper):
    def plan(self, qo_indptr, kv_indptr, num_qo_heads, num_kv_heads, head_dim_qk, head_dim_vo=None, custom_mask=None,
             packed_custom_mask=None, causal=False, pos_encoding_mode="NONE", use_fp16_qk_reduction=False,
             window_left=-1, logits_soft_cap=None, sm_scale=None):  # fmt: skip
        self._ends = qo_indptr.clone(), kv_indptr.clone()
        self._settings = {"scale": sm_scale, "causal": causal, "window": (window_left, -1),
                          "softcap": logits_soft_cap or 0.0}  # fmt: skip

    def run(self, q, k, v, *args, q_scale=None, k_scale=None, v_scale=None, return_lse=False):
        return self._run(q, k, v, *self._ends, return_lse)


class BatchDecodeWithPagedKVCacheWrapper(_Wrapper):
    def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size,
             *deprecated_positional_args, **kwargs):  # fmt: skip
        self._lists = [x.clone() for x in (indptr, indices, last_page_len)]
        self._settings = {"scale": kwargs.get("sm_scale"), "window": (kwargs.get("window_left", -1), -1),
                          "softcap": kwargs.get("logits_soft_cap") or 0.0}  # fmt: skip

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, return_lse=False,
            window_left=None, sinks=None):  # fmt: skip
        k, v = (self._pages(paged_kv_cache, place) for place in (0, 1))
        return self._run(q, k, v, torch.arange(len(q) + 1), None, return_lse)
