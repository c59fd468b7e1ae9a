"""Arrays of NumPy, PyTorch, JAX and CuPy as bytes with a dtype, and back; nothing is rounded on the way."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from typing import Any, Literal

from .safetensors import Array

#: The libraries that a kernel's arrays may be of.
Framework = Literal["numpy", "torch", "jax"]

#: safetensors' names by those of NumPy and ml_dtypes, and by those of PyTorch.
DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def dtype_of(name: str) -> str:
    """safetensors' name for a dtype. TypeError for one that files have no name for."""
    dtype = DTYPES.get(name.removeprefix("torch."))
    if dtype is None:
        raise TypeError(
            f"elements of {name} have no place in a file; give one of {', '.join(DTYPES)}"
        )
    return dtype


def to_array(value: Any, what: str = "the array") -> Array:
    """
    The elements of an array of NumPy (ml_dtypes too), PyTorch, JAX or CuPy, or of a memoryview; from a GPU they are copied.

    TypeError for anything else, with `what` it was to be.
    """
    if isinstance(value, Array):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _from_torch(value, what)
    if type(value).__module__.partition(".")[0] == "cupy":
        value = value.get()
    elif not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        import numpy

        value = numpy.from_dlpack(value)
    if isinstance(value, memoryview):
        return _from_memory(value)
    if not hasattr(value, "__array__"):
        raise TypeError(
            f"{what} is a {type(value).__name__}; give an array of NumPy, PyTorch, JAX or CuPy"
        )
    import numpy

    if isinstance(value, numpy.ma.MaskedArray):
        raise TypeError(f"{what} is a masked array; give its .data, and `mask` for hidden keys")
    array = numpy.asarray(value)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return Array(
        dtype_of(array.dtype.name), tuple(array.shape), numpy.ascontiguousarray(array).tobytes()
    )


def check_tensors(tensors: Mapping[str, Any]) -> None:
    """TypeError for what is no dense tensor of PyTorch with elements, by its name."""
    import torch

    for name, value in tensors.items():
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name} is a {type(value).__name__}; give a tensor of PyTorch")
        if value.layout is not torch.strided or value.is_nested:
            kind = "nested" if value.is_nested else str(value.layout)
            raise TypeError(f"{name} is a {kind} tensor; give a dense one, as .to_dense() makes it")
        # A FakeTensor's own device is not where its elements would be.
        if value.untyped_storage().device.type == "meta":
            kind = "meta tensor" if value.is_meta else type(value).__name__
            raise TypeError(f"{name} is a {kind} without elements; give one that has them")


def _from_torch(tensor: Any, what: str) -> Array:
    dtype = dtype_of(str(tensor.dtype))
    check_tensors({what: tensor})
    # A view whose numbers are to be negated shares the bytes of what it is a view of.
    own = tensor.detach().cpu().resolve_neg().contiguous()
    size = own.numel() * own.element_size()
    return Array(dtype, tuple(own.shape), ctypes.string_at(own.data_ptr(), size) if size else b"")


def _from_memory(view: memoryview) -> Array:
    formats = {
        "d": "F64",
        "f": "F32",
        "e": "F16",
        "?": "BOOL",
        "b": "I8",
        "B": "U8",
        "i": "I32",
        "q": "I64",
    }
    dtype = formats.get(view.format.lstrip("@=<"))
    if dtype is None:
        raise TypeError(
            f"a memoryview of format {view.format!r} has no dtype here; give one of {', '.join(formats)}"
        )
    return Array(dtype, tuple(view.shape or ()), view.tobytes())


def numpy_dtype(dtype: str) -> Any:
    """NumPy's dtype by safetensors' name: ml_dtypes' for bf16 and fp8. ImportError where that is not installed."""
    import numpy

    try:
        return numpy.dtype(NAMES[dtype])
    except TypeError:
        # It gives NumPy the dtypes that it has not.
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, NAMES[dtype]))


def from_array(array: Array, framework: Framework) -> Any:
    """
    An array of a framework, with the same dtype: ml_dtypes' for bf16 and fp8 in NumPy.

    ImportError where what it needs is not installed.
    """
    if framework == "torch":
        import torch

        if not array.data:
            return torch.empty(array.shape, dtype=getattr(torch, NAMES[array.dtype]))
        flat = torch.frombuffer(bytearray(array.data), dtype=getattr(torch, NAMES[array.dtype]))
        return flat.reshape(array.shape)
    import numpy

    flat = numpy.frombuffer(array.data, dtype=numpy_dtype(array.dtype))
    found = flat.reshape(array.shape).copy()
    if framework == "numpy":
        return found
    import jax.numpy

    return jax.numpy.asarray(found)
