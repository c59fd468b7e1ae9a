"""A problem and a kernel's outputs as a file that the command line audits, and the options that go with it."""

from __future__ import annotations

import operator
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from .arrays import to_array
from .safetensors import Array, write

#: How a kernel computes: a preset's name, a kernel model's, `name=value`, several of these, or a mapping.
Premises = Union[str, Sequence[str], Mapping[str, object]]

#: Where large files lie in memory on Linux.
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Settings:
    """What a problem is besides its tensors."""

    scale: float | None = None
    causal: bool = False
    window: tuple[int, int] | None = None
    softcap: float | None = None
    layout: str = "bhsd"

    def metadata(self) -> dict[str, str]:
        """The settings as a file's metadata. ValueError for what is none, with what to give."""
        if self.layout not in ("bhsd", "bshd"):
            raise ValueError(f"layout is {self.layout!r}; give 'bhsd' or 'bshd'")
        # As a flag of a framework may be: True, 1, NumPy's true; a text would be true whatever it says.
        if self.causal not in (None, False, True):
            raise ValueError(f"causal is {self.causal!r}; give True or False")
        found = {"causal": "true" if self.causal else "false", "layout": self.layout}
        if self.scale is not None:
            found["scale"] = repr(number_of("scale", self.scale))
        if self.window is not None:
            found["window"] = _pair(self.window)
        if self.softcap is not None and self.softcap != 0:
            found["softcap"] = repr(number_of("softcap", self.softcap))
        return found


def number_of(name: str, value: Any) -> float:
    """A number of Python, NumPy or PyTorch. ValueError for anything else."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise ValueError(f"{name} is {value!r}; give a number")
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} is {value!r}; give one number") from None


def _pair(window: Any) -> str:
    """A window as a file's metadata has it. ValueError for what are not two whole numbers."""
    try:
        left, right = (operator.index(one) for one in window)
    except (TypeError, ValueError):
        raise ValueError(
            f"window is {window!r}; give two whole numbers, (left, right), -1 for no limit"
        ) from None
    return f"{left},{right}"


def premise_words(premises: Premises, *, gradients: bool = False) -> list[str]:
    """Premises as words of a command line. ValueError for what is neither a name nor `name=value`."""
    option = "--gradient-premise" if gradients else "--premise"
    if isinstance(premises, str):
        return [option, premises] if "=" in premises else ["--as", premises]
    if isinstance(premises, Mapping):
        return [word for name, value in premises.items() for word in (option, f"{name}={value}")]
    return [word for one in premises for word in premise_words(one, gradients=gradients)]


def gather(tensors: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays that are given, by their names; those that are None are left out."""
    return {name: to_array(value, name) for name, value in tensors.items() if value is not None}


def write_dump(
    folder: str | os.PathLike[str],
    name: str,
    tensors: Mapping[str, Array],
    metadata: Mapping[str, str],
) -> str:
    """Write a problem with outputs, and its settings as metadata; the path of the file."""
    path = os.path.join(folder, f"{name}.safetensors")
    write(path, tensors, metadata)
    return path


def temporary_folder(size: int = 0) -> tempfile.TemporaryDirectory[str]:
    """A folder for files of so many bytes that pass to the server: in memory where there is such a place, with room for them."""
    has_memory = SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK)
    has_room = has_memory and (size == 0 or shutil.disk_usage(SHARED_MEMORY).free > size)
    parent = SHARED_MEMORY if has_room else None
    return tempfile.TemporaryDirectory(prefix="flashproof-", dir=parent)
