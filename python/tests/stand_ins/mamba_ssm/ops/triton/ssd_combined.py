import torch


def mamba_chunk_scan_combined(x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None,
                              initial_states=None, seq_idx=None, cu_seqlens=None,
                              dt_softplus=False, dt_limit=(0.0, float("inf")),
                              return_final_states=False, return_varlen_states=False):  # fmt: skip
    """Mamba-2 token by token in fp32."""
    dtype, (batch, tokens, heads, dim) = x.dtype, x.shape
    x, dt, B, C = (one.float() for one in (x, dt, B, C))
    B, C = (one.repeat_interleave(heads // one.shape[2], 2) for one in (B, C))
    step = dt if dt_bias is None else dt + dt_bias
    step = torch.nn.functional.softplus(step) if dt_softplus else step
    step = step.clamp(*dt_limit)
    state = x.new_zeros(batch, heads, dim, B.shape[-1])
    if initial_states is not None:
        state = state + initial_states
    out = []
    for t in range(tokens):
        if seq_idx is not None and t > 0:
            state = state * (seq_idx[:, t] == seq_idx[:, t - 1])[:, None, None, None]
        state = state * (step[:, t] * A).exp()[:, :, None, None]
        value = step[:, t, :, None] * x[:, t]
        state = state + value[..., None] * B[:, t, :, None, :]
        y = (state * C[:, t, :, None, :]).sum(-1)
        y = y if D is None else y + (D[:, None] if D.ndim == 1 else D) * x[:, t]
        out.append(y if z is None else y * torch.nn.functional.silu(z[:, t].float()))
    made = torch.stack(out, 1).to(dtype)
    return (made, state) if return_final_states else made
