"""Triton's and Gluon's descriptors of tensors as parameters of a launch: a tensor map for TMA, and the numbers that follow it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .launches import Parameter

#: CUtensorMapSwizzle's names by its numbers, of which the compiler's metadata has one.
_SWIZZLES = ("none", "32B", "64B", "128B")
#: Names of elements of launch files, by safetensors' of the tensor, and their bytes.
_ELEMENTS = {
    **{
        "BF16": ("bfloat16", 2),
        "F16": ("float16", 2),
        "F32": ("float32", 4),
        "F64": ("float64", 8),
    },
    **{name: ("uint8", 1) for name in ("F8_E4M3", "F8_E5M2", "I8", "U8")},
    **{f"{sign}{bits}": (f"uint{bits}", bits // 8) for sign in "IU" for bits in (16, 32, 64)},
}


def is_descriptor(value: Any) -> bool:
    """Whether an argument describes a tensor, its `base`: it has `shape`, `strides` and `block_shape` too, as Triton's and Gluon's have."""
    return all(hasattr(value, name) for name in ("base", "shape", "strides", "block_shape"))


def descriptor_type(element: str, descriptor: Any) -> str:
    """Triton's type of a descriptor of elements of a type such as `bf16`; Gluon's also has a layout."""
    box = ", ".join(map(str, descriptor.block_shape))
    layout = getattr(descriptor, "layout", None)
    return f"tensordesc<{element}[{box}]{'' if layout is None else f',{layout!r}'}>"


def descriptor_parameters(
    name: str, dtype: str, descriptor: Any, made: Mapping[str, Any]
) -> list[Parameter]:
    """
    The parameters that stand for a descriptor of the tensor `name`, of safetensors' `dtype`.

    The map is made as Triton's driver makes it of `made`, the compiler's metadata (swizzle, box); after it come sizes and strides in
    elements, outermost first. ValueError for elements of 4 bits and for im2col.
    """
    if made.get("fp4_padded") or made.get("is_im2col"):
        raise ValueError(
            f"{name} is a descriptor of packed elements or im2col; record one of whole elements, tiled"
        )
    if dtype not in _ELEMENTS or not 0 <= made["swizzle"] < len(_SWIZZLES):
        raise ValueError(
            f"{name} is a descriptor of {dtype} with swizzle {made['swizzle']}, which launch files have no name for"
        )
    element, size = _ELEMENTS[dtype]
    if getattr(descriptor, "round_f32_to_tf32", False):
        element = "tfloat32"
    shape, strides = list(descriptor.shape), list(descriptor.strides)
    tensor_map: dict[str, Any] = {
        "tensor": name,
        "elementType": element,
        "globalDim": shape[::-1],
        "globalStrides": [size * stride for stride in strides[-2::-1]],
        "boxDim": list(made["block_size"])[::-1],
        "swizzle": _SWIZZLES[made["swizzle"]],
        "oobFill": "nan" if getattr(descriptor, "padding", "zero") == "nan" else "zero",
    }
    return [{"tensorMap": tensor_map}, *_numbers("s32", shape), *_numbers("s64", strides)]


def _numbers(kind: str, values: Sequence[int]) -> list[Parameter]:
    return [{kind: value} for value in values]
