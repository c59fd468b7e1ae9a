"""The memory that a candidate's tensors lie in: the judge writes it before a call and reads it after."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from typing import Any

from ...arrays import NAMES, Framework, numpy_dtype
from ...safetensors import Array

#: Memory of the device that is filled beside twice that of the inputs, in bytes, and blocks for small tensors.
_SPARE, _SMALL_BLOCKS = 256 << 20, 16

#: Where a tensor lies: its dtype by safetensors' name, its shape, its first byte and how many there are.
Place = Sequence[Any]


class Buffers:
    """Views of shared memory: the same tensor in the same shape lies at the same address in every call."""

    def __init__(self, shared: int, framework: Framework, device: str) -> None:
        self._memory = mmap.mmap(shared, 0)
        self._framework = framework
        self._device = device
        self._on_device: dict[tuple[Any, ...], Any] = {}
        self._places: Mapping[str, Place] = {}
        self._views: dict[str, Any] = {}

    def begin(self, places: Mapping[str, Place]) -> dict[str, Array]:
        """The tensors of a call, by the places that the judge has written them to."""
        self._places, self._views = places, {}
        if self._device != "cpu":
            self._spoil_free_memory(sum(size for _, _, _, size in places.values()))
        return {name: self._stored(place) for name, place in places.items()}

    def view(self, name: str, shape: Sequence[int]) -> Any:
        """A tensor as the candidate gets it, in its framework and on its device."""
        dtype, _, first, _ = self._places[name]
        view = self._host_view(dtype, tuple(shape), first)
        if self._device != "cpu":
            key = (name, dtype, tuple(shape))
            buffer = self._on_device.get(key)
            if buffer is None:
                buffer = self._on_device[key] = view.to(self._device)
            view = buffer.detach().copy_(view)
        self._views[name] = view
        return view

    def show(self) -> None:
        """Copy what lies on a device back to where the judge reads it."""
        if self._device == "cpu":
            return
        for name, view in self._views.items():
            dtype, _, first, _ = self._places[name]
            self._host_view(dtype, tuple(view.shape), first).copy_(view.detach())

    def overlaps(self, value: Any) -> list[str]:
        """The inputs that a result shares memory with."""
        span = _span(value)
        if span is None:
            return []
        spans = {name: _span(view) for name, view in self._views.items()}
        return [
            name
            for name, other in spans.items()
            if other is not None and span[0] < other[1] and other[0] < span[1]
        ]

    def _spoil_free_memory(self, size: int) -> None:
        """Fill what PyTorch hands out next of the device with bytes of 0xff, NaN in every format: what is never written is no number."""
        import torch

        # Free memory of earlier calls goes back to the driver: an output of the last call would lie in it.
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info()
        largest = min(2 * size + _SPARE, free // 2)
        # Tensors of at most 1 MiB have blocks of their own.
        for count, each in ((_SMALL_BLOCKS, 1 << 20), (1, largest)):
            taken = [
                torch.empty(each, dtype=torch.uint8, device=self._device).fill_(0xFF)
                for _ in range(count)
            ]
            del taken

    def _host_view(self, dtype: str, shape: tuple[int, ...], first: int) -> Any:
        if self._framework == "torch":
            import torch

            kind = getattr(torch, NAMES[dtype])
            count = 1
            for size in shape:
                count *= size
            if count == 0:
                return torch.empty(shape, dtype=kind)
            return torch.frombuffer(self._memory, dtype=kind, count=count, offset=first).reshape(
                shape
            )
        import numpy

        return numpy.ndarray(shape, numpy_dtype(dtype), buffer=self._memory, offset=first)

    def _stored(self, place: Place) -> Array:
        dtype, shape, first, size = place
        return Array(dtype, tuple(shape), self._memory[first : first + size])


def _span(value: Any) -> tuple[int, int] | None:
    """The addresses that an array's memory has; None for no array, and for one without elements."""
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        # Of a view of the shared memory the storage is what lies from its first element on.
        first = value.data_ptr() if storage.device.type == "cpu" else storage.data_ptr()
        size = (
            value.numel() * value.element_size()
            if storage.device.type == "cpu"
            else storage.nbytes()
        )
        return (first, first + size) if size else None
    if not hasattr(value, "__array_interface__") or value.size == 0:
        return None
    import numpy

    bounds = getattr(numpy, "byte_bounds", None) or numpy.lib.array_utils.byte_bounds
    first, end = bounds(value)
    return int(first), int(end)
