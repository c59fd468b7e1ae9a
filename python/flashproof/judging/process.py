"""A candidate's process: started, asked, stopped between questions and ended by the judge."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..safetensors import Array
from .budget import Budget
from .candidate import Candidate
from .contract import KernelContract
from .frames import read_frame, write_frame
from .replies import Fault, Reply, fault_of, results_of

#: Variables that a candidate's process keeps: where compilers, drivers and libraries are, and how many threads they take.
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
_KEPT_PREFIXES = ("CUDA_", "OMP_", "OPENBLAS_", "MKL_", "NVIDIA_", "ROCM_", "HIP_", "TRITON_")
#: Tensors begin at multiples of this, in bytes.
_ALIGNMENT = 256


@dataclass
class CandidateProcess:
    """The process of a candidate; a context that ends it."""

    candidate: Candidate
    contract: KernelContract
    budget: Budget
    #: The interpreter.
    python: str = sys.executable
    _process: subprocess.Popen[bytes] | None = None
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> CandidateProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> Mapping[str, Any]:
        """Start the process and load the candidate; what it says of itself. Fault where it does not load."""
        if not hasattr(os, "pread"):
            raise ValueError("candidates are judged on Linux and macOS alone; use one of these")
        stack = self._stack
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="candidate-")))
        for path, text in self.candidate.sources.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text)
        self._shared = stack.enter_context(_memory(self.budget.memory)).fileno()
        self._log = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        theirs, self._requests = os.pipe()
        self._answers, their_answers = os.pipe()
        for descriptor in (self._requests, self._answers):
            stack.callback(os.close, descriptor)
        try:
            self._process = subprocess.Popen(
                [
                    *(
                        self.python,
                        "-I",
                        "-B",
                        str(Path(__file__).with_name("inside") / "start.py"),
                    ),
                    *map(str, (theirs, their_answers, self._shared)),
                    str(folder),
                ],
                pass_fds=(theirs, their_answers, self._shared),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                cwd=folder,
                env=_environment(folder),
                start_new_session=True,
            )
        finally:
            os.close(theirs)
            os.close(their_answers)
        settings = {
            "entry": self.candidate.entry,
            "form": {**self.candidate.form, "device": self.contract.device},
            "framework": self.contract.framework,
            "device": self.contract.device,
            "contract": self.contract.kind,
            "output": self.contract.output,
            "backward": self.contract.backward,
            # Drivers of GPUs map far more than they use.
            "memory": self.budget.memory if self.contract.device == "cpu" else None,
            "cpu_seconds": self.budget.seconds * (os.cpu_count() or 1),
        }
        header, _ = self._ask(settings, self.budget.load_seconds, "it was loaded")
        if not header["ok"]:
            raise Fault("load", f"the candidate does not load: {header['error']}")
        self._stop()
        return header  # type: ignore[no-any-return]

    def call(
        self, stored: Mapping[str, Array], request: Mapping[str, Any], given: Array | None
    ) -> Reply:
        """Run the candidate on a problem's tensors, with `given` as the output to fill. Fault where it gives no answer."""
        written = {**stored, **({} if given is None else {"out": given})}
        places = self._write(written)
        signal_group(self._running(), signal.SIGCONT)
        header, body = self._ask(
            {"places": places, "request": request}, self.budget.call_seconds, "it computed"
        )
        self._stop()
        if not header["ok"]:
            raise fault_of(header)
        after = {name: self._read(places[name]) for name in written}
        changed = [name for name, array in stored.items() if after[name] != array.data]
        return Reply(
            results_of(header["results"], body),
            tuple(changed),
            header,
            None if given is None else Array(given.dtype, given.shape, after["out"]),
        )

    def kill(self) -> None:
        """End the process and what it has started."""
        process, self._process = self._process, None
        if process is not None:
            signal_group(process, signal.SIGKILL)
            process.wait()

    def close(self) -> None:
        """End the process, and remove its files."""
        self.kill()
        self._stack.close()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def _stop(self) -> None:
        """Between questions nothing of the candidate runs: not even to look at what is judged."""
        signal_group(self._running(), signal.SIGSTOP)

    def _write(self, tensors: Mapping[str, Array]) -> dict[str, Any]:
        places, end = {}, 0
        for name, array in tensors.items():
            if end + len(array.data) > self.budget.memory:
                raise Fault("memory", "a problem does not fit into the memory of the budget")
            _write_all(self._shared, array.data, end)
            places[name] = (array.dtype, list(array.shape), end, len(array.data))
            end += len(array.data) + -len(array.data) % _ALIGNMENT
        return places

    def _read(self, place: Any) -> bytes:
        return _read_all(self._shared, place[3], place[2])

    def _ask(self, message: Mapping[str, Any], seconds: float, doing: str) -> tuple[Any, bytes]:
        until = time.monotonic() + seconds
        try:
            write_frame(self._requests, message)
            return read_frame(lambda size: self._receive(size, until), self.budget.memory)
        except TimeoutError:
            raise Fault("time", f"no answer within {seconds:g} s while {doing}") from None
        except (EOFError, BrokenPipeError):
            raise Fault("crash", f"the process ended while {doing}{self._end()}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise Fault("answer", f"what came back is no answer: {error}") from None

    def _receive(self, size: int, until: float) -> bytes:
        parts, left = [], size
        while left:
            ready, _, _ = select.select([self._answers], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            part = os.read(self._answers, min(left, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _end(self) -> str:
        """How the process ended, and the last line that it wrote."""
        process = self._running()
        try:
            status = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return ""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 2000))
        lines = self._log.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        how = (
            f" by signal {signal.Signals(-status).name}" if status < 0 else f" with status {status}"
        )
        return how + (f": {last[:200]}" if last else "")


def _memory(size: int) -> Any:
    """A file of memory as large as all tensors of a call may be; what is not used takes none."""
    file: Any = (
        os.fdopen(os.memfd_create("flashproof-judge"), "r+b")
        if hasattr(os, "memfd_create")
        else tempfile.TemporaryFile()  # noqa: SIM115
    )
    os.ftruncate(file.fileno(), size)
    return file


#: Linux writes and reads no more than 2 GiB less a page at a time.
_LONGEST = 1 << 30


def _write_all(file: int, data: bytes, first: int) -> None:
    view = memoryview(data)
    for at in range(0, len(view), _LONGEST):
        os.pwrite(file, view[at : at + _LONGEST], first + at)


def _read_all(file: int, size: int, first: int) -> bytes:
    return b"".join(
        os.pread(file, min(_LONGEST, size - at), first + at) for at in range(0, size, _LONGEST)
    )


def _environment(folder: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    # Memory of the C library that was never written holds bytes of 0xfe: about −1.7e38 in fp32 and bf16, NaN in fp16.
    return {**kept, "HOME": str(folder), "TMPDIR": str(folder), "MALLOC_PERTURB_": "1"}


def signal_group(process: subprocess.Popen[bytes], which: signal.Signals) -> None:
    """Send a signal to a process and to what it has started in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, which)
