"""A chunk of tokens as kernels compute it: its exact parts, and what drawn roundings make of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..formats import FORMATS, NumberFormat
from .roundings import CUT_DOTS, Noise, Unrounded
from .runs import Run


@dataclass(frozen=True)
class Chunk:
    """
    The parts of a chunk of n tokens, [entries, …], by the words of docs/theory/bounds-recurrent.md.

    E are the decays from its beginning to each token, `to_end` those from a token to its end: [entries, n, 1 or key dim].
    """

    q: Tensor
    k: Tensor
    v: Tensor
    from_start: Tensor
    to_end: Tensor
    #: P, [entries, n, n].
    intra: Tensor
    #: A of delta writes, T, β k E and β v; None of additive writes.
    triangle: Tensor | None
    inverse: Tensor | None
    key_operand: Tensor | None
    value_operand: Tensor | None
    is_by_dim: bool
    #: Whether what the state gets is rounded as an operand: a delta write, or one that decays by head.
    rounds_end_writes: bool


def chunk_of(run: Run, span: tuple[int, int]) -> Chunk:
    """The exact parts of the tokens of a span."""
    tokens = slice(*span)
    q, k, v = run.q[:, tokens], run.k[:, tokens], run.v[:, tokens]
    count = span[1] - span[0]
    one = torch.ones_like(k[:, :, :1])
    decay = one if run.decay is None else run.decay[:, tokens]
    is_by_dim = decay.shape[-1] > 1
    from_start = decay.cumprod(1)
    later = torch.cat([decay[:, 1:], torch.ones_like(decay[:, :1])], 1)
    to_end = later.flip(1).cumprod(1).flip(1)
    intra, triangle = torch.zeros(2, len(k), count, count, dtype=k.dtype, device=k.device)
    # Keys decayed to each token in turn: products of decays only, which never overflow.
    keys = torch.zeros_like(k)
    for s in range(count):
        keys = keys * decay[:, s : s + 1]
        keys[:, s] = k[:, s]
        intra[:, s] = (keys @ q[:, s, :, None])[..., 0]
        triangle[:, s, :s] = (keys[:, :s] @ k[:, s, :, None])[..., 0]
    if run.beta is None:
        rounds = run.decay is not None and not is_by_dim
        return Chunk(q, k, v, from_start, to_end, intra, None, None, None, None, is_by_dim, rounds)
    beta = run.beta[:, tokens, None]
    written = beta * triangle
    inverse = _inverse(written)
    operands = beta * from_start * k, beta * v
    return Chunk(q, k, v, from_start, to_end, intra, written, inverse, *operands, is_by_dim, True)


def _inverse(triangle: Tensor) -> Tensor:
    """(I + A)^-1."""
    unit = torch.eye(triangle.shape[-1], dtype=triangle.dtype, device=triangle.device)
    unit = unit.expand_as(triangle)
    return torch.linalg.solve_triangular(unit + triangle, unit, upper=False, unitriangular=True)


def leaning_chunk(
    chunk: Chunk, state: Tensor, scale: float, of: NumberFormat
) -> tuple[Tensor, Tensor]:
    """
    The outputs and the state behind the chunk, [entries, …], of a kernel whose decays go by key dimension and that rounds nothing, but
    whose dots within the chunk are all too large by what operands that are cut to tf32 may lose: all of one sense.
    """
    triangle = None if chunk.triangle is None else chunk.triangle * (1 + CUT_DOTS)
    leaning = replace(
        chunk,
        intra=chunk.intra * (1 + CUT_DOTS),
        triangle=triangle,
        inverse=None if triangle is None else _inverse(triangle),
    )
    out, behind = drawn_chunk(leaning, state[None], scale, of, Unrounded())
    return out[0], behind[0]


def drawn_parts(
    run: Run, span: tuple[int, int], exact: Chunk, of: NumberFormat, noise: Noise
) -> Chunk:
    """The parts of a chunk before operands are rounded, [1 or draws, entries, …]: with draws where Q and K are normalised first."""
    if not run.is_normalised:
        return Chunk(**{
            name: one[None] if isinstance(one, Tensor) else one for name, one in vars(exact).items()
        })  # fmt: skip
    draws = noise.draws
    tokens = slice(*span)

    def flat(x: Tensor | None) -> Tensor | None:
        return None if x is None else x[:, tokens].repeat(draws, *[1] * (x.dim() - 1))

    q, k = (noise.on(x[None, :, tokens], of).flatten(0, 1) for x in (run.q, run.k))
    v, decay, beta = flat(run.v), flat(run.decay), flat(run.beta)
    many = replace(run, q=q, k=k, v=run.v if v is None else v, decay=decay, beta=beta)
    parts = chunk_of(many, (0, span[1] - span[0]))
    return Chunk(**{
        name: one.unflatten(0, (draws, -1)) if isinstance(one, Tensor) else one
        for name, one in vars(parts).items()
    })  # fmt: skip


def drawn_chunk(
    chunk: Chunk, state: Tensor, scale: float, of: NumberFormat, noise: Noise | Unrounded
) -> tuple[Tensor, Tensor]:
    """
    The outputs and the state behind the chunk of a kernel whose operands are rounded, [draws, entries, …], from its state before.

    It makes the roundings of an audit's draws to the format of operands, of operands, T, W and U, N, P, and copies of states; of those to
    fp32 only that of the state itself.
    """
    copy = noise.on(state, of)
    if chunk.inverse is None or chunk.key_operand is None or chunk.value_operand is None:
        exact = writes = chunk.v
    else:
        count = chunk.inverse.shape[-1]
        unit = torch.eye(count, dtype=state.dtype, device=state.device)
        inverse = noise.on(chunk.inverse.tril(-1), of) + unit
        keys = noise.on(inverse @ noise.on(chunk.key_operand, of), of)
        values = noise.on(inverse @ noise.on(chunk.value_operand, of), of)
        exact = values - keys @ copy
        writes = noise.on(exact, of)
    queries = chunk.from_start * chunk.q
    if chunk.is_by_dim:
        queries = noise.on(queries, of)
    out = scale * (queries @ copy + noise.on(chunk.intra, of) @ writes)
    keys_end, writes_end = chunk.k, exact
    if chunk.is_by_dim:
        keys_end = noise.on(chunk.k * chunk.to_end, of)
    else:
        writes_end = exact * chunk.to_end
    if chunk.rounds_end_writes:
        writes_end = noise.on(writes_end, of)
    behind = chunk.from_start[..., -1, :, None] * state + keys_end.transpose(-1, -2) @ writes_end
    return out, noise.on(behind, FORMATS[torch.float32])
