"""What tests of judged calls draw, and packages that stand in for libraries of kernels."""

import sys
from contextlib import contextmanager
from pathlib import Path

import torch

STAND_INS = Path(__file__).parent / "stand_ins"


def normal(*shape, seed=0, dtype=torch.float32):
    """A tensor of normal numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@contextmanager
def stand_ins(monkeypatch, packages):
    """These packages are those of `stand_ins`, none of them imported, and nothing of them is left afterwards."""

    def imported():
        return {x: one for x, one in sys.modules.items() if x.partition(".")[0] in packages}

    before = imported()
    for name in before:
        del sys.modules[name]
    monkeypatch.syspath_prepend(str(STAND_INS))
    yield
    for name in imported():
        del sys.modules[name]
    sys.modules.update(before)
