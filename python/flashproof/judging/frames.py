"""Messages between the judge and a candidate's process: a length, JSON, and the bytes that it announces."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping
from typing import Any

#: The longest JSON of a message, in bytes: names, shapes and an error.
LONGEST_HEADER = 1 << 20

_LENGTHS = struct.Struct("<QQ")


def write_frame(descriptor: int, header: Mapping[str, Any], body: bytes = b"") -> None:
    """Write one message. OSError where nobody reads."""
    text = json.dumps(header).encode()
    rest = memoryview(_LENGTHS.pack(len(text), len(body)) + text + body)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_frame(read: Callable[[int], bytes], largest: int) -> tuple[Any, bytes]:
    """One message, by a function that gives exactly as many bytes as it is asked for. ValueError for one that is none, or too long."""
    header, body = _LENGTHS.unpack(read(_LENGTHS.size))
    if header > LONGEST_HEADER or body > largest:
        raise ValueError(f"an answer of {header + body} bytes")
    return json.loads(read(header)), read(body)
