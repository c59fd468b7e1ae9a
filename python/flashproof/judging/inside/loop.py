"""Answers the judge: loads the candidate once, and runs it on one problem after the other."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...arrays import Framework, to_array
from ...kernel_host import RESULTS, Declined, KernelHost
from ...safetensors import Array
from ..frames import read_frame, write_frame
from .buffers import Buffers
from .called_as import called_as
from .limits import limit
from .watch import Watch

#: The most bytes of a request beside what is in shared memory.
_LARGEST_REQUEST = 1 << 20


class _NoWay(Exception):
    """A candidate that cannot be called at all."""


def _load(folder: Path, entry: str) -> Any:
    """What a candidate's file has by a name."""
    path, _, name = entry.partition("::")
    # The files of a candidate import one another.
    sys.path.insert(0, str((folder / path).parent))
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(Path(path).stem, folder / path)
    if spec is None or spec.loader is None:
        raise _NoWay(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise _NoWay(f"{path} has no {name}")
    return getattr(module, name)


class Session:
    """A loaded candidate, with what it gave before."""

    def __init__(self, shared: int, folder: Path, settings: Mapping[str, Any]) -> None:
        framework: Framework = settings["framework"]
        importlib.import_module(framework)
        self._buffers = Buffers(shared, framework, settings["device"])
        self._watch = Watch()
        limit(settings["memory"], settings["cpu_seconds"])
        self._watch.hear()
        self._is_preallocated: bool = settings["output"] == "preallocated"
        self._results = RESULTS[settings["contract"]]
        called = called_as(settings["form"], _load(folder, settings["entry"]))
        backward = settings["backward"]
        self._host = KernelHost(
            self._keeping(called),
            None if backward is None else _load(folder, backward),
            framework,
            settings["contract"],
            lambda name, array: self._buffers.view(name, array.shape),
        )
        #: The results of the last call, and what was sent of them.
        self._last: list[tuple[str, Any, Array]] = []
        self._kept: dict[str, Any] = {}

    def _keeping(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """The kernel, whose results are kept, and which writes to a given output where the contract says so."""

        def run(**given: Any) -> Any:
            made = kernel(**given)
            if self._is_preallocated:
                others = made[1:] if isinstance(made, (tuple, list)) else ()
                made = (given["out"], *others)
            named = made if isinstance(made, Mapping) else None
            values = made if isinstance(made, (tuple, list)) else (made,)
            self._kept = dict(named or zip(self._results, values))
            return made

        # Whose arguments are those that it takes: it is called without others that change nothing.
        run.__wrapped__ = kernel  # type: ignore[attr-defined]
        return run

    def run(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Array]]:
        """What is to be said of one call, and its results."""
        stored = self._buffers.begin(request["places"])
        self._kept = {}
        found = self._host.run_on(stored, request["request"])
        kept, self._kept = self._kept, {}
        self._buffers.show()
        said = {
            "overlaps": {
                name: inputs
                for name, value in kept.items()
                if name in found
                and name != self._given_name()
                and (inputs := self._buffers.overlaps(value))
            },
            "overwritten": [
                name for name, value, sent in self._last if to_array(value).data != sent.data
            ],
            **self.seen(),
        }
        self._last = [
            (name, value, found[name])
            for name, value in kept.items()
            if name in found and name != self._given_name()
        ]
        return said, found

    def _given_name(self) -> str | None:
        return "out" if self._is_preallocated else None

    def seen(self) -> dict[str, Any]:
        """What the candidate was seen to do by now."""
        return {
            "replaced": self._watch.replaced(),
            "heard": list(self._watch.heard),
            "asks_the_judge": self._watch.asks_the_judge,
        }


def _error(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def answer_requests(requests: int, answers: int, shared: int, folder: Path) -> None:
    """Load the candidate that the first request names, and answer the others until they end."""

    def read(size: int) -> bytes:
        parts, left = [], size
        while left:
            part = os.read(requests, left)
            if not part:
                # Nobody asks any more: what the candidate left behind is not waited for.
                os._exit(0)
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    settings, _ = read_frame(read, _LARGEST_REQUEST)
    try:
        session = Session(shared, folder, settings)
    except BaseException as error:
        write_frame(answers, {"ok": False, "error": _error(error)})
        return
    write_frame(answers, {"ok": True, **session.seen()})
    while True:
        request, _ = read_frame(read, _LARGEST_REQUEST)
        try:
            said, found = session.run(request)
            header = {name: (array.dtype, list(array.shape)) for name, array in found.items()}
            body = b"".join(array.data for array in found.values())
        except BaseException as error:
            is_declined = isinstance(error, (Declined, NotImplementedError))
            beside = {"declined": is_declined, "memory": isinstance(error, MemoryError)}
            write_frame(answers, {"ok": False, "error": _error(error), **beside, **session.seen()})
            continue
        write_frame(answers, {"ok": True, "results": header, **said}, body)
