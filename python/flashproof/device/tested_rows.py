"""A block of rows with all that tests of sums over rows need."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .instruments import Instruments
from .kernel_rows import KernelRows
from .row_errors import RowErrors
from .weights import HeadTensors, WeightBlock


@dataclass(frozen=True)
class TestedRows:
    """Rows of all heads of a block, head by head."""

    head: HeadTensors
    block: WeightBlock
    errors: RowErrors
    kernel: KernelRows
    instruments: Instruments
    out: Tensor
    """[rows, v dim]: what the kernel gave, fp64."""
