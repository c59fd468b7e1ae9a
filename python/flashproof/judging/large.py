"""Problems of so much work that the CPU does not judge all of their rows: `is_large`, and how the judge draws them: `draw`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from ..safetensors import ELEMENT_BITS, Array
from .contract import KernelContract, Shape

#: Multiply-adds of Q·K and P·V from which on a problem is large: properties and their simplification take some minutes of two cores.
FEWEST_OPERATIONS = 1 << 33

#: Formats that are drawn here, with safetensors' names.
_DTYPES = {"fp64": "F64", "fp32": "F32", "fp16": "F16", "bf16": "BF16"}
#: Threads that draw at most: each holds an entry of the batch in fp32.
_MOST_THREADS = 16
#: How a problem is drawn: the factor of Q, and the mean of V.
_LAWS = ((1.0, 0.0), (4.0, 1.0))


def is_large(shape: Shape | None) -> bool:
    """Whether a shape is judged as a large one."""
    if shape is None:
        return False
    pairs = shape.batch * shape.heads * shape.queries * shape.keys
    return pairs * (shape.dim + (shape.v_dim or shape.dim)) >= FEWEST_OPERATIONS


def formats_of(contract: KernelContract) -> list[str]:
    """The contract's formats in which large problems are drawn."""
    return [one for one in contract.promises.get("formats", ["fp32"]) if one in _DTYPES]


def bytes_of(shape: Shape, formats: list[str]) -> int:
    """Bytes of a problem's tensors with an output, in the widest of some formats."""
    kv_heads = shape.kv_heads or shape.heads
    v_dim = shape.v_dim or shape.dim
    rows = shape.heads * shape.queries + kv_heads * shape.keys
    bits = max(ELEMENT_BITS[_DTYPES[one]] for one in formats)
    return shape.batch * rows * (shape.dim + v_dim) * bits // 8


def draw(
    shape: Shape, contract: KernelContract, seed: int, number: int
) -> tuple[dict[str, Array], dict[str, str], dict[str, Any]]:
    """
    The tensors of a large problem, their file's metadata, and the request that a kernel answers. The same seed draws the same.

    Entries of the batch are drawn each by a seed of its own, on all cores.
    """
    import numpy

    formats = formats_of(contract)
    written = formats[number % len(formats)]
    factor, mean = _LAWS[number % len(_LAWS)]
    kv_heads = shape.kv_heads or shape.heads
    sizes = {
        "q": (shape.batch, shape.heads, shape.queries, shape.dim),
        "k": (shape.batch, kv_heads, shape.keys, shape.dim),
        "v": (shape.batch, kv_heads, shape.keys, shape.v_dim or shape.dim),
    }

    def part(name: str, entry: int) -> bytes:
        chance = numpy.random.default_rng([seed, number, list(sizes).index(name), entry])
        x = chance.standard_normal(sizes[name][1:], dtype=numpy.float32)
        if name == "q":
            x *= numpy.float32(factor)
        if name == "v":
            x += numpy.float32(mean)
        return _bytes(x, written)

    def tensor(name: str, threads: Executor) -> Array:
        parts = threads.map(part, [name] * shape.batch, range(shape.batch))
        return Array(_DTYPES[written], sizes[name], b"".join(parts))

    causal = contract.promises.get("causal") == "only"
    scale = shape.dim**-0.5
    metadata = {"causal": "true" if causal else "false", "layout": "bhsd", "scale": repr(scale)}
    # NumPy draws without the lock of the interpreter.
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        tensors = {name: tensor(name, threads) for name in sizes}
    return tensors, metadata, request_of(scale, causal=causal)


def request_of(scale: float, *, causal: bool) -> dict[str, Any]:
    """What a kernel is asked for on a large problem."""
    return {"id": 0, "scale": scale, "causal": causal, "window": None, "softcap": None}


def shape_of(tensors: Mapping[str, Array]) -> Shape | None:
    """The sizes of a dense problem of attention; None for any other, and for one without keys."""
    if not {"q", "k", "v"} <= set(tensors):
        return None
    q, k, v = (tensors[name].shape for name in ("q", "k", "v"))
    if len(q) != 4 or len(k) != 4 or not all((*q, *k, *v)):
        return None
    return Shape(q[2], k[2], q[3], q[0], q[1], k[1], v[3])


def _bytes(x: Any, written: str) -> bytes:
    """fp32 numbers of NumPy in a format, rounded to nearest even; bf16 by its bits, which NumPy has no name for."""
    import numpy

    if written == "bf16":
        bits = x.view(numpy.uint32)
        odd = (bits >> numpy.uint32(16)) & numpy.uint32(1)
        rounded = (bits + numpy.uint32(0x7FFF) + odd) >> numpy.uint32(16)
        return bytes(rounded.astype(numpy.uint16).tobytes())
    kinds = {"fp64": numpy.float64, "fp32": numpy.float32, "fp16": numpy.float16}
    return bytes(x.astype(kinds[written]).tobytes())
