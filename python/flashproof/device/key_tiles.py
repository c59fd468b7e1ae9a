"""Whether each tile of keys is there: the kernel's error projected on what leaving the tile out
would do to O.

The test of ``src/audit/structure/key-tile-test.ts``, in the same blocks of queries. As in
``structure.py`` limits count all roundings as independent, so that none is larger than the command
line's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .features import Run
from .instruments import ROOT3
from .masks import VisibleKeys
from .premises import Premises
from .problem import Shape
from .scores import engine_of
from .selection import kept_where
from .spread import TILE_ROWS
from .structure_results import (
    StructureFindings,
    StructureLimits,
    StructureResult,
    alarm_deviations,
)
from .sums import Sums
from .tested_rows import TestedRows

_TILE_KEYS = 128
_FULLY_TESTED_TILES = 2
_MOST_TILES = 32
_TILES_PER_BLOCK = 8
_NEGLIGIBLE = 2.0**-36
"""Effects below this part of Σ w|v| are roundings."""


@dataclass(frozen=True)
class TestedBlock:
    """Up to 128 queries of a sequence, and its keys."""

    first_row: int
    rows: int
    first_key: int
    keys: int


@dataclass(frozen=True)
class KeyTilePlan:
    """Which tiles of keys are tested against which blocks of queries: ``planKeyTiles``. Tiles are counted
    within each sequence.
    """

    tile_keys: int
    tiles: int
    blocks: tuple[TestedBlock, ...]
    """Empty where there is one tile only, and none to miss."""
    of_block: float
    """Deviations that are allowed of a block, and of a head."""
    of_head: float


def plan_key_tiles(
    shape: Shape, limits: StructureLimits, sequences: tuple[Run, ...] | None = None
) -> KeyTilePlan:
    """All blocks against up to two tiles; with more tiles fewer blocks, and beyond 32 tiles larger
    ones.
    """
    runs = [run for run in sequences or [(0, shape.queries, 0, shape.keys)] if run[1] > 0]
    longest = max((keys for *_, keys in runs), default=0)
    fewest = sum(-(-queries // TILE_ROWS) for _, queries, _, _ in runs)
    tiles = -(-longest // _TILE_KEYS)
    tile_keys = _TILE_KEYS
    if tiles > _MOST_TILES:
        tile_keys *= -(-tiles // min(_MOST_TILES, _TILES_PER_BLOCK * fewest))
        tiles = -(-longest // tile_keys)
    blocks = tuple(block for run in runs for block in _tested_blocks(run, tile_keys))
    tests = shape.batch * shape.heads * tiles
    return KeyTilePlan(
        tile_keys,
        tiles,
        blocks if tiles > 1 else (),
        alarm_deviations(tests * len(blocks), limits.share),
        alarm_deviations(tests, limits.share),
    )


def _tested_blocks(run: Run, tile_keys: int) -> Iterator[TestedBlock]:
    """Those of a sequence: all, or some evenly spread up to the last."""
    first_row, queries, first_key, keys = run
    blocks, tiles = -(-queries // TILE_ROWS), -(-keys // tile_keys)
    if tiles == 0:
        return
    count = min(blocks, max(1, -(-blocks * _FULLY_TESTED_TILES // tiles)))
    for i in range(count):
        offset = TILE_ROWS * (-(-(i + 1) * blocks // count) - 1)
        rows = min(TILE_ROWS, queries - offset)
        yield TestedBlock(first_row + offset, rows, first_key, keys)


@dataclass(frozen=True)
class TileSums(Sums):
    """Sums over rows for each tile of keys, [heads, tiles]; the last three are of variances."""

    signed: Tensor
    norm: Tensor
    slack: Tensor
    systematic: Tensor
    weights_worst: Tensor
    output_worst: Tensor
    weights: Tensor
    outputs: Tensor
    accumulation: Tensor

    def tolerance(self, deviations: float) -> Tensor:
        """What |Σ r·X| exceeds with the probability of so many deviations, or less:
        ``Statistic.tolerance``.
        """
        weights = torch.minimum(deviations / ROOT3 * self.weights.sqrt(), self.weights_worst)
        outputs = torch.minimum(deviations / ROOT3 * self.outputs.sqrt(), self.output_worst)
        return weights + outputs + deviations * self.accumulation.sqrt() + self.systematic


@dataclass(frozen=True)
class _Rows:
    """Some of the rows of each head of a block, [heads, rows, …]."""

    weights: Tensor
    values: Tensor
    """[heads, keys, v dim]"""
    exact: Tensor
    magnitude: Tensor
    out: Tensor
    distance: Tensor
    half_ulp: Tensor
    numbers: tuple[Tensor, ...]
    """Of each row: whether it is judged, its keys, typical errors of weights, normalisation, floor."""
    seen: VisibleKeys
    """[rows]: the keys that rows see, from the first of these on."""
    is_plain: bool

    @classmethod
    def of(cls, tested: TestedRows, rows: slice, keys: slice) -> _Rows:
        """Those rows, against keys counted over the whole problem."""
        block, kernel = tested.block, tested.kernel

        def cut(x: Tensor) -> Tensor:
            return block.by_head(x)[:, rows]

        is_judged = (block.total > 0) & ~kernel.is_coarse
        of_row = is_judged, kernel.keys, kernel.typical_weight, kernel.normalisation, kernel.floor
        here = slice(keys.start - block.first_key, keys.stop - block.first_key)
        return cls(
            block.weights[:, rows, here],
            tested.head.v[:, keys],
            cut(block.out),
            cut(block.magnitude),
            cut(tested.out),
            cut(block.out_distance),
            cut(tested.instruments.least_half_ulp),
            tuple(cut(x) for x in of_row),
            block.seen.rows(rows.start, rows.stop - rows.start).after(keys.start),
            block.is_plain,
        )


def _directions(rows: _Rows, first_key: int, tiles: range, tile_keys: int) -> Tensor:
    """What leaving each tile out would do to O, [tiles, heads, rows, v dim], by Σ w of the tile."""
    heads, count, keys = rows.weights.shape
    before = first_key - tiles.start * tile_keys
    behind = tiles.stop * tile_keys - first_key - keys
    # A negative padding cuts keys off.
    of_tiles = torch.nn.functional.pad(rows.weights, (before, behind))
    of_tiles = of_tiles.reshape(heads, count, -1, tile_keys).transpose(1, 2)
    values = torch.nn.functional.pad(rows.values, (0, 0, before, behind))
    missing = of_tiles @ values.reshape(heads, -1, tile_keys, values.shape[2])
    direction: Tensor = of_tiles.sum(3)[..., None] * rows.exact[:, None] - missing
    return direction.transpose(0, 1)


def _tile_sums(
    rows: _Rows, rounding: float, premises: Premises, first_key: int, tiles: range, tile_keys: int
) -> Tensor:
    """``TileSums`` of some tiles of keys against some of the rows, [members, heads, tiles]; ``rounding`` is
    P's.
    """
    is_judged, keys, typical_weight, normalisation, floor = rows.numbers
    exact, magnitude, half = rows.exact, rows.magnitude, rows.half_ulp
    direction = _directions(rows, first_key, tiles, tile_keys)
    is_seen = direction.square().sum(3) >= _NEGLIGIBLE**2 * magnitude.square().sum(2)
    is_seen &= is_judged
    direction = kept_where(is_seen[..., None], direction)
    size = direction.abs()
    norm = direction.square().sum(3)
    # P's roundings and the weights' own errors together.
    amplitude = rounding + typical_weight
    engine = engine_of(size.device, is_plain=rows.is_plain)
    moments = engine.moments(direction, rows.values, rows.weights, rows.seen)
    systematic = (typical_weight + normalisation) * (exact * direction).abs().sum(3)
    systematic = systematic + floor * (norm * exact.shape[2]).sqrt()
    accumulation = premises.accumulation * (magnitude * size).sum(3)
    of_rows = TileSums(
        signed=((rows.out - exact) * direction).sum(3),
        norm=norm,
        slack=(rows.distance * size).sum(3),
        systematic=kept_where(is_seen, systematic),
        weights=amplitude.square() * moments.squares,
        weights_worst=amplitude * moments.absolute,
        output_worst=(half * size).sum(3),
        outputs=(half * size).square().sum(3),
        accumulation=keys * accumulation.square(),
    )
    return of_rows.together().sum(3).transpose(1, 2)


class KeyTileTest:
    """Tests the tiles of keys, head after head."""

    def __init__(
        self,
        plan: KeyTilePlan,
        premises: Premises,
        findings: StructureFindings,
    ) -> None:
        """Results join ``findings``."""
        self.plan = plan
        self._findings, self._premises = findings, premises
        self._parts: list[tuple[int, int, Tensor]] = []
        """Of some rows of a tested block the block's number, their first, and their sums."""

    def judge_block(self, tested: TestedRows) -> None:
        """Tests the planned blocks of 128 queries that are in a block of rows."""
        plan, block = self.plan, tested.block
        rows_at_once, keys = block.weights.shape[1:]
        # As many tiles at once as need no larger matrix than the block's.
        at_once = max(1, rows_at_once // TILE_ROWS)
        rounding = tested.kernel.weight_rounding
        for number, one in enumerate(plan.blocks):
            first = max(one.first_row, block.first_row)
            last = min(one.first_row + one.rows, block.first_row + rows_at_once)
            low = max(one.first_key, block.first_key)
            high = min(one.first_key + one.keys, block.first_key + keys)
            if first >= last or low >= high:
                continue
            local = slice(first - block.first_row, last - block.first_row)
            rows = _Rows.of(tested, local, slice(low, high))
            # Tiles without a key of the block have no direction.
            seen = range(
                (low - one.first_key) // plan.tile_keys,
                -(-(high - one.first_key) // plan.tile_keys),
            )
            parts = [
                _tile_sums(
                    rows,
                    rounding,
                    self._premises,
                    low - one.first_key,
                    seen[i : i + at_once],
                    plan.tile_keys,
                )
                for i in range(0, len(seen), at_once)
            ]
            around = (seen.start, plan.tiles - seen.stop)
            # Of tiles before and behind these there is nothing.
            sums = torch.nn.functional.pad(torch.cat(parts, 2), around)
            self._parts.append((number, first, sums))

    def judge_heads(self, first_head: int) -> None:
        """Judges heads whose blocks have all been there."""
        if not self._parts:
            return
        # Threads add parts as they come; what they add up to is the same each time.
        of_blocks: dict[int, Tensor] = {}
        for number, _, part in sorted(self._parts, key=lambda part: part[:2]):
            of_blocks[number] = of_blocks[number] + part if number in of_blocks else part
        places = [self.plan.blocks[number] for number in of_blocks]
        blocks = TileSums(*torch.stack([*of_blocks.values()], 1))
        self._meet("tile", first_head, places, blocks, self.plan.of_block)
        heads = blocks.mapped(lambda x: x.sum(0, keepdim=True))
        everything = [TestedBlock(0, 0, 0, 0)]
        self._meet("head", first_head, everything, heads, self.plan.of_head)
        self._parts.clear()

    def _meet(
        self,
        scope: str,
        first_head: int,
        places: Sequence[TestedBlock],
        sums: TileSums,
        deviations: float,
    ) -> None:
        """Meets sums of blocks [blocks, heads, tiles]."""
        tolerance = (sums.tolerance(deviations) - sums.slack).clamp(min=0)
        numbers = torch.stack([sums.signed, sums.norm, tolerance], -1).tolist()
        for place, of_block in zip(places, numbers, strict=True):
            for head, of_head in enumerate(of_block, first_head):
                for tile, (signed, norm, limit) in enumerate(of_head):
                    if norm == 0:
                        continue
                    first_key = place.first_key + tile * self.plan.tile_keys
                    used = signed / norm, limit / norm
                    result = StructureResult(
                        "key-tile", scope, head, place.first_row, *used, first_key
                    )
                    self._findings.meet(result)
