"""Which heads of a recurrence are surely within limits that are below those of an audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from ..formats import FORMATS, NumberFormat
from .chunks import chunk_of, drawn_chunk, drawn_parts, leaning_chunk
from .drawn_limit import drawn_limit, freedom_of
from .exact import CHUNK, Exact, exact_recurrence
from .least_bounds import ChunkErrors, followed, least_errors
from .roundings import Noise, half_ulp, operand_format
from .runs import LAWS, RecurrentProblem, Run, runs_of

DRAWS = 32
"""As many as an audit takes."""
SHARE = 0.5
"""Of an audit's margin above what draws are, the part that errors may use here: draws of the audit may come out that much smaller."""


_ONE = torch.ones((), dtype=torch.float64)


@dataclass
class Findings:
    """What was found."""

    #: Heads, counted over [batch, heads], of which a test is not surely passed.
    open_heads: set[int] = field(default_factory=set)
    #: The largest share of its limit that an element uses, among heads that are not open.
    worst_ratio: float = 0.0
    ratios: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Probabilities:
    """What a test may fail a correct kernel with, as an audit shares the rate out."""

    element: float
    group: float
    projection: float


def judge_recurrence(
    problem: RecurrentProblem, rate: float, *, may_be_recurrent: bool = True, seed: int = 1
) -> Findings:
    """
    The heads that are open, of a kernel that goes by chunks, or token by token where it may. Tensors are finite, of 16 or 32 bits.
    """
    findings = Findings()
    device = problem.q.device
    noise = Noise(DRAWS, device, seed)
    for run in runs_of(problem, _most_heads(problem)):
        _Judge(problem, run, findings, noise, rate, may_be_recurrent).judge()
    kept = [x for head, x in findings.ratios.items() if head not in findings.open_heads]
    findings.worst_ratio = max(kept, default=0.0)
    return findings


def _most_heads(problem: RecurrentProblem) -> int:
    """Heads at a time: those whose draws fit in a tenth of the memory that is free."""
    key_dim, dim = problem.k.shape[-1], problem.v.shape[-1]
    # Draws of a chunk's matrices, several of which live at once; with normalised rows those of its dots too.
    each = 8 * DRAWS * (4 * key_dim * dim + 12 * CHUNK * (key_dim + dim) + 8 * CHUNK * CHUNK)
    each += 8 * (2 * problem.v.shape[1] * dim + problem.v.shape[1] // CHUNK * key_dim * dim)
    free = torch.cuda.mem_get_info(problem.q.device)[0] if problem.q.is_cuda else 2**32
    return max(1, int(free / 10 / each))


class _Errors(NamedTuple):
    """What draws and a kernel err by, and the radius of what they are measured from."""

    drawn: Tensor
    measured: Tensor
    radius: Tensor


class _Projection(NamedTuple):
    """Products with a direction, [entries], with draws before that of draws."""

    drawn: Tensor
    measured: Tensor
    #: What the radius adds.
    known: Tensor
    #: Of errors that may all have one sense; None where there are none.
    lean: Tensor | None = None


class _Judge:
    """The tests of one run."""

    def __init__(
        self,
        problem: RecurrentProblem,
        run: Run,
        findings: Findings,
        noise: Noise,
        rate: float,
        may_be_recurrent: bool,
    ) -> None:
        self.may_be_recurrent = may_be_recurrent
        self.run, self.findings, self.noise = run, findings, noise
        self.last_outputs: _Errors | None = None
        decay, self.is_delta = LAWS[problem.family]
        self.is_by_dim = decay == "dim"
        self.operand = operand_format(problem.v.dtype)
        self.output = FORMATS[problem.out.dtype]
        final = problem.final_state
        self.state_format = None if final is None else FORMATS[final.dtype]
        share = rate / (2 if final is None else 3)
        chunks = problem.heads * (-(-problem.v.shape[1] // CHUNK))
        self.of_out = _shared(share, problem.out.numel(), problem.heads + chunks, 2 * chunks)
        states = 1 if final is None else final.shape[0] * final.shape[1]
        elements = 1 if final is None else final.numel()
        self.of_state = _shared(share, elements, states, states)

    def judge(self) -> None:
        """Add the heads that are open to the findings."""
        run = self.run
        exact = exact_recurrence(run, self.is_delta)
        # Zeros where there must only be zeros say little; an audit says that.
        hollow = (exact.out == 0).flatten(1).all(1)
        self.findings.open_heads |= {run.heads[i] for i in hollow.nonzero()[:, 0].tolist()}
        before: list[ChunkErrors] = []
        state = run.state.expand(DRAWS, *run.state.shape)
        self.leaning = run.state
        sums = _Sums()
        for i, first in enumerate(range(0, run.tokens, CHUNK)):
            span = (first, min(run.tokens, first + CHUNK))
            state, errors = self._chunk(span, exact, exact.starts[i], state, before, sums)
            before = [*before[-2:], errors]
        self._test_sums([sums], self.of_out.group)
        for name in ("scale", "bias"):
            self._test_projection([sums.projection(name)], self.of_out.projection)
        if run.final_state is not None and self.state_format is not None:
            of_state = self._state(run.final_state, exact, state, before, self.state_format)
            if self.last_outputs is not None:
                self._pairing(self.last_outputs, of_state)

    def _chunk(
        self,
        span: tuple[int, int],
        exact: Exact,
        start: Tensor,
        state: Tensor,
        before: list[ChunkErrors],
        sums: _Sums,
    ) -> tuple[Tensor, ChunkErrors]:
        run, tokens = self.run, slice(*span)
        chunk = chunk_of(run, span)
        parts = drawn_parts(run, span, chunk, self.operand, self.noise)
        made, behind = drawn_chunk(parts, state, run.scale, self.operand, self.noise)
        right, radius = exact.out[:, tokens], exact.radius[:, tokens]
        drawn = self.noise.on(made, self.output) - right
        error = run.out[:, tokens] - right
        self.last_outputs = _Errors(drawn[:, :, -1:], error[:, -1:], radius[:, -1:])
        least, reads, errors = least_errors(chunk, start, self.operand, run.is_normalised)
        least = abs(run.scale) * (least + followed(reads, before)) + half_ulp(right, self.output)
        self._test_elements(error, radius, [drawn], least, self.of_out.element)
        tile = _Sums()
        lean = None
        if self.is_by_dim:
            leaning, self.leaning = leaning_chunk(chunk, self.leaning, run.scale, self.operand)
            lean = leaning - right
        tile.add(drawn, error, radius, right, lean)
        self._test_sums([tile], self.of_out.group)
        self._test_projection([tile.projection("scale")], self.of_out.projection)
        carried = _project(drawn, error, radius, run.scale * (reads @ start))
        self._test_projection([_Projection(*carried)], self.of_out.projection)
        sums.join(tile)
        return behind, errors

    def _state(
        self,
        given: Tensor,
        exact: Exact,
        state: Tensor,
        before: list[ChunkErrors],
        of: NumberFormat,
    ) -> _Errors:
        right = exact.state
        radius = exact.state_radius[:, None].expand_as(right)
        drawn = self.noise.on(state, of) - right
        error = given - right
        unit = torch.eye(right.shape[1], dtype=right.dtype, device=right.device)
        rows = unit.expand(len(right), *unit.shape)
        least = followed(rows, before)
        draws = [drawn]
        if self.may_be_recurrent and exact.rounded is not None:
            # A kernel that goes token by token may err more; the larger limit counts, as in an audit.
            draws.append(self.noise.on(self.noise.of(exact.rounded.variance) + right, of) - right)
            least = torch.maximum(least, exact.rounded.most)
        least = least + half_ulp(right, of)
        self._test_elements(error, radius, draws, least, self.of_state.element)
        found = [_Sums() for _ in draws]
        lean = self.leaning - right if self.is_by_dim else None
        for sums, one in zip(found, draws):
            sums.add(one, error, radius, right, lean)
        self._test_sums(found, self.of_state.group)
        for name in ("scale", "bias"):
            self._test_projection([x.projection(name) for x in found], self.of_state.projection)
        return _Errors(drawn, error, radius)

    def _pairing(self, of_outputs: _Errors, of_state: _Errors) -> None:
        """The last output is what the last query reads of the final state; columns are weighed by the last values."""
        value, query = self.run.v[:, -1], self.run.scale * self.run.q[:, -1]
        left = _project(*of_outputs, value[:, None])
        right = _project(*of_state, -query[:, :, None] * value[:, None])
        drawn, measured, known = (a + b for a, b in zip(left, right))
        self._test_projection([_Projection(drawn, measured, known)], self.of_state.projection)

    def _test_elements(
        self, error: Tensor, radius: Tensor, draws: list[Tensor], least: Tensor, probability: float
    ) -> None:
        factor = float(drawn_limit(probability, DRAWS, _ONE))
        squares = torch.stack([one.square().mean(0) for one in draws]).amax(0)
        limit = torch.minimum(SHARE * factor * squares.sqrt(), least)
        self._use((error.abs() + radius).flatten(1), limit.flatten(1), is_element=True)

    def _test_sums(self, found: list[_Sums], probability: float) -> None:
        limits = []
        for energies in (one.energies for one in found):
            factor = drawn_limit(probability, DRAWS, freedom_of(energies))
            limits.append((1 + SHARE * (factor - 1)) * energies.mean(0).sqrt())
        measured = found[0].measured.sqrt() + found[0].known.sqrt()
        self._use(measured[:, None], torch.stack(limits).amax(0)[:, None])

    def _test_projection(self, found: list[_Projection], probability: float) -> None:
        factor = float(drawn_limit(probability, DRAWS, _ONE))
        roots = torch.stack([one.drawn.square().mean(0).sqrt() for one in found])
        limit = factor * roots.amax(0)
        if found[0].lean is not None:
            limit = limit + found[0].lean.abs()
        _, measured, known, _ = found[0]
        self._use((measured.abs() + known)[:, None], SHARE * limit[:, None])

    def _use(self, measured: Tensor, limit: Tensor, is_element: bool = False) -> None:
        """Open the heads of entries [entries, …] in which something is not surely within its limit; NaN is not."""
        is_open = (~(measured <= limit)).any(1)
        self.findings.open_heads |= {self.run.heads[i] for i in is_open.nonzero()[:, 0].tolist()}
        if not is_element:
            return
        ratios = torch.where(measured == 0, 0.0, measured / limit).amax(1).tolist()
        for head, ratio in zip(self.run.heads, ratios):
            self.findings.ratios[head] = max(self.findings.ratios.get(head, 0.0), ratio)


def _shared(rate: float, elements: int, groups: int, further: int) -> _Probabilities:
    """A quantity's rate: a quarter for elements, a quarter for sums of squares, half for projections."""
    projections = groups + further
    return _Probabilities(rate / 4 / elements, rate / 4 / groups, rate / 2 / projections)


def _project(
    drawn: Tensor, error: Tensor, radius: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Products with a direction: of draws, of errors, and what a radius adds."""
    along = (drawn * direction).sum((-2, -1))
    known = (radius * direction.abs()).sum((-2, -1))
    return along, (error * direction).sum((-2, -1)), known


class _Sums:
    """Sums over the tokens of entries."""

    def __init__(self) -> None:
        self._found: dict[str, Tensor] = {}

    def add(
        self,
        drawn: Tensor,
        error: Tensor,
        radius: Tensor,
        right: Tensor,
        lean: Tensor | None = None,
    ) -> None:
        """Sums over [entries, rows, dim], drawn ones with draws before that."""
        found = {
            "energies": drawn.square().sum((-2, -1)),
            "measured": error.square().sum((-2, -1)),
            "known": radius.square().sum((-2, -1)),
        }
        for name, direction in (("scale", right), ("bias", torch.ones_like(right))):
            named = zip(("drawn", "error", "radius"), _project(drawn, error, radius, direction))
            found.update({f"{name} {of}": one for of, one in named})
            if lean is not None:
                found[f"{name} lean"] = (lean * direction).sum((-2, -1))
        self._add(found)

    def join(self, other: _Sums) -> None:
        """Add the sums over further tokens."""
        self._add(other._found)

    def _add(self, found: dict[str, Tensor]) -> None:
        for name, one in found.items():
            self._found[name] = self._found[name] + one if name in self._found else one

    @property
    def energies(self) -> Tensor:
        """Sums of squares of draws, [draws, entries]."""
        return self._found["energies"]

    @property
    def measured(self) -> Tensor:
        """The sum of squares of errors, [entries]."""
        return self._found["measured"]

    @property
    def known(self) -> Tensor:
        """The sum of squares of radii, [entries]."""
        return self._found["known"]

    def projection(self, name: str) -> _Projection:
        """Products with a direction: of draws, of errors, and what a radius adds."""
        drawn, error, radius = (self._found[f"{name} {of}"] for of in ("drawn", "error", "radius"))
        return _Projection(drawn, error, radius, self._found.get(f"{name} lean"))
