"""Safetensors files as bytes: nothing is decoded."""

import json, math, pathlib, struct
from dataclasses import dataclass

BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F16": 16, "BF16": 16, "I32": 32, "F32": 32, "I64": 64}


@dataclass
class Tensor:
    dtype: str  # as safetensors calls it
    shape: tuple
    data: bytes


def load(path):
    """The tensors of a file by name, and its metadata."""
    data = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]  # the header is JSON, behind its length
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        tensors[name] = Tensor(entry["dtype"], tuple(entry["shape"]), data[begin:end])
    return tensors, metadata


def save(path, tensors, metadata={}):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, tensor in tensors.items():
        offsets = [len(data), len(data) + len(tensor.data)]
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets}
        data += tensor.data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def filled(dtype, shape, byte):
    """A tensor all of whose bytes are `byte`; 0xff is NaN in every format of floating point."""
    return Tensor(dtype, tuple(shape), bytes([byte]) * (math.prod(shape) * BITS[dtype] // 8))
