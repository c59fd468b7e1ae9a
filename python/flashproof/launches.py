"""Launch files: how `flashproof run` starts a compiled kernel (docs/guide/compiled-kernels.md)."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .arrays import to_array
from .safetensors import write

#: A parameter of a kernel: `{"tensor": name}`, `{"s32": 5}`, `{"scratch": bytes}`, ….
Parameter = Mapping[str, Any]

#: Whole numbers from here on are not those of every reader of JSON.
_LARGEST_NUMBER = 2**53


@dataclass(frozen=True)
class Launch:
    """How a kernel is started. Numbers of grid, block and cluster are along x, y and z; outputs are names of tensors."""

    entry: str
    grid: Sequence[Any]
    block: Sequence[int]
    parameters: Sequence[Parameter]
    outputs: Sequence[Any] = ()
    shared_bytes: int = 0
    cluster: Sequence[int] | None = None
    #: What the tensors are: the entry `contract` of the file.
    contract: Mapping[str, Any] | None = None
    #: Tensors that hold nothing before the launch, or zeros: the entry `buffers` of the file.
    buffers: Sequence[Mapping[str, Any]] = ()

    def members(self) -> dict[str, Any]:
        """What the file holds, besides the name of the PTX."""
        return {
            "entry": self.entry,
            "grid": list(self.grid),
            "block": list(self.block),
            **({"cluster": list(self.cluster)} if self.cluster else {}),
            "dynamicSharedBytes": self.shared_bytes,
            "parameters": [dict(one) for one in self.parameters],
            "outputs": list(self.outputs),
            **({"buffers": [dict(one) for one in self.buffers]} if self.buffers else {}),
            **({"contract": dict(self.contract)} if self.contract else {}),
        }


def entry_of(ptx: str) -> str:
    """The name of the first kernel of a module. ValueError where it has none."""
    found = re.search(r"\.entry\s+([\w$]+)\s*\(", ptx)
    if found is None:
        raise ValueError("the PTX has no .entry; give that of a kernel")
    return found.group(1)


def parameter_count(ptx: str, entry: str) -> int:
    """How many parameters a kernel takes."""
    return re.split(rf"\.entry\s+{re.escape(entry)}\s*\(", ptx)[1].split("{")[0].count(".param")


def number_parameter(kind: str, value: float) -> Parameter:
    """A number as a parameter of a type such as `s32` or `f32`; as text where JSON does not hold it."""
    is_text = (
        not math.isfinite(value) if isinstance(value, float) else abs(value) >= _LARGEST_NUMBER
    )
    return {kind: str(value) if is_text else value}


def write_launch(folder: str | os.PathLike[str], ptx: str, launch: Launch, stem: str = "") -> Path:
    """Write `kernel.ptx` and `launch.json`, their names after `stem`; the path of the latter."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{stem}kernel.ptx").write_text(ptx)
    named = {"ptx": f"{stem}kernel.ptx"} if stem else {}
    return _write(target / f"{stem}launch.json", {**named, **launch.members()})


def write_template(folder: str | os.PathLike[str], members: Mapping[str, Any]) -> Path:
    """Write `template.json`: a launch file with expressions of a problem in the place of numbers."""
    return _write(Path(folder) / "template.json", members)


def write_tensors(folder: str | os.PathLike[str], tensors: Mapping[str, Any]) -> Path:
    """Write `tensors.safetensors`, which a launch reads: of PyTorch, NumPy, JAX, CuPy, or as they are stored."""
    path = Path(folder) / "tensors.safetensors"
    write(path, {name: to_array(one, name) for name, one in tensors.items()})
    return path


def _write(path: Path, members: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps(members, indent=2) + "\n")
    return path
