"""What is tested, and how strictly, is what the library tests: a tile left out is a false pass."""

from __future__ import annotations

import json
import math
import subprocess
from dataclasses import astuple
from pathlib import Path

import pytest
from problems import DIST, needs_library

from flashproof.device.key_tiles import plan_key_tiles
from flashproof.device.measure import Room
from flashproof.device.problem import Shape
from flashproof.device.spread import spread_rates
from flashproof.device.structure_results import structure_limits

SHAPES = [
    (1, 1, 384, 384, None),
    (2, 3, 100, 129, None),
    (1, 1, 1, 5000, None),
    (1, 2, 130, 128, None),
    (1, 16, 4096, 4096, None),
    (1, 1, 640, 9000, None),
    (1, 32, 32768, 32768, None),
    (4, 1, 7, 70000, None),
    # Packed sequences: some without queries, some without keys, some of one tile.
    (1, 2, 225, 489, ((0, 70, 0, 100), (70, 0, 100, 5), (70, 64, 105, 64), (134, 91, 169, 320))),
    (1, 4, 6, 1070, ((0, 2, 0, 900), (2, 2, 900, 40), (4, 2, 940, 130))),
    (1, 1, 2, 30000, ((0, 1, 0, 0), (1, 1, 0, 30000))),
    (1, 3, 900, 900, ((0, 500, 0, 500), (500, 400, 500, 400))),
]


def test_plans_are_those_of_the_library() -> None:
    needs_library()
    script = Path(__file__).with_name("plans.mjs")
    command = ["node", str(script), str(DIST), json.dumps(SHAPES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wanted = json.loads(done.stdout)
    for sizes, plan in zip(SHAPES, wanted, strict=True):
        batch, heads, queries, keys, sequences = sizes
        limits = structure_limits(Shape(batch, heads, heads, queries, keys, 8, 8), 5e-10)
        for scope, deviations in plan["deviations"].items():
            assert getattr(limits, scope) == pytest.approx(deviations, rel=1e-12)
        mine = plan_key_tiles(Shape(batch, heads, heads, queries, keys, 8, 8), limits, sequences)
        assert [list(astuple(block)) for block in mine.blocks] == plan["blocks"]
        if not mine.blocks:
            continue
        assert (mine.tile_keys, mine.tiles) == (plan["tileKeys"], plan["tiles"])
        assert mine.of_block == pytest.approx(plan["ofBlock"], rel=1e-12)
        assert mine.of_head == pytest.approx(plan["ofHead"], rel=1e-12)


def test_rates_of_the_spread() -> None:
    """Half for elements, a quarter each for tiles and heads, where two things may go wrong."""
    rates = spread_rates(Shape(2, 3, 3, 129, 10, 8, 4), 1e-6)
    elements, tiles, heads = 2 * 3 * 129 * 4, 2 * 3 * 2, 2 * 3
    assert 2 * elements * math.exp(-(rates.deviations**2) / 2) == pytest.approx(1e-6 / 2)
    assert 2 * tiles * math.exp(-rates.tile) == pytest.approx(1e-6 / 4)
    assert 2 * heads * math.exp(-rates.head) == pytest.approx(1e-6 / 4)


@pytest.mark.parametrize("keys", [1, 64, 4096, 32768, 1_000_000])
@pytest.mark.parametrize("free", [None, 0, 2**30, 2**33, 2**37])
@pytest.mark.parametrize("matrices", [8, 24])
def test_no_more_scores_than_fit_are_there_at_once(
    keys: int, free: int | None, matrices: int
) -> None:
    room = Room(free, matrices)
    rows = room.rows(keys)
    assert rows % 128 == 0
    most = 2**24 if free is None else max(2**27, min(2**32, free // (2 * matrices)))
    assert rows == 128 or rows * keys * 8 <= most
    for heads in (1, 3, 16, 1000):
        together = room.heads(heads, 500, keys)
        assert 1 <= together <= heads
        assert together == 1 or together * min(rows, 500) * keys * 8 <= most
        together, rows = room.blocks(heads, 500, keys)
        assert 1 <= together <= heads
        assert rows % 128 == 0
        assert together * rows == 128 or together * min(rows, 500) * keys * 8 <= most
