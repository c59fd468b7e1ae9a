"""What a candidate does in its process besides computing, as far as that can be seen from within."""

from __future__ import annotations

import sys
from typing import Any

#: Timers and comparisons: who replaces one means to be measured or compared by it.
WATCHED = (
    *(
        ("time", f"{name}{end}")
        for name in ("perf_counter", "monotonic", "time")
        for end in ("", "_ns")
    ),
    *(("time", f"{name}{end}") for name in ("process_time", "thread_time") for end in ("", "_ns")),
    *(("numpy", name) for name in ("allclose", "isclose", "array_equal", "isnan", "isfinite")),
    *(("torch", name) for name in ("allclose", "isclose", "equal", "isnan", "isfinite")),
    ("torch.testing", "assert_close"),
    *(("torch.cuda", name) for name in ("synchronize", "Event")),
)

#: Events of Python's audit hooks that a kernel has little use for.
EVENTS = {
    "gc.get_objects": "lists the objects of its process",
    "gc.get_referrers": "asks who refers to an object",
    "socket.connect": "connects to a network",
    "os.kill": "sends a signal",
    "sys.setprofile": "watches the functions of its process",
    "sys.settrace": "traces its process",
}


class Watch:
    """Remembers watched functions as they are now, and hears what the process does from now on."""

    def __init__(self) -> None:
        self._before = {place: self._now(*place) for place in WATCHED}
        self._is_heard = False
        #: What it did, in the order in which it first did.
        self.heard: dict[str, None] = {}
        #: Whether it asked for the package that judges it.
        self.asks_the_judge = False

    def hear(self) -> None:
        """Begin to listen. A hook cannot be taken away by Python code."""
        sys.addaudithook(self._hook)

    @staticmethod
    def _now(module: str, name: str) -> Any:
        return getattr(sys.modules.get(module), name, None)

    def replaced(self) -> list[str]:
        """Watched functions that are others now than at the beginning."""
        return [
            ".".join(place)
            for place, function in self._before.items()
            if function is not None and self._now(*place) is not function
        ]

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import" and str(arguments[0]).partition(".")[0] == "flashproof":
            self.asks_the_judge = True
            raise ImportError("flashproof is not to be had in a candidate's process")
        if event in EVENTS:
            self.heard[EVENTS[event]] = None
