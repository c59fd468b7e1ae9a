"""Holds a kernel's outputs against exact attention and its bounds, head by head and block of
queries by block.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from .alike import row_units
from .bounds import bound_block
from .elements import LimitTest, LostTest, Place, judge_elements, judge_numbers
from .formats import FORMATS, NumberFormat
from .instruments import create_instruments
from .kernel_rows import kernel_rows
from .key_tiles import KeyTileTest, plan_key_tiles
from .masks import VisibleKeys, visible_keys
from .premises import Premises, premises_of
from .problem import AttentionProblem, KernelOutputs, Shape, shape_of
from .projections import RowSums
from .scores import runs_triton
from .spread import HeadEnergies, SpreadTest, spread_rates
from .structure import StructureTest
from .structure_results import StructureFindings
from .tested_rows import TestedRows
from .weights import LN2, HeadTensors, head_tensors, weigh_block
from .workers import made_of

_MOST_NOTED = 1000


@dataclass
class DeviceFindings:
    """What the tests on the device found. Nothing of it is a verdict: see ``DeviceVerdict``."""

    shape: Shape
    elements: LimitTest
    lse: LimitTest | None
    spread: SpreadTest
    structure: StructureFindings
    lost: LostTest = field(default_factory=LostTest)
    unjudged_rows: int = 0
    """Rows whose errors are not bounded to the first order, or beyond what the device's oracle is
    sure of.
    """
    open_rows: list[tuple[int, int]] = field(default_factory=list)
    """Rows (head over [batch, heads], query) that are not surely within their limits; a thousand
    at most.
    """
    heads_of_open_rows: set[int] = field(default_factory=set)

    @property
    def open_heads(self) -> set[int]:
        """Heads of which a test is not surely passed; without any, the command line passes."""
        return self.heads_of_open_rows | self.spread.open_heads | self.structure.open_heads

    @property
    def is_surely_beyond(self) -> bool:
        """Whether an element or an LSE is beyond its worst case, whatever fp64 leaves open."""
        return (
            self.elements.surely_outside + (0 if self.lse is None else self.lse.surely_outside) > 0
        )


@dataclass(frozen=True)
class Judged:
    """What all heads are judged by."""

    problem: AttentionProblem
    outputs: KernelOutputs
    shape: Shape
    premises: Premises
    output: NumberFormat
    keys: VisibleKeys
    keys_here: VisibleKeys
    """The same, where they can be read without a wait for a GPU."""
    structure: StructureTest
    key_tiles: KeyTileTest


@dataclass(frozen=True)
class _BlockRows:
    """What the tests of some heads need of a block's rows: see ``_HeadRows``."""

    energies: HeadEnergies
    clustered: tuple[Tensor, Tensor]
    sums: tuple[Tensor, Tensor, Tensor, Tensor]
    structure: RowSums
    left: tuple[Place, Tensor, Tensor]


@dataclass
class _HeadRows:
    """What the tests of some heads need of their rows, block by block."""

    heads: int
    energies: list[HeadEnergies] = field(default_factory=list)
    clustered: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    sums: list[tuple[Tensor, Tensor, Tensor, Tensor]] = field(default_factory=list)
    structure: list[RowSums] = field(default_factory=list)
    left: list[tuple[Place, Tensor, Tensor]] = field(default_factory=list)
    """Of each block where it lies, rows that are not surely within their limits, and rows that are
    judged.
    """

    def add(self, block: _BlockRows) -> None:
        """Adds a block, behind those before it."""
        self.energies.append(block.energies)
        self.clustered.append(block.clustered)
        self.sums.append(block.sums)
        self.structure.append(block.structure)
        self.left.append(block.left)

    def _joined(self, parts: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        return tuple(
            torch.cat([x.unflatten(0, (self.heads, -1)) for x in of_blocks], 1).flatten(0, 1)
            for of_blocks in zip(*parts, strict=True)
        )

    def units(self, precision: int) -> Tensor:
        """See ``row_units``."""
        is_clustered, is_open = self._joined([*self.clustered])
        lse, maximum, out, magnitude = self._joined([*self.sums])
        head = torch.arange(self.heads, device=lse.device)
        head = head.repeat_interleave(lse.shape[0] // self.heads)
        clustered = is_clustered, is_open
        return row_units(head, lse, maximum, out, magnitude, clustered, precision)


_CPU_NUMBERS = 2**21
"""Numbers of a block's matrix on a CPU: 16 MB of fp64."""
_CPU_BLOCK_NUMBERS = 2**20
"""The same where threads make blocks side by side."""
_LEAST_GPU_NUMBERS, _MOST_GPU_NUMBERS = 2**24, 2**29
"""The same on a GPU, 128 MB to 4 GB: launches of small kernels take longer than what they do."""
_MATRICES = 24
"""About how many of a block's matrices there are at once."""
_VECTORS = 80
"""About how many numbers there are at once for an element of an output: an H200 took 120 GB for 2^29."""
_MATRICES_OF_KERNELS = {"outputs": 8, "gradients": 18}
"""How many matrices there are where kernels of Triton pass over scores."""


@dataclass(frozen=True)
class Room:
    """What a device has room for: blocks of queries, and heads that are judged together."""

    free: int | None
    """Bytes of a GPU; None for a CPU."""
    matrices: int = _MATRICES
    """How many of a block's matrices there are at once."""

    @classmethod
    def on(
        cls, device: torch.device, what: Literal["outputs", "gradients"], *, is_plain: bool = True
    ) -> Room:
        """For judging outputs or gradients there, of scores that are plain or not."""
        has_kernels = is_plain and runs_triton(device)
        return cls(free_bytes(device), _MATRICES_OF_KERNELS[what] if has_kernels else _MATRICES)

    @property
    def _numbers(self) -> int:
        if self.free is None:
            return _CPU_NUMBERS
        room = self.free // (2 * 8 * self.matrices)
        return max(_LEAST_GPU_NUMBERS, min(_MOST_GPU_NUMBERS, room))

    def rows(self, keys: int) -> int:
        """Queries that are judged at once: a matrix of them and the keys takes 16 MB on a CPU, and on a
        GPU 128 MB, or up to 4 GB where half of what is free has room for all that are needed.
        """
        return max(1, self._numbers // (128 * max(keys, 1))) * 128

    def heads(self, heads: int, queries: int, keys: int) -> int:
        """How many of so many heads are judged together: as many as need no larger matrix than a block
        of queries may have, and about as many each time. So short heads are not many small operations.
        """
        rows = min(self.rows(keys), max(queries, 1))
        most = max(1, self._numbers // (rows * max(keys, 1)))
        times = max(1, -(-heads // most))
        return max(1, -(-heads // times))

    def blocks(self, heads: int, queries: int, keys: int) -> tuple[int, int]:
        """How many of so many heads are judged together, and how many queries of each at once.

        On a CPU blocks are of few queries of many heads: threads have several blocks to share, and
        what is done once for all blocks is done for many heads.
        """
        if self.free is not None:
            return self.heads(heads, queries, keys), self.rows(keys)
        of_keys = _CPU_BLOCK_NUMBERS // max(keys, 1)
        most = max(1, of_keys // min(max(queries, 1), 128))
        together = -(-heads // max(1, -(-heads // most)))
        return max(1, together), max(1, of_keys // (128 * max(together, 1))) * 128


def free_bytes(device: torch.device) -> int | None:
    """What a GPU's memory has room for, with what PyTorch keeps for reuse; None for a CPU."""
    if device.type != "cuda":
        return None
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0] + unused)


def key_span(keys: VisibleKeys) -> tuple[int, int]:
    """The first key that any row sees, and the one behind the last: never an empty span."""
    seen = keys.count > 0
    if not bool(seen.any()):
        return 0, 1
    return int(keys.begin[seen].min()), int(keys.end[seen].max())


def measure(
    problem: AttentionProblem, outputs: KernelOutputs, false_alarm_rate: float
) -> DeviceFindings:
    """Holds outputs against the bounds of any correct kernel. All of it is covered: see
    ``why_not_covered``.
    """
    shape = shape_of(problem)
    premises = premises_of(FORMATS[problem.q.dtype], FORMATS[problem.v.dtype])
    # Half of the false alarms for the structure tests, half for the spread.
    spread = SpreadTest(shape, spread_rates(shape, false_alarm_rate / 2))
    structure = StructureTest(problem, shape, premises, false_alarm_rate / 2)
    plan = plan_key_tiles(shape, structure.limits, problem.features.sequences)
    keys = visible_keys(problem, shape, problem.q.device)
    judged = Judged(
        problem,
        outputs,
        shape,
        premises,
        FORMATS[outputs.out.dtype],
        keys,
        keys.here(),
        structure,
        KeyTileTest(plan, premises, structure.findings),
    )
    of_lse = None if outputs.lse is None else LimitTest()
    found = DeviceFindings(shape, LimitTest(), of_lse, spread, structure.findings)
    is_plain = keys.holes is None and not problem.features.adds
    heads = shape.batch * shape.heads
    room = Room.on(problem.q.device, "outputs", is_plain=is_plain)
    # Of few keys and many columns most memory is that of numbers by column.
    by_column = 0 if room.free is None else _VECTORS * shape.v_dim // room.matrices
    # Heads that see the same keys.
    alike = shape.heads // shape.kv_heads * problem.features.groups_alike(shape)
    alike = 1 if problem.features.is_of_heads else alike
    at_once, rows_at_once = room.blocks(alike, shape.queries, shape.keys + by_column)
    for start in range(0, heads, alike):
        if start > 0:
            keys = visible_keys(problem, shape, problem.q.device, start)
            judged = replace(judged, keys=keys, keys_here=keys.here())
        for first in range(start, start + alike, at_once):
            together = range(first, min(first + at_once, start + alike))
            _measure_heads(judged, together, rows_at_once, found)
    return found


def _measure_heads(judged: Judged, heads: range, step: int, found: DeviceFindings) -> None:
    shape = judged.shape
    head = head_tensors(judged.problem, shape, heads, judged.keys)
    rows = _HeadRows(len(heads))
    places = [
        Place(heads, first, min(step, shape.queries - first))
        for first in range(0, shape.queries, step)
    ]

    def measured(place: Place) -> _BlockRows:
        return _measure_block(judged, head, place, found)

    for block in made_of(judged.problem.q.device, measured, places):
        rows.add(block)
    found.spread.judge_heads(
        heads,
        HeadEnergies.joined(rows.energies, len(heads)),
        rows.units(judged.premises.weight_format.precision),
    )
    judged.structure.judge_heads(heads.start, rows.structure)
    judged.key_tiles.judge_heads(heads.start)
    _settle(rows, found)


def _measure_block(
    judged: Judged, head: HeadTensors, place: Place, found: DeviceFindings
) -> _BlockRows:
    """Threads may measure blocks side by side."""
    heads = slice(place.heads.start, place.heads.stop)
    queries = slice(place.first_row, place.first_row + place.rows)
    seen = judged.keys.rows(place.first_row, place.rows)
    span = key_span(judged.keys_here.rows(place.first_row, place.rows))
    block = weigh_block(judged.problem, head, seen, place.first_row, *span)
    bounds = bound_block(judged.problem, head, judged.shape, judged.premises, block, judged.output)
    out = judged.outputs.out.flatten(0, 1)[heads, queries].double().flatten(0, 1)
    is_open = judge_elements(found.elements, block, bounds, out, place)
    found.lost.meet(block.out, block.out_distance, bounds.sure.total, bounds.is_judged)
    spread_open, energies = found.spread.judge_block(block, bounds, out, place)
    is_open |= spread_open
    lse = None
    if found.lse is not None and judged.outputs.lse is not None:
        lse = (
            judged.outputs.lse.flatten(0, 1)[heads, queries].double().flatten(),
            FORMATS[judged.outputs.lse.dtype],
        )
        is_open |= judge_numbers(found.lse, block, bounds, *lse, place)
    kernel = kernel_rows(judged.problem, head, judged.shape, judged.premises, block)
    errors = bounds.errors
    instruments = create_instruments(head, judged.premises, judged.output, block, errors, kernel)
    tested = TestedRows(head, block, errors, kernel, instruments, out)
    judged.key_tiles.judge_block(tested)
    return _BlockRows(
        energies,
        bounds.clustered,
        (block.lse, block.maximum * LN2, block.out, block.magnitude),
        judged.structure.collect(tested, lse),
        (place, is_open, bounds.is_judged),
    )


def _settle(rows: _HeadRows, found: DeviceFindings) -> None:
    """Takes in what the blocks of some heads left to do."""
    for test in (found.elements, found.spread.elements, found.lse, found.lost):
        if test is not None:
            test.settle()
    for place, is_open, is_judged in rows.left:
        found.unjudged_rows += int((~is_judged).sum())
        _note_open(is_open, place, found)


def _note_open(is_open: Tensor, place: Place, found: DeviceFindings) -> None:
    """Notes which rows of a block are not surely within their limits."""
    for row in is_open.nonzero()[:, 0].tolist():
        head, query = divmod(row, place.rows)
        found.heads_of_open_rows.add(place.heads[head])
        if len(found.open_rows) < _MOST_NOTED:
            found.open_rows.append((place.heads[head], place.first_row + query))
