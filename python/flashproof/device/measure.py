"""Holds a kernel's outputs against exact attention and its bounds, head by head and block of
queries by block.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from .alike import row_units
from .bounds import BlockBounds, bound_block
from .elements import LimitTest, LostTest, judge_elements, judge_numbers
from .formats import FORMATS, NumberFormat
from .instruments import create_instruments
from .kernel_rows import kernel_rows
from .key_tiles import KeyTileTest, TestedRows
from .masks import VisibleKeys, visible_keys
from .premises import Premises, premises_of
from .problem import AttentionProblem, KernelOutputs, Shape, shape_of
from .projections import RowSums
from .spread import HeadEnergies, SpreadTest, spread_rates
from .structure import StructureTest
from .structure_results import StructureFindings
from .weights import LN2, HeadTensors, WeightBlock, head_tensors, weigh_block

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
    structure: StructureTest
    key_tiles: KeyTileTest


@dataclass
class _HeadRows:
    """What the tests of a head need of its rows, block by block."""

    energies: list[HeadEnergies] = field(default_factory=list)
    clustered: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    sums: list[tuple[Tensor, Tensor, Tensor, Tensor]] = field(default_factory=list)
    structure: list[RowSums] = field(default_factory=list)

    def add(self, block: WeightBlock, bounds: BlockBounds, energies: HeadEnergies) -> None:
        self.energies.append(energies)
        self.clustered.append(bounds.errors.clustered)
        self.sums.append((block.lse, block.maximum * LN2, block.out, block.magnitude))

    def units(self, precision: int) -> Tensor:
        """See ``row_units``."""
        is_clustered, is_open = (torch.cat(list(x)) for x in zip(*self.clustered, strict=True))
        lse, maximum, out, magnitude = (torch.cat(list(x)) for x in zip(*self.sums, strict=True))
        return row_units(lse, maximum, out, magnitude, (is_clustered, is_open), precision)


_CPU_NUMBERS = 2**21
"""Numbers of a block's matrix on a CPU: 16 MB of fp64."""
_LEAST_GPU_NUMBERS, _MOST_GPU_NUMBERS = 2**24, 2**26
"""The same on a GPU, 128 to 512 MB: launches of small kernels take longer than what they do."""
_MATRICES = 24
"""About how many of a block's matrices there are at once."""


def free_bytes(device: torch.device) -> int | None:
    """What a GPU's memory has room for, with what PyTorch keeps for reuse; None for a CPU."""
    if device.type != "cuda":
        return None
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0] + unused)


def block_rows(keys: int, free: int | None) -> int:
    """Queries that are judged at once, by ``free_bytes``: a matrix of them and the keys takes 16 MB
    on a CPU, and on a GPU 128 MB, or up to 512 MB where half of what is free has room for all that
    are needed.
    """
    numbers = _CPU_NUMBERS
    if free is not None:
        room = free // (2 * 8 * _MATRICES)
        numbers = max(_LEAST_GPU_NUMBERS, min(_MOST_GPU_NUMBERS, room))
    return max(1, numbers // (128 * max(keys, 1))) * 128


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
    judged = Judged(
        problem,
        outputs,
        shape,
        premises,
        FORMATS[outputs.out.dtype],
        visible_keys(problem, shape, problem.q.device),
        structure,
        KeyTileTest(shape, premises, structure.limits, structure.findings),
    )
    of_lse = None if outputs.lse is None else LimitTest()
    found = DeviceFindings(shape, LimitTest(), of_lse, spread, structure.findings)
    for index in range(shape.batch * shape.heads):
        _measure_head(judged, index, found)
    return found


def _measure_head(judged: Judged, index: int, found: DeviceFindings) -> None:
    shape = judged.shape
    batch, number = divmod(index, shape.heads)
    head = head_tensors(judged.problem, shape, batch, number)
    rows = _HeadRows()
    step = block_rows(shape.keys, free_bytes(head.q.device))
    for first in range(0, shape.queries, step):
        _measure_block(judged, head, index, first, min(step, shape.queries - first), rows, found)
    found.spread.judge_head(
        index, rows.energies, rows.units(judged.premises.weight_format.precision)
    )
    judged.structure.judge_head(index, rows.structure)
    judged.key_tiles.judge_head(index)


def _measure_block(
    judged: Judged,
    head: HeadTensors,
    index: int,
    first: int,
    count: int,
    rows: _HeadRows,
    found: DeviceFindings,
) -> None:
    batch, number = divmod(index, judged.shape.heads)
    seen = judged.keys.rows(first, count)
    block = weigh_block(judged.problem, head, seen, first, *key_span(seen))
    bounds = bound_block(judged.problem, head, judged.shape, judged.premises, block, judged.output)
    out = judged.outputs.out[batch, number, first : first + count].double()
    is_open = judge_elements(found.elements, block, bounds, out, index)
    found.lost.meet(block.out, block.out_distance, bounds.sure.total, bounds.is_judged)
    spread_open, energies = found.spread.judge_block(block, bounds, out, index)
    is_open |= spread_open
    lse = None
    if found.lse is not None and judged.outputs.lse is not None:
        lse = (
            judged.outputs.lse[batch, number, first : first + count].double(),
            FORMATS[judged.outputs.lse.dtype],
        )
        is_open |= judge_numbers(found.lse, block, bounds, *lse, index)
    kernel = kernel_rows(judged.problem, head, judged.shape, judged.premises, block)
    instruments = create_instruments(head, judged.premises, judged.output, block, kernel)
    rows.structure.append(judged.structure.collect(head, block, kernel, instruments, out, lse))
    judged.key_tiles.judge_block(index, TestedRows(head, block, kernel, instruments, out))
    found.unjudged_rows += int((~bounds.is_judged).sum())
    rows.add(block, bounds, energies)
    room = _MOST_NOTED - len(found.open_rows)
    rows_left = [first + int(row) for row in is_open.nonzero()[:, 0]]
    found.open_rows += [(index, row) for row in rows_left[:room]]
    found.heads_of_open_rows |= {index} if rows_left else set()
