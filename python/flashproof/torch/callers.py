"""Where a call comes from: the line that makes it, and the module of the model that it is in."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from types import FrameType

import torch

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARY = os.path.dirname(os.path.abspath(torch.__file__))


@dataclass(frozen=True)
class Place:
    """A line of a program, within a model."""

    #: `model.py:12 in forward`.
    line: str
    #: The dotted name of the module within the outermost one, with its class; "" outside of modules.
    module: str

    def __str__(self) -> str:
        return f"{self.module}, {self.line}" if self.module else self.line


def caller() -> Place:
    """The innermost line outside of PyTorch and of this package, and the innermost module."""
    line = "an unknown line"
    is_found = False
    inner: torch.nn.Module | None = None
    outer: torch.nn.Module | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = os.path.abspath(frame.f_code.co_filename)
        if not is_found and not _is_within(path):
            line, is_found = (
                f"{_short(path)}:{frame.f_lineno} in {frame.f_code.co_name}",
                True,
            )
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module):
            inner = owner if inner is None else inner
            outer = owner
        frame = frame.f_back
    return Place(line, "" if inner is None or outer is None else _name(inner, outer))


def _is_within(path: str) -> bool:
    return any(path.startswith(folder + os.sep) for folder in (_OWN, _LIBRARY))


def _short(path: str) -> str:
    """The path from the working folder, where it lies within that."""
    relative = os.path.relpath(path) if os.path.splitdrive(path)[0] == "" else path
    return path if relative.startswith("..") else relative


def _name(module: torch.nn.Module, root: torch.nn.Module) -> str:
    kind = type(module).__name__
    for name, one in root.named_modules():
        if one is module:
            return f"{name} ({kind})" if name else kind
    return kind
