"""A recurrence's tensors in fp64, some sequences of some heads at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

#: By family: whether decays are by head ("head") or by key dimension ("dim"), and whether writes are by a delta rule.
LAWS: dict[str, tuple[str | None, bool]] = {
    "linear": (None, False),
    "retention": ("head", False),
    "simple-gla": ("head", False),
    "gla": ("dim", False),
    "delta": (None, True),
    "gated-delta": ("head", True),
    "kda": ("dim", True),
}
NORMALISATION = 1e-6
"""The epsilon beside Σ² that True stands for."""


@dataclass(frozen=True)
class RecurrentProblem:
    """A recurrence and what a kernel gave: [batch, tokens, heads, dim], states [sequences, heads, key dim, value dim]."""

    family: str
    q: Tensor
    k: Tensor
    v: Tensor
    out: Tensor
    final_state: Tensor | None
    g: Tensor | None
    beta: Tensor | None
    initial_state: Tensor | None
    #: Ends of packed sequences, from 0 on; None for one of each batch entry.
    ends: tuple[int, ...] | None
    scale: float
    #: The epsilon by which Q and K are normalised; None where they are not.
    epsilon: float | None

    @property
    def heads(self) -> int:
        """Heads of all batch entries: those that are judged one by one."""
        return int(self.v.shape[0] * self.v.shape[2])


@dataclass(frozen=True)
class Run:
    """Sequences of one length, [entries, tokens, …] in fp64."""

    q: Tensor
    k: Tensor
    v: Tensor
    #: Decays of single tokens, [entries, tokens, 1 or key dim]; None where nothing decays.
    decay: Tensor | None
    beta: Tensor | None
    state: Tensor
    out: Tensor
    final_state: Tensor | None
    scale: float
    is_normalised: bool
    #: The head of each entry, counted over [batch, heads].
    heads: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """Tokens of a sequence."""
        return int(self.v.shape[1])


def runs_of(problem: RecurrentProblem, most: int) -> Iterator[Run]:
    """All sequences of all heads, at most so many at a time."""
    batch, tokens, heads = problem.v.shape[:3]
    every = range(batch * heads)
    for first in range(0, len(every), most):
        chosen = every[first : first + most]
        if problem.ends is None:
            yield _run(problem, list(chosen), (0, tokens), None)
            continue
        for i, (begin, end) in enumerate(zip(problem.ends, problem.ends[1:])):
            if end > begin:
                yield _run(problem, list(chosen), (begin, end), i)


def _run(
    problem: RecurrentProblem, chosen: list[int], span: tuple[int, int], sequence: int | None
) -> Run:
    device, heads = problem.q.device, problem.v.shape[2]
    numbers = torch.tensor(chosen, device=device)
    entry, head = numbers // heads, numbers % heads
    key_head = head // (heads // problem.k.shape[2])
    tokens = slice(*span)

    def rows(x: Tensor, at: Tensor) -> Tensor:
        return x[:, tokens].transpose(1, 2)[entry, at].double()

    def states(x: Tensor) -> Tensor:
        return x[entry if sequence is None else sequence, head].double()

    q, k = rows(problem.q, key_head), rows(problem.k, key_head)
    if problem.epsilon is not None:
        q, k = (x / (x.square().sum(-1, keepdim=True) + problem.epsilon).sqrt() for x in (q, k))
    v = rows(problem.v, head)
    size = (len(chosen), q.shape[-1], v.shape[-1])
    first = problem.initial_state
    state = torch.zeros(size, dtype=torch.float64, device=device) if first is None else states(first)  # fmt: skip
    final = problem.final_state
    return Run(
        q, k, v, _decay(problem, rows, head, v), None if problem.beta is None else rows(problem.beta[..., None], head)[..., 0],
        state, rows(problem.out, head), None if final is None else states(final), problem.scale,
        problem.epsilon is not None, tuple(chosen),
    )  # fmt: skip


def _decay(problem: RecurrentProblem, rows: object, head: Tensor, v: Tensor) -> Tensor | None:
    if problem.family == "retention":
        fixed = 1 - torch.exp2(-5.0 - head.double())
        return fixed[:, None, None].expand(*v.shape[:2], 1)
    if problem.g is None:
        return None
    g = problem.g if problem.g.dim() == 4 else problem.g[..., None]
    return rows(g, head).exp()  # type: ignore[operator]
