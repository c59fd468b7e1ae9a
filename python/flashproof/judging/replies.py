"""What came of a candidate's call: `Reply`, or a `Fault` that ends its case."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..safetensors import ELEMENT_BITS, Array


class Fault(Exception):
    """What ends a candidate's case, whatever its numbers: a cause by its name, and what happened."""

    def __init__(self, cause: str, statement: str, heard: Iterable[str] = ()) -> None:
        super().__init__(statement)
        self.cause = cause
        self.statement = statement
        #: What the process was heard to do.
        self.heard = tuple(heard)


@dataclass(frozen=True)
class Reply:
    """What came of one call."""

    results: Mapping[str, Array]
    #: Inputs whose bytes are others than the judge wrote.
    changed: tuple[str, ...]
    #: What the process says of itself: it counts against the candidate, and never for it.
    said: Mapping[str, Any]
    #: What the judge's own memory of a given output holds after the call.
    given: Array | None = None


def conduct(said: Mapping[str, Any]) -> Fault | None:
    """What the process says against the candidate; None for nothing."""
    heard = [str(one) for one in said.get("heard") or ()]
    if said.get("asks_the_judge"):
        return Fault("reference", "it imports flashproof, to have the answer of its judge", heard)
    if said.get("replaced"):
        names = ", ".join(map(str, said["replaced"]))
        return Fault(
            "tampering",
            f"it replaces {names} in its process, where a kernel has nothing to measure or compare",
            heard,
        )
    return None


def fault_of(header: Mapping[str, Any]) -> Fault:
    """Why a call has no results."""
    error = str(header.get("error"))[:500]
    found = conduct(header)
    if found is not None:
        return found
    heard = [str(one) for one in header.get("heard") or ()]
    if header.get("declined"):
        return Fault("declines", f"it declines a problem that the contract has: {error}", heard)
    if header.get("memory"):
        return Fault("memory", f"it wants more memory than the budget has: {error}", heard)
    return Fault("raises", f"it raises {error}", heard)


def results_of(named: Any, body: bytes) -> dict[str, Array]:
    """Results of their announced dtypes and shapes. Fault where they are none."""
    found, first = {}, 0
    try:
        for name, (dtype, shape) in named.items():
            size = math.prod(shape) * ELEMENT_BITS[dtype] // 8
            found[str(name)] = Array(dtype, tuple(shape), body[first : first + size])
            first += size
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Fault("answer", f"what came back are no results: {error}") from None
    return found
