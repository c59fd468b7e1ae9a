"""What a judgement may take: `Budget`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Time, memory and calls of one judgement."""

    #: Wall-clock time of the whole, in seconds. What is not judged by then leaves the verdict undecided.
    seconds: float = 120
    #: Wall-clock time of one call, in seconds; a call that takes longer fails.
    call_seconds: float = 10
    #: The same of loading the candidate, with what it compiles then.
    load_seconds: float = 60
    #: Memory that the candidate may take beyond what its libraries have taken, in bytes.
    memory: int = 2 << 30
    #: Problems of each property, and of each shape.
    problems: int = 4

    def __post_init__(self) -> None:
        for name in ("seconds", "call_seconds", "load_seconds", "memory", "problems"):
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"budget {name} is {value!r}; give a number above 0")
