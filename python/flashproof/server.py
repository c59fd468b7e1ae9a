"""A process of `flashproof serve` that carries out commands, so that a test session starts Node.js once."""

from __future__ import annotations

import atexit
import json
import os
import re
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from .node import node, program

#: A small heap is collected once an audit, and with it goes the compiled code of functions that are made anew for each. No
#: memory is taken before it is needed.
INITIAL_HEAP = "--initial-heap-size=2000"

#: The exit status of a request that cannot be carried out.
WRONG_REQUEST = 2


class RequestError(ValueError):
    """What was asked for cannot be done: what is wrong, where, and how to mend it."""


def _line(stderr: str) -> str:
    """What a command said of a wrong request, without what is for a terminal: whose line it is, and where help is."""
    return re.sub(
        r"; see flashproof( \w+)? --help$", "", stderr.strip().removeprefix("flashproof: ")
    )


@dataclass(frozen=True)
class Answer:
    """What a command wrote, and its exit status: 0 or 1."""

    status: int
    stdout: str
    stderr: str


class Server:
    """The process, which is started by its first request. Threads may share it: requests queue up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0
        self._requests = 0

    def _start(self) -> subprocess.Popen[str]:
        # A child of a fork must not speak to its parent's server.
        if self._process is None or self._process.poll() is not None or self._owner != os.getpid():
            self._process = subprocess.Popen(
                [node(), INITIAL_HEAP, program(), "serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env={**os.environ, "NO_COLOR": "1"},
            )
            self._owner = os.getpid()
        return self._process

    def run(self, arguments: Sequence[str]) -> Answer:
        """
        Carry out a command line.

        RequestError with the command's own line where it cannot be carried out; RuntimeError where the server ends before it answers.
        """
        with self._lock:
            process = self._start()
            assert process.stdin is not None and process.stdout is not None
            self._requests += 1
            try:
                process.stdin.write(
                    json.dumps({"id": self._requests, "args": list(arguments)}) + "\n"
                )
                process.stdin.flush()
                line = process.stdout.readline()
            except BrokenPipeError:
                line = ""
            if line == "":
                status = process.wait()
                self._process = None
                raise RuntimeError(
                    f"flashproof ended with status {status} before it answered: {' '.join(arguments)}"
                )
        said = json.loads(line)
        if said["status"] == WRONG_REQUEST:
            raise RequestError(_line(said["stderr"]))
        return Answer(said["status"], said["stdout"], said["stderr"])

    def close(self) -> None:
        """End the process; the next request starts another."""
        with self._lock:
            process, self._process = self._process, None
            if process is None or self._owner != os.getpid():
                return
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()


_shared = Server()
atexit.register(_shared.close)


def shared_server() -> Server:
    """The server of this Python process."""
    return _shared
