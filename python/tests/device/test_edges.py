"""Errors as large as the device still passes: the command line passes them, too.

``DEVICE_PROBLEMS=100`` tries more random problems, ``DEVICE_SEED`` others.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from problems import audit, drawn, textbook

from flashproof.device import AttentionProblem, KernelOutputs
from flashproof.device.formats import FORMATS, ulp
from flashproof.device.measure import measure

PROBLEMS = int(os.environ.get("DEVICE_PROBLEMS", "4"))
SEED = int(os.environ.get("DEVICE_SEED", "1"))
DTYPES = [
    torch.bfloat16,
    torch.float16,
    torch.float32,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]


def random_problem(seed: int) -> AttentionProblem:
    """A problem of any covered format, size and mask, of light and of heavy logits."""
    draw = random.Random(seed)
    kv_heads = draw.choice([1, 2])
    shape = (
        draw.choice([1, 2]),
        kv_heads * draw.choice([1, 2]),
        kv_heads,
        draw.choice([1, 17, 64, 129, 200]),
        draw.choice([3, 64, 100, 257, 400]),
        draw.choice([8, 32, 64]),
    )
    window = draw.choice([None, None, (20, 0), (64, -1), (-1, 10), (5, 5)])
    return drawn(
        shape,
        draw.choice(DTYPES),
        seed,
        size=draw.choice([0.03, 0.5, 1.0, 2.0, 4.0, 12.0]),
        causal=draw.random() < 0.4,
        window=window,
        softcap=draw.choice([None, None, 2.0, 30.0]),
    )


def worse(outputs: KernelOutputs, kind: str, amount: float) -> KernelOutputs:
    """What a kernel's output is when something is wrong with it, by so much."""
    out = outputs.out.double()
    unit = ulp(FORMATS[outputs.out.dtype], out)
    lse = outputs.lse
    if kind == "scale":
        out = out * (1 + amount)
    elif kind == "bias":
        out = out + amount * out.abs().mean()
    elif kind == "truncation":
        out = out - amount * 4 * unit * out.sign()
    elif kind == "element":
        out[0, 0, -1, 0] += amount * 64 * unit[0, 0, -1, 0]
    elif kind == "rows":
        out = out * (1 + amount * torch.linspace(-1, 1, out.shape[2], dtype=out.dtype)[:, None])
    elif kind == "lse" and lse is not None:
        lse = torch.where(torch.isfinite(lse), lse + amount, lse)
    return KernelOutputs(out.to(outputs.out.dtype), lse)


@pytest.mark.parametrize("number", range(PROBLEMS))
def test_the_largest_errors_that_pass_on_the_device(number: int, tmp_path: Path) -> None:
    problem = random_problem(1000 * SEED + number)
    dtype = problem.q.dtype
    outputs = textbook(problem, torch.bfloat16 if dtype.itemsize == 1 else dtype, dtype)
    kinds = ["scale", "bias", "truncation", "element", "rows", "lse"]
    kind = kinds[number % len(kinds)]

    def passes(amount: float) -> bool:
        return not measure(problem, worse(outputs, kind, amount), 1e-9).open_heads

    if not passes(0):
        # Weights that round alike, or heavy logits: the command line decides.
        return
    least, most = 0.0, 1.0
    for _ in range(14):
        middle = (least * most) ** 0.5 if least > 0 else most / 16
        if passes(middle):
            least = middle
        else:
            most = middle
    report: Any = audit(problem, worse(outputs, kind, least), tmp_path)
    assert report["verdict"]["pass"], (kind, least, report["verdict"]["sentence"])
