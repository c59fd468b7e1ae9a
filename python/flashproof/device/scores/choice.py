"""Which engine passes over the scores on a device."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from .eager import EagerEngine
from .engine import Engine

ENGINES = ("eager", "triton")
_LEAST_CAPABILITY = (8, 0)
"""Of GPUs whose tensor cores multiply fp64, which the kernels were tried on."""
_LEAST_TRITON = (3, 6)
"""The version that the kernels were tried on."""
_wanted: ContextVar[str | None] = ContextVar("engine", default=None)


@contextmanager
def use_engine(name: str) -> Iterator[None]:
    """Inside of it scores are passed over by this engine of ``ENGINES``."""
    token = _wanted.set(_known(name))
    try:
        yield
    finally:
        _wanted.reset(token)


def _known(name: str) -> str:
    if name not in ENGINES:
        raise ValueError(f"the engine is {name!r}; name {' or '.join(ENGINES)}")
    return name


def engine_of(device: torch.device, *, is_plain: bool = True) -> Engine:
    """The engine that is asked for by ``use_engine`` or FLASHPROOF_DEVICE_ENGINE; else Triton's where it
    runs, which takes rows that see whole ranges of keys, and scores of Q and K alone.
    """
    return _triton() if is_plain and runs_triton(device) else EagerEngine()


def runs_triton(device: torch.device) -> bool:
    """Whether kernels of Triton pass over what lies on a device."""
    name = _wanted.get() or os.environ.get("FLASHPROOF_DEVICE_ENGINE")
    return _has_triton(device) if name is None else _known(name) == "triton"


@functools.cache
def _triton() -> Engine:
    from .fused import TritonEngine

    return TritonEngine()


@functools.cache
def _has_triton(device: torch.device) -> bool:
    return (
        device.type == "cuda"
        and torch.version.hip is None
        and importlib.util.find_spec("triton") is not None
        and _triton_version() >= _LEAST_TRITON
        and torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY
    )


def _triton_version() -> tuple[int, ...]:
    """The first two numbers of Triton's version; none where that is not known."""
    for package in ("triton", "pytorch-triton"):
        try:
            numbers = importlib.metadata.version(package).split(".")[:2]
        except importlib.metadata.PackageNotFoundError:
            continue
        return tuple(int(number) for number in numbers if number.isdigit())
    return ()
