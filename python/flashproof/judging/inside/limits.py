"""Limits of a candidate's process that it cannot lift itself unless it is root."""

from __future__ import annotations

import contextlib
import os

#: The largest file that it may write, in bytes.
LARGEST_FILE = 1 << 30


def _address_space() -> int:
    """What the process has mapped by now, in bytes; 0 where that is not known."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def limit(memory: int | None, cpu_seconds: float) -> None:
    """Limit memory beyond what is mapped already (None for no limit), processor time, the size of files, and core dumps."""
    try:
        import resource
    except ImportError:
        return
    limits = {
        resource.RLIMIT_CPU: int(cpu_seconds) + 1,
        resource.RLIMIT_FSIZE: LARGEST_FILE,
        resource.RLIMIT_CORE: 0,
    }
    mapped = _address_space()
    if memory is not None and mapped:
        limits[resource.RLIMIT_AS] = mapped + memory
    for which, most in limits.items():
        # A limit that stands may be lower than this one.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(which, (most, most))
