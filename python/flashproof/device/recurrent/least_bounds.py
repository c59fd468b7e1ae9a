"""What the worst case of a kernel in chunks is at least: the terms of its bound that come from a chunk and those just before."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..formats import NumberFormat
from .chunks import Chunk
from .roundings import half_ulp

FOLLOWED = 3
"""Chunks that errors are followed through: what further ones add to the worst case is left out, which only makes it less."""


@dataclass(frozen=True)
class ChunkErrors:
    """What a chunk's roundings do to the state behind it, each as keys [entries, r, n] whose products with rows count, and errors."""

    #: (matrix, error): |X matrix| error, X the rows by which the state is read later.
    terms: tuple[tuple[Tensor, Tensor], ...]
    #: By element of the state.
    local: Tensor
    #: What of the state before stays: X ← X Φ.
    transition: Tensor


def least_errors(
    chunk: Chunk, state: Tensor, of: NumberFormat, is_normalised: bool
) -> tuple[Tensor, Tensor, ChunkErrors]:
    """
    Of a chunk and the exact state before it: the error of the unscaled output at least, the rows x by which the state is read, and
    what the chunk does to later ones.

    These are terms of the worst case of docs/theory/bounds-recurrent.md ("What a chunk rounds"), those of operands' formats alone.
    """
    size, copy = state.abs(), half_ulp(state, of)
    keys = (chunk.k * chunk.to_end).transpose(-1, -2)
    decay = torch.diag_embed(chunk.from_start[:, -1].expand_as(chunk.k[:, -1]))
    reads = chunk.from_start * chunk.q
    out = half_ulp(reads, of) @ size if chunk.is_by_dim else torch.zeros_like(chunk.v)
    terms: list[tuple[Tensor, Tensor]] = []
    writes, transition = chunk.v, decay
    if (
        chunk.inverse is not None
        and chunk.key_operand is not None
        and chunk.value_operand is not None
    ):
        factor, operand, values = chunk.inverse, chunk.key_operand, chunk.value_operand
        lacking = values - operand @ state
        writes, w, u = factor @ lacking, factor @ operand, factor @ values
        first = half_ulp(values, of) + half_ulp(operand, of) @ size
        later = half_ulp(u, of) + half_ulp(w, of) @ size
        later = later + half_ulp(factor.tril(-1), of) @ lacking.abs()
        reads = reads - chunk.intra @ w
        transition = decay - keys @ w
        out = out + (chunk.intra @ factor).abs() @ first
        out = out + chunk.intra.abs() @ (later + half_ulp(writes, of))
        terms = [(keys @ factor, first), (keys, later), (keys @ w, copy)]
    out = out + half_ulp(chunk.intra, of) @ writes.abs() + reads.abs() @ copy
    if is_normalised:
        out = out + _of_normalised(chunk, size, writes.abs(), of)
    local = torch.zeros_like(state)
    if chunk.is_by_dim:
        local = half_ulp(keys, of) @ writes.abs()
        if chunk.rounds_end_writes:
            terms.append((keys, half_ulp(writes, of)))
    elif chunk.rounds_end_writes:
        terms.append((chunk.k.transpose(-1, -2), half_ulp(writes * chunk.to_end, of)))
    return out, reads, ChunkErrors(tuple(terms), local, transition)


def _of_normalised(chunk: Chunk, size: Tensor, writes: Tensor, of: NumberFormat) -> Tensor:
    """What roundings of normalised rows do by the state, and by P where decays are by head; the rest is left out."""
    queries = half_ulp(chunk.q, of)
    found = (chunk.from_start * queries) @ size
    if chunk.is_by_dim:
        return found
    dots = (chunk.q @ chunk.k.transpose(-1, -2)).tril()
    decays = torch.where(dots == 0, torch.zeros_like(dots), chunk.intra / dots)
    terms = queries @ chunk.k.abs().transpose(-1, -2)
    terms = terms + chunk.q.abs() @ half_ulp(chunk.k, of).transpose(-1, -2)
    return found + (terms * decays.abs()) @ writes


def followed(rows: Tensor, before: list[ChunkErrors]) -> Tensor:
    """What chunks before a state, the last one last, leave in what rows [entries, r, key dim] read of it, at least."""
    found = torch.zeros_like(rows[..., :1])
    for errors in reversed(before[-FOLLOWED:]):
        found = found + rows.abs() @ errors.local
        for keys, error in errors.terms:
            found = found + (rows @ keys).abs() @ error
        rows = rows @ errors.transition
    return found
