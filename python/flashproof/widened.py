"""Tensor files for a kernel in NumPy that answers by the process protocol: numbers widened to fp32, which NumPy has."""

from __future__ import annotations

import os
from typing import Any

import numpy

from .arrays import to_array
from .safetensors import Array, read, write

#: NumPy's dtypes of what is read as it lies.
_STORED = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "BOOL": "?"}


def _widened(name: str, array: Array) -> numpy.ndarray[Any, Any]:
    """An array's numbers: bf16 and fp16 in fp32, which holds them all; others as they are."""
    if array.dtype == "BF16":  # the upper half of an fp32
        bits = numpy.frombuffer(array.data, "<u2").astype("<u4") << 16
        return bits.view("<f4").reshape(array.shape)
    dtype = _STORED.get(array.dtype)
    if dtype is None:
        raise TypeError(f"{name} is {array.dtype}; a file may hold BF16, {', '.join(_STORED)} here")
    found = numpy.frombuffer(array.data, dtype).reshape(array.shape)
    return found.astype("<f4") if array.dtype == "F16" else found


def load(path: str | os.PathLike[str]) -> dict[str, numpy.ndarray[Any, Any]]:
    """
    The tensors of a safetensors file by name, bf16 and fp16 widened to fp32, all others as they are.

    TypeError for a tensor of 8 bits, which NumPy alone has no numbers of.
    """
    tensors, _ = read(path)
    return {name: _widened(name, array) for name, array in tensors.items()}


def save(path: str | os.PathLike[str], **tensors: Any) -> None:
    """Write arrays as a safetensors file, in the dtypes that they have."""
    write(path, {name: to_array(tensor, name) for name, tensor in tensors.items()})
