"""Its attention, in PyTorch on the CPU."""

import torch
from plain_attention import attend, each, packed

from . import attn_bias as biases
from .attn_bias import LowerTriangularMask as LowerTriangularMask


def memory_efficient_attention(
    query, key, value, attn_bias=None, p=0.0, scale=None, *, op=None, output_dtype=None
):
    q, k, v = query, key, value
    if q.dim() == 3:
        q, k, v = (x[:, :, None] for x in (q, k, v))
    elif q.dim() == 5:
        q, k, v = (x.flatten(2, 3) for x in (q, k, v))
    if isinstance(attn_bias, torch.Tensor):
        bias = attn_bias.flatten(1, 2) if attn_bias.dim() == 5 else attn_bias
        made = [attend(*one, scale=scale, bias=own)[0] for *one, own in zip(q, k, v, bias)]
        return torch.stack(made).to(query.dtype).view(query.shape)
    name = type(attn_bias).__name__
    if name.startswith("BlockDiagonal"):
        ends_q, ends_k = attn_bias.q_seqinfo.seqstart, attn_bias.k_seqinfo.seqstart
        keys, values = k[0], v[0]
        if "PaddedKeys" in name:
            lengths = attn_bias.k_seqinfo.seqlen
            keys, values = ([x[s : s + n] for s, n in zip(ends_k, lengths)] for x in (keys, values))
            ends_k = None
        out, _ = packed(q[0], keys, values, ends_q, ends_k, scale=scale, causal="Causal" in name)
        return out[None].view(query.shape)
    return each(q, k, v, scale=scale, **biases.settings(attn_bias, q.shape[1], k.shape[1]))[0].view(
        query.shape
    )
