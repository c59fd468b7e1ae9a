"""Where the rows of a problem stand: each in its sequence, with that sequence's keys."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .problem import AttentionProblem, Shape

GROUP_ROWS = 64
"""Rows that the command line bounds together, from the first of their sequence on."""


@dataclass(frozen=True)
class RowPlaces:
    """Of each query, int64 [queries], in keys counted over the whole problem."""

    diagonal: Tensor
    """The key that a causal mask lets it see last: the last query of a sequence sits on its last key."""
    first_key: Tensor
    behind: Tensor
    """The first key of its sequence, and the one behind the last."""
    groups: Tensor
    """The number of its group: 64 rows at most, of one sequence."""


def row_places(problem: AttentionProblem, shape: Shape, device: torch.device) -> RowPlaces:
    """The places of a problem's queries, in every head the same."""
    query = torch.arange(shape.queries, device=device)
    sequences = problem.features.sequences
    if sequences is None:
        first = torch.zeros_like(query)
        return RowPlaces(
            query + (shape.keys - shape.queries),
            first,
            torch.full_like(query, shape.keys),
            query // GROUP_ROWS,
        )
    numbers = torch.tensor(sequences, dtype=torch.int64, device=device).reshape(-1, 4)
    first_query, queries, first_key, keys = numbers.unbind(1)
    own = torch.repeat_interleave(torch.arange(len(sequences), device=device), queries)
    groups_of = (queries + GROUP_ROWS - 1) // GROUP_ROWS
    before = groups_of.cumsum(0) - groups_of
    within = query - first_query[own]
    first = first_key[own]
    return RowPlaces(
        first + within + keys[own] - queries[own],
        first,
        first + keys[own],
        before[own] + within // GROUP_ROWS,
    )
