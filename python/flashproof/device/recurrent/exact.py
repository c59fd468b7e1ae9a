"""The exact recurrence in fp64, token by token, with a radius."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..formats import FORMATS
from .roundings import half_ulp
from .runs import Run

CHUNK = 64
"""Tokens of a chunk whose first states are kept."""


@dataclass(frozen=True)
class Exact:
    """Exact values, and how far at most what stands here is from them."""

    out: Tensor
    #: Of each output: [entries, tokens, value dim].
    radius: Tensor
    state: Tensor
    #: Of each column of the final state, in the Euclidean norm: [entries, value dim].
    state_radius: Tensor
    #: The states before each chunk, [chunks, entries, key dim, value dim].
    starts: Tensor
    #: Of additive writes, what a kernel that goes token by token rounds the final state by in fp32.
    rounded: Rounded | None


@dataclass(frozen=True)
class Rounded:
    """Roundings of a state to fp32, one each token, by element: what they come to if independent, and at most."""

    variance: Tensor
    most: Tensor

    def after(self, decay: Tensor | None, state: Tensor) -> Rounded:
        """The same behind a further token, which decays what is there and rounds the state."""
        half = half_ulp(state, FORMATS[torch.float32])
        kept = 1.0 if decay is None else decay[..., None]
        return Rounded(kept * kept * self.variance + half.square() / 3, kept * self.most + half)


def exact_recurrence(run: Run, is_delta: bool) -> Exact:
    """
    The law, token by token: S ← d S, w = β (v − Sᵀk), or v, S ← S + k wᵀ, o = scale Sᵀq.

    The radius: a column of the state errs by ρ in the norm, ρ ← ‖Φ‖ ρ + what the token's own operations err by, ‖Φ‖ ≤
    max d · max(1, |1 − β‖k‖²|) (docs/theory/bounds-recurrent.md). A sum of n products errs by γ(n) in any order; c below is
    twice γ(key dim + 16), which holds the roundings of d, of the normalisation and of the radius itself as well.
    """
    dim = run.k.shape[-1]
    c = 2 * (dim + 16) * 2.0**-53
    state, error = run.state, torch.zeros_like(run.v[:, 0])
    key_norms, query_norms = (x.norm(dim=-1, keepdim=True) for x in (run.k, run.q))
    out, radius = torch.empty_like(run.v), torch.empty_like(run.v)
    starts = []
    nothing = torch.zeros_like(state)
    rounded = None if is_delta else Rounded(nothing, nothing)
    for t in range(run.tokens):
        if t % CHUNK == 0:
            starts.append(state)
        k, v, length = run.k[:, t], run.v[:, t], key_norms[:, t]
        growth: Tensor | float = 1.0
        if run.decay is not None:
            decay = run.decay[:, t]
            state = decay[..., None] * state
            growth = decay.amax(-1, keepdim=True)
        norms = state.norm(dim=1)
        written, own = v, torch.zeros_like(v)
        if is_delta and run.beta is not None:
            beta = run.beta[:, t, None]
            written = beta * (v - (k[:, None] @ state)[:, 0])
            own = c * beta.abs() * (v.abs() + length * norms)
            growth = growth * (1 - beta * length.square()).abs().clamp_min(1)
        state = state + k[:, :, None] * written[:, None]
        if rounded is not None:
            rounded = rounded.after(None if run.decay is None else run.decay[:, t], state)
        local = 2 * c * norms + length * (own + c * written.abs())
        error = (growth * error) * (1 + 2.0**-20) + local
        q_norm = query_norms[:, t] * abs(run.scale)
        out[:, t] = run.scale * (run.q[:, t, None] @ state)[:, 0]
        radius[:, t] = q_norm * (error + c * state.norm(dim=1))
    return Exact(out, radius, state, error, torch.stack(starts), rounded)
