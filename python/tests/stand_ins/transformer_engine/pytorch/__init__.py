"""Its attention of PyTorch, on the CPU."""

from types import SimpleNamespace

import torch
from plain_attention import Faults, attend, packed


def from_first(rows, keys, window):
    """Which keys a query sees by a window that begins at the first key."""
    i, j = torch.arange(rows)[:, None], torch.arange(keys)[None]
    shift = keys - rows if Faults.now == "bottom-right" else 0
    seen = j <= i + shift
    return seen & (j >= i + shift - window[0]) if window[0] >= 0 else seen


class DotProductAttention(torch.nn.Module):
    def __init__(self, num_attention_heads, kv_channels, num_gqa_groups=None, attention_dropout=0.0,
                 attn_mask_type="causal", window_size=None, qkv_format="sbhd", softmax_scale=None, cp_group=None):  # fmt: skip
        super().__init__()
        self.attention_dropout, self.attn_mask_type = attention_dropout, attn_mask_type
        self.window_size, self.qkv_format, self.cp_group = window_size, qkv_format, cp_group
        self.softmax_type, self.bottom_right_diagonal, self.fp8 = "vanilla", None, False
        scale = kv_channels**-0.5 if softmax_scale is None else softmax_scale
        self.unfused_attention = SimpleNamespace(softmax_scale=scale)

    def forward(self, query_layer, key_layer, value_layer, attention_mask=None, qkv_format=None, cu_seqlens_q=None,
                cu_seqlens_kv=None, cu_seqlens_q_padded=None, cu_seqlens_kv_padded=None, max_seqlen_q=None,
                max_seqlen_kv=None, attn_mask_type=None, window_size=None, bottom_right_diagonal=None,
                checkpoint_core_attention=False, core_attention_bias_type="no_bias", core_attention_bias=None,
                alibi_slopes=None, fast_zero_fill=True, inference_params=None):  # fmt: skip
        order, kind = qkv_format or self.qkv_format, attn_mask_type or self.attn_mask_type
        window = window_size or self.window_size or (-1, -1)
        q, k, v = query_layer, key_layer, value_layer
        beside = {"scale": self.unfused_attention.softmax_scale, "bias": None}
        if order == "thd":
            causal = "causal" in kind
            out, _ = packed(q, k, v, cu_seqlens_q, cu_seqlens_kv, causal=causal, **beside)
            return out.flatten(-2)
        if order == "sbhd":
            q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        if "padding" in kind:
            return self._padded(q, k, v, cu_seqlens_q.diff(), cu_seqlens_kv.diff(), kind, beside)
        if kind == "causal":
            beside["mask"] = from_first(q.shape[1], k.shape[1], window)
        elif kind == "arbitrary":
            beside["mask"] = ~attention_mask[0, 0]
        else:
            beside.update(causal="causal" in kind, window=window)
        if core_attention_bias is not None:
            beside["bias"] = core_attention_bias[0]
        out = torch.stack([attend(*one, **beside)[0] for one in zip(q, k, v)]).to(q.dtype)
        out = out.transpose(0, 1) if order == "sbhd" else out
        return out.flatten(-2)

    def _padded(self, q, k, v, rows, keys, kind, beside):
        """Sequences of their own lengths, each in a row of the batch."""
        out = torch.zeros_like(q)
        for i in range(len(q)):
            one = [x[i, :n] for x, n in ((q, rows[i]), (k, keys[i]), (v, keys[i]))]
            seen = from_first(rows[i], keys[i], (-1, -1)) if kind == "padding_causal" else None
            out[i, : rows[i]] = attend(*one, mask=seen, **beside)[0]
        return out.flatten(-2)
