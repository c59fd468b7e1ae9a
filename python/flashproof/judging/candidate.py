"""A candidate: source that is fixed before anything is drawn, and how it is called."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

#: How a candidate may be named: `file.py:function`, a function at the top of a file, or a `Candidate`.
CandidateLike = Union[str, "os.PathLike[str]", Callable[..., Any], "Candidate"]


@dataclass(frozen=True)
class Candidate:
    """The files of a kernel by their paths, the function to call (`file.py::name`), and the form that calls it."""

    sources: Mapping[str, bytes]
    entry: str
    #: The form's name and what it needs: `{"name": "kernel"}` for `kernel(q, k, v, *, scale, causal, window, softcap)`.
    form: Mapping[str, Any] = field(default_factory=lambda: {"name": "kernel"})
    #: What it is called in reports.
    label: str = "the candidate"
    #: What a form leaves open of a contract, as a contract has it.
    limits: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        path, colons, name = self.entry.partition("::")
        if not colons or not name or path not in self.sources:
            raise ValueError(
                f"entry is {self.entry!r}; give one of {', '.join(self.sources)}, '::' and a function's name"
            )
        for one in self.sources:
            if os.path.isabs(one) or ".." in Path(one).parts:
                raise ValueError(
                    f"a source's path is {one!r}; give one below the candidate's own folder"
                )

    @property
    def sha256(self) -> str:
        """The hash of the sources with their paths and of the entry, in hexadecimal."""
        digest = hashlib.sha256(self.entry.encode())
        for path in sorted(self.sources):
            digest.update(f"\0{path}\0{len(self.sources[path])}\0".encode() + self.sources[path])
        return digest.hexdigest()

    @staticmethod
    def from_source(text: str, function: str) -> Candidate:
        """A candidate of one file, by its text and the name of its function."""
        return Candidate(
            {"candidate.py": text.encode()}, f"candidate.py::{function}", label=function
        )

    @staticmethod
    def from_file(path: str | os.PathLike[str], function: str) -> Candidate:
        """A candidate of one file, read now. ValueError where it cannot be read."""
        file = Path(path)
        return Candidate(
            {file.name: read_source(file)}, f"{file.name}::{function}", label=f"{path}:{function}"
        )

    @staticmethod
    def of(given: CandidateLike) -> Candidate:
        """The candidate that is named; ValueError or TypeError, with what to give, for what names none."""
        if isinstance(given, Candidate):
            return given
        if callable(given):
            return _of_function(given)
        text = os.fspath(given)
        path, colon, function = text.rpartition(":")
        path = path.removesuffix(":")
        if not colon or not function.isidentifier():
            raise ValueError(
                f"candidate is {text!r}; give file.py:function, a function or a Candidate"
            )
        return Candidate.from_file(path, function)


def read_source(path: Path) -> bytes:
    """A file of a candidate. ValueError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; give a candidate's file") from None


def _of_function(function: Callable[..., Any]) -> Candidate:
    name = getattr(function, "__qualname__", "")
    try:
        file = inspect.getsourcefile(function)
    except TypeError:
        file = None
    if file is None or not name.isidentifier() or not Path(file).is_file():
        raise ValueError(
            f"candidate is {name or function!r}, which is not a function at the top of a file; "
            "give that, file.py:function or Candidate.from_source(text, name)"
        )
    return Candidate.from_file(file, name)
