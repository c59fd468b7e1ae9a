"""The device's exact values and bounds against those of the library, element by element."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from problems import CAPTURES, drawn, element_bounds, kernels_of, read_capture, textbook

from flashproof.device.bounds import BlockBounds, bound_block
from flashproof.device.formats import FORMATS
from flashproof.device.masks import visible_keys
from flashproof.device.measure import key_span
from flashproof.device.premises import premises_of
from flashproof.device.problem import AttentionProblem, KernelOutputs, shape_of
from flashproof.device.weights import WeightBlock, head_tensors, weigh_block

RELATIVE = 2.0**-20
"""What the radii of two oracles and fp64's roundings come to, relative to a bound, where nothing
cancels.
"""

FORMAT_CASES = [
    ("bf16", torch.bfloat16, {}),
    ("fp16-window", torch.float16, {"window": (70, 20)}),
    ("fp32-softcap", torch.float32, {"softcap": 3.0}),
    ("e4m3-causal", torch.float8_e4m3fn, {"causal": True}),
    ("e5m2", torch.float8_e5m2, {"window": (30, -1), "causal": True}),
]


def bounds_of(
    problem: AttentionProblem, outputs: KernelOutputs
) -> list[tuple[WeightBlock, BlockBounds]]:
    """Head by head, all rows in blocks of 128."""
    shape = shape_of(problem)
    premises = premises_of(FORMATS[problem.q.dtype], FORMATS[problem.v.dtype])
    result = []
    for index in range(shape.batch * shape.heads):
        keys = visible_keys(problem, shape, problem.q.device, index)
        head = head_tensors(problem, shape, range(index, index + 1))
        for first in range(0, shape.queries, 128):
            seen = keys.rows(first, min(128, shape.queries - first))
            block = weigh_block(problem, head, seen, first, *key_span(seen))
            bounds = bound_block(problem, head, shape, premises, block, FORMATS[outputs.out.dtype])
            result.append((block, bounds))
    return result


def compare(
    problem: AttentionProblem, outputs: KernelOutputs, folder: Path, *, usual: bool = True
) -> None:
    """Asserts that values agree within both radii, bounds relatively, and that sure limits are no
    larger. Of a problem that is not ``usual`` bounds may be smaller as well.
    """
    library = element_bounds(problem, outputs, folder)
    blocks = bounds_of(problem, outputs)
    columns = problem.v.shape[-1]

    def all_of(values: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat([x.reshape(-1) for x in values])

    judged = all_of([bounds.is_judged[:, None].expand(-1, columns) for _, bounds in blocks])
    out, radius = (
        all_of([block.out for block, _ in blocks]),
        all_of([block.out_radius for block, _ in blocks]),
    )
    assert bool(
        ((out - library["out.exact"]).abs() <= radius + library["out.radius"])[judged].all()
    )
    rows = all_of([bounds.is_judged for _, bounds in blocks])
    lse, lse_radius = all_of([b.lse for b, _ in blocks]), all_of([b.lse_radius for b, _ in blocks])
    seen = rows & torch.isfinite(lse)
    assert bool(((lse - library["lse.exact"]).abs() <= lse_radius + 2.0**-40)[seen].all())
    total = all_of([bounds.stated.total for _, bounds in blocks]) + radius
    assert_near(total, library["out.total"], judged, smaller=0 if usual else 0.5)
    of_lse = all_of([bounds.lse for _, bounds in blocks]) + lse_radius
    assert_near(of_lse, library["lse.total"], seen, smaller=0 if usual else 0.05)
    for name in ("systematic", "known", "deviation"):
        stated = all_of([getattr(bounds.stated, name) for _, bounds in blocks])
        stated = stated + radius if name == "systematic" else stated
        # Where weights cancel the scatter is made of fp64's own roundings. Of rows that see their first key late
        # fewer weights count as alike.
        is_plain = usual and problem.features.is_plain
        smaller = 0 if is_plain else 0.5 if usual else 0.9
        wanted = library[f"out.{name}"]
        assert_near(stated, wanted, judged, 2.0**-12, at_most=1e-3, smaller=smaller)
    sure = all_of([bounds.sure.total for _, bounds in blocks])
    assert bool((sure * (1 - RELATIVE) <= library["out.total"])[judged].all())
    assert bool((sure[judged] >= library["out.total"][judged] / 4).all())


def assert_near(
    found: torch.Tensor,
    wanted: torch.Tensor,
    where: torch.Tensor,
    relative: float = RELATIVE,
    at_most: float = 0.0,
    smaller: float = 0.0,
) -> None:
    """Relatively equal, or ``smaller`` by such a part at most, but for a share ``at_most`` that rounds the other way
    at an edge.
    """
    wrong = found - wanted > relative * wanted.abs()
    wrong |= wanted - found > max(relative, smaller) * wanted.abs()
    assert float(wrong[where].double().mean()) <= at_most


@pytest.mark.parametrize("capture", CAPTURES)
def test_captures_have_the_bounds_of_the_library(capture: str, tmp_path: Path) -> None:
    compare(*read_capture(capture, kernels_of(capture)[0]), tmp_path)


@pytest.mark.parametrize(
    ("dtype", "settings"), [x[1:] for x in FORMAT_CASES], ids=[x[0] for x in FORMAT_CASES]
)
def test_formats_and_masks_have_the_bounds_of_the_library(
    dtype: torch.dtype, settings: dict[str, object], tmp_path: Path
) -> None:
    problem = drawn((2, 4, 2, 150, 200, 32), dtype, 7, **settings)  # type: ignore[arg-type]
    out_type = torch.bfloat16 if dtype.itemsize == 1 else dtype
    compare(problem, textbook(problem, out_type, dtype), tmp_path)


@pytest.mark.parametrize("queries", [1, 63, 130])
def test_rows_without_keys_and_short_problems(queries: int, tmp_path: Path) -> None:
    problem = drawn((1, 2, 1, queries, 60, 16), torch.bfloat16, queries, causal=True)
    compare(problem, textbook(problem, torch.bfloat16, torch.bfloat16), tmp_path)
