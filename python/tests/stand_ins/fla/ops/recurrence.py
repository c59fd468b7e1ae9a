import torch


class Faults:
    """What is wrong with every function, where a test says so."""

    output = 1.0
    gradient = 1.0


class _Scaled(torch.autograd.Function):
    """K as it is, and its gradient times `Faults.gradient`."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * Faults.gradient


def recurrence(q, k, v, g=None, beta=None, scale=None, initial_state=None, final=False,
               normalise=False, cu_seqlens=None):  # fmt: skip
    """The output in Q's format and the final state, token by token in fp32."""
    if cu_seqlens is not None:
        return _packed(q, k, v, g, beta, scale, initial_state, final, normalise, cu_seqlens)
    dtype = q.dtype
    heads = v.shape[2] // k.shape[2]
    q, k = (_wide(x, normalise).repeat_interleave(heads, 2) for x in (q, _Scaled.apply(k)))
    v = v.float()
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    batch, tokens, heads, dim = q.shape
    state = q.new_zeros(batch, heads, dim, v.shape[-1])
    if initial_state is not None:
        state = state + initial_state
    out = []
    for t in range(tokens):
        written = v[:, t]
        if g is not None:
            decay = g[:, t].float().exp()
            state = state * (decay[..., None, None] if decay.ndim == 2 else decay[..., None])
        if beta is not None:
            written = written - torch.einsum("bhk,bhkv->bhv", k[:, t], state)
            written = written * beta[:, t].float()[..., None]
        state = state + k[:, t, :, :, None] * written[..., None, :]
        out.append(torch.einsum("bhk,bhkv->bhv", q[:, t] * scale, state))
    return (torch.stack(out, 1) * Faults.output).to(dtype), state if final else None


def _wide(x, normalise):
    x = x.float()
    return x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() if normalise else x


def _packed(q, k, v, g, beta, scale, initial_state, final, normalise, ends):
    parts = []
    for i, (first, end) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist())):
        own = [None if x is None else x[:, first:end] for x in (q, k, v, g, beta)]
        state = None if initial_state is None else initial_state[i : i + 1]
        parts.append(recurrence(*own, scale, state, final, normalise))
    out, states = zip(*parts)
    return torch.cat(out, 1), torch.cat(states) if final else None
