import torch


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False,
                           state_batch_indices=None):  # fmt: skip
    """One token, whose state is written over."""
    heads = state.shape[1]
    B, C = (one.float().repeat_interleave(heads // one.shape[1], 1) for one in (B, C))
    step = dt.float() if dt_bias is None else dt.float() + dt_bias
    step = torch.nn.functional.softplus(step) if dt_softplus else step
    decay = (step[..., None] * A).exp()
    state.copy_(state * decay + (step * x.float())[..., None] * B[:, :, None, :])
    out = (state * C[:, :, None, :]).sum(-1)
    out = out if D is None else out + D * x.float()
    out = out if z is None else out * torch.nn.functional.silu(z.float())
    return out.to(x.dtype)
