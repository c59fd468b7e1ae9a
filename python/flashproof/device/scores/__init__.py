"""What passes over all scores of queries and keys: operations of PyTorch anywhere, kernels of Triton
on a GPU.

Both make the same sums, in other orders; Theorem 13 of docs/theory/bounds.md holds for both.
"""

from .choice import engine_of, runs_triton, use_engine
from .engine import Engine, Moments, RowTotals, ScoreLaw, Weights

__all__ = [
    "Engine",
    "Moments",
    "RowTotals",
    "ScoreLaw",
    "Weights",
    "engine_of",
    "runs_triton",
    "use_engine",
]
