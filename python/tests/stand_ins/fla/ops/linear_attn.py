from .recurrence import recurrence


def _linear(q, k, v, scale, initial_state, final, normalize, cu_seqlens):
    out, state = recurrence(q, k, v, None, None, scale, initial_state, final, False, cu_seqlens)
    if not normalize:
        return out, state
    sums = (q * k.cumsum(1)).sum(-1, keepdim=True)
    return out / (sums + 1e-10), (state, k.sum(1, keepdim=True))


def chunk_linear_attn(q, k, v, scale=None, initial_state=None, output_final_state=False,
                      normalize=True, cu_seqlens=None):  # fmt: skip
    return _linear(q, k, v, scale, initial_state, output_final_state, normalize, cu_seqlens)


def fused_recurrent_linear_attn(q, k, v, scale=None, initial_state=None, output_final_state=False,
                                reverse=False, normalize=False, cu_seqlens=None):  # fmt: skip
    return _linear(q, k, v, scale, initial_state, output_final_state, normalize, cu_seqlens)
