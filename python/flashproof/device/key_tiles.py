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

from .instruments import ROOT3, Instruments
from .kernel_rows import KernelRows
from .premises import Premises
from .problem import Shape
from .spread import TILE_ROWS
from .structure_results import (
    StructureFindings,
    StructureLimits,
    StructureResult,
    alarm_deviations,
)
from .sums import Sums
from .weights import HeadTensors, WeightBlock

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
    """Sums over rows for each tile of keys, [tiles]; the last three are of variances."""

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
class TestedRows:
    """A block of rows with all that its tests need."""

    head: HeadTensors
    block: WeightBlock
    kernel: KernelRows
    instruments: Instruments
    out: Tensor
    """[rows, v dim]: what the kernel gave, fp64."""


def _directions(tested: TestedRows, rows: slice, tiles: range, tile_keys: int) -> Tensor:
    """What leaving each tile out would do to O, [tiles, rows, v dim], by Σ w of the tile."""
    block = tested.block
    weights, exact = block.weights[rows], block.out[rows]
    before = block.first_key - tiles.start * tile_keys
    behind = tiles.stop * tile_keys - block.first_key - weights.shape[1]
    values = tested.head.v[block.first_key : block.first_key + weights.shape[1]]
    # A negative padding cuts keys off.
    of_tiles = torch.nn.functional.pad(weights, (before, behind))
    of_tiles = of_tiles.reshape(weights.shape[0], -1, tile_keys)
    values = torch.nn.functional.pad(values, (0, 0, before, behind))
    values = values.reshape(-1, tile_keys, values.shape[1])
    missing = torch.bmm(of_tiles.transpose(0, 1), values)
    direction: Tensor = of_tiles.sum(2).T[:, :, None] * exact - missing
    return direction


def _tile_sums(
    tested: TestedRows, premises: Premises, rows: slice, tiles: range, tile_keys: int
) -> TileSums:
    """Some tiles of keys against some of the rows."""
    block, kernel = tested.block, tested.kernel
    weights, exact, magnitude = block.weights[rows], block.out[rows], block.magnitude[rows]
    values = tested.head.v[block.first_key : block.first_key + weights.shape[1]]
    direction = _directions(tested, rows, tiles, tile_keys)
    is_seen = direction.square().sum(2) >= _NEGLIGIBLE**2 * magnitude.square().sum(1)
    is_seen &= (block.total[rows] > 0) & ~kernel.is_coarse[rows]
    direction = torch.where(is_seen[:, :, None], direction, 0.0)
    size = direction.abs()
    norm = direction.square().sum(2)
    # P's roundings and the weights' own errors together.
    amplitude = kernel.weight_rounding + kernel.typical_weight[rows]
    products = (direction @ values.T).mul_(weights * amplitude[:, None])
    absolute = torch.linalg.vector_norm(products, 1, 2)
    squares = products.square_().sum(2)
    half = tested.instruments.least_half_ulp[rows]
    systematic = (kernel.typical_weight + kernel.normalisation)[rows] * (
        exact * direction
    ).abs().sum(2)
    systematic = systematic + kernel.floor[rows] * (norm * exact.shape[1]).sqrt()
    accumulation = premises.accumulation * (magnitude * size).sum(2)
    sums = TileSums(
        signed=((tested.out[rows] - exact) * direction).sum(2),
        norm=norm,
        slack=(block.out_distance[rows] * size).sum(2),
        systematic=torch.where(is_seen, systematic, 0.0),
        weights=squares,
        weights_worst=absolute,
        output_worst=(half * size).sum(2),
        outputs=(half * size).square().sum(2),
        accumulation=kernel.keys[rows] * accumulation.square(),
    )
    return sums.mapped(lambda of_rows: of_rows.sum(1))


def _padded(sums: TileSums, around: tuple[int, int]) -> TileSums:
    """The sums with so many tiles before and behind them, of which there is nothing."""

    def pad(x: Tensor) -> Tensor:
        padded: Tensor = torch.nn.functional.pad(x, around)
        return padded

    return sums.mapped(pad)


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
        self._sums: TileSums | None = None

    def judge_block(self, index: int, tested: TestedRows) -> None:
        """Tests the planned blocks of 128 queries that are in a block of rows."""
        plan, block = self.plan, tested.block
        rows_at_once, keys = block.weights.shape
        # Tiles without a key of the block have no direction.
        seen = range(
            min(block.first_key // plan.tile_keys, plan.tiles),
            min(-(-(block.first_key + keys) // plan.tile_keys), plan.tiles),
        )
        # As many tiles at once as need no larger matrix than the block's.
        at_once = max(1, rows_at_once // TILE_ROWS)
        for first in plan.blocks:
            local = first - block.first_row
            if not 0 <= local < rows_at_once:
                continue
            rows = slice(local, min(local + TILE_ROWS, rows_at_once))
            parts = [
                _tile_sums(tested, self._premises, rows, seen[i : i + at_once], plan.tile_keys)
                for i in range(0, len(seen), at_once)
            ]
            around = (seen.start, plan.tiles - seen.stop)
            sums = _padded(TileSums.joined(parts), around)
            self._meet("tile", index, first, sums, plan.of_block)
            self._sums = sums if self._sums is None else self._sums.plus(sums)

    def judge_head(self, index: int) -> None:
        """Judges a head whose blocks have all been there."""
        if self._sums is not None:
            self._meet("head", index, 0, self._sums, self.plan.of_head)
        self._sums = None

    def _meet(self, scope: str, index: int, first: int, sums: TileSums, deviations: float) -> None:
        tolerance = (sums.tolerance(deviations) - sums.slack).clamp(min=0)
        numbers = torch.stack([sums.signed, sums.norm, tolerance], 1).tolist()
        for tile, (signed, norm, limit) in enumerate(numbers):
            if norm == 0:
                continue
            first_key = tile * self.plan.tile_keys
            result = StructureResult(
                "key-tile", scope, index, first, signed / norm, limit / norm, first_key
            )
            self._findings.meet(result)
