"""Whether each tile of keys is there: the kernel's error projected on what leaving the tile out
would do to O.

The test of ``src/audit/structure/key-tile-test.ts``, in the same blocks of queries. As in
``structure.py`` limits count all roundings as independent, so that none is larger than the command
line's.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

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
class KeyTilePlan:
    """Which tiles of keys are tested against which blocks of queries: ``planKeyTiles``."""

    tile_keys: int
    tiles: int
    blocks: tuple[int, ...]
    """First rows; empty where there is one tile only, and none to miss."""
    of_block: float
    """Deviations that are allowed of a block, and of a head."""
    of_head: float


def plan_key_tiles(shape: Shape, limits: StructureLimits) -> KeyTilePlan:
    """All blocks against up to two tiles; with more tiles fewer blocks, and beyond 32 tiles larger
    ones.
    """
    blocks = -(-shape.queries // TILE_ROWS)
    tiles = -(-shape.keys // _TILE_KEYS)
    tile_keys = _TILE_KEYS
    if tiles > _MOST_TILES:
        tile_keys *= -(-tiles // min(_MOST_TILES, _TILES_PER_BLOCK * blocks))
        tiles = -(-shape.keys // tile_keys)
    count = min(blocks, max(1, -(-blocks * _FULLY_TESTED_TILES // tiles)))
    firsts = tuple(TILE_ROWS * (-(-(i + 1) * blocks // count) - 1) for i in range(count))
    tests = shape.batch * shape.heads * tiles
    return KeyTilePlan(
        tile_keys,
        tiles,
        firsts if tiles > 1 else (),
        alarm_deviations(tests * count, limits.share),
        alarm_deviations(tests, limits.share),
    )


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
    """[rows]: the keys that rows see, from the block's first on."""

    @classmethod
    def of(cls, tested: TestedRows, rows: slice) -> _Rows:
        """Those rows."""
        block, kernel = tested.block, tested.kernel

        def cut(x: Tensor) -> Tensor:
            return block.by_head(x)[:, rows]

        seen = block.seen.after(block.first_key)
        is_judged = (block.total > 0) & ~kernel.is_coarse
        of_row = is_judged, kernel.keys, kernel.typical_weight, kernel.normalisation, kernel.floor
        return cls(
            block.weights[:, rows],
            tested.head.v[:, block.columns],
            cut(block.out),
            cut(block.magnitude),
            cut(tested.out),
            cut(block.out_distance),
            cut(tested.instruments.least_half_ulp),
            tuple(cut(x) for x in of_row),
            VisibleKeys(seen.begin[rows], seen.end[rows]),
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
    moments = engine_of(size.device).moments(direction, rows.values, rows.weights, rows.seen)
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
        shape: Shape,
        premises: Premises,
        limits: StructureLimits,
        findings: StructureFindings,
    ) -> None:
        """Results join ``findings``."""
        self.plan = plan_key_tiles(shape, limits)
        self._findings, self._premises, self._shape = findings, premises, shape
        self._blocks: list[tuple[int, Tensor]] = []
        """Of each block of queries its first row."""

    def judge_block(self, tested: TestedRows) -> None:
        """Tests the planned blocks of 128 queries that are in a block of rows."""
        plan, block = self.plan, tested.block
        heads, rows_at_once, keys = block.weights.shape
        # Tiles without a key of the block have no direction.
        seen = range(
            min(block.first_key // plan.tile_keys, plan.tiles),
            min(-(-(block.first_key + keys) // plan.tile_keys), plan.tiles),
        )
        # As many tiles at once as need no larger matrix than the block's.
        at_once = max(1, rows_at_once // TILE_ROWS)
        rounding = tested.kernel.weight_rounding
        for first in plan.blocks:
            local = first - block.first_row
            if not 0 <= local < rows_at_once:
                continue
            rows = _Rows.of(tested, slice(local, min(local + TILE_ROWS, rows_at_once)))
            parts = [
                _tile_sums(
                    rows,
                    rounding,
                    self._premises,
                    block.first_key,
                    seen[i : i + at_once],
                    plan.tile_keys,
                )
                for i in range(0, len(seen), at_once)
            ]
            around = (seen.start, plan.tiles - seen.stop)
            # Of tiles before and behind these there is nothing.
            sums = torch.nn.functional.pad(torch.cat(parts, 2), around)
            self._blocks.append((first, sums))

    def judge_heads(self, first_head: int) -> None:
        """Judges heads whose blocks have all been there."""
        if not self._blocks:
            return
        # Threads add blocks as they come.
        blocks_in_order = sorted(self._blocks, key=lambda block: block[0])
        firsts, parts = zip(*blocks_in_order, strict=True)
        blocks = TileSums(*torch.stack(parts, 1))
        self._meet("tile", first_head, firsts, blocks, self.plan.of_block)
        heads = blocks.mapped(lambda x: x.sum(0, keepdim=True))
        self._meet("head", first_head, (0,), heads, self.plan.of_head)
        self._blocks.clear()

    def _meet(
        self,
        scope: str,
        first_head: int,
        firsts: tuple[int, ...],
        sums: TileSums,
        deviations: float,
    ) -> None:
        """Meets sums of blocks [blocks, heads, tiles] from rows ``firsts`` on."""
        tolerance = (sums.tolerance(deviations) - sums.slack).clamp(min=0)
        numbers = torch.stack([sums.signed, sums.norm, tolerance], -1).tolist()
        for first, of_block in zip(firsts, numbers, strict=True):
            for head, of_head in enumerate(of_block, first_head):
                for tile, (signed, norm, limit) in enumerate(of_head):
                    if norm == 0:
                        continue
                    first_key = tile * self.plan.tile_keys
                    result = StructureResult(
                        "key-tile", scope, head, first, signed / norm, limit / norm, first_key
                    )
                    self._findings.meet(result)
