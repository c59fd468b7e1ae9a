"""Tensors as safetensors files have them, without any library of tensors."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

#: Bits of an element, by safetensors' names.
ELEMENT_BITS = {
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), 8),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F64", "I64", "U64"), 64),
}


@dataclass(frozen=True)
class Array:
    """Elements in row-major order, little-endian, with their dtype by safetensors' name (`BF16`, `F8_E4M3`, …)."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @staticmethod
    def filled(dtype: str, shape: Iterable[int], byte: int) -> Array:
        """All bytes the same: 0xff is NaN in every format of floating point."""
        sizes = tuple(shape)
        return Array(dtype, sizes, bytes([byte]) * (math.prod(sizes) * ELEMENT_BITS[dtype] // 8))

    def __post_init__(self) -> None:
        due = math.prod(self.shape) * ELEMENT_BITS[self.dtype] // 8
        if len(self.data) != due:
            raise ValueError(
                f"{self.dtype} {list(self.shape)} has {due} bytes, and {len(self.data)} are given"
            )


def write(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Array],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a safetensors file (header of JSON, then the tensors one behind the other)."""
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, array in tensors.items():
        header[name] = {
            "dtype": array.dtype,
            "shape": list(array.shape),
            "data_offsets": [end, end + len(array.data)],
        }
        end += len(array.data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(array.data)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, str]]:
    """Read a safetensors file: its tensors by name, and its metadata."""
    content = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = Array(entry["dtype"], tuple(entry["shape"]), content[first:last])
    return tensors, metadata
