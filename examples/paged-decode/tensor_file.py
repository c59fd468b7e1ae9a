"""Safetensors files with nothing but numpy: numbers widened to fp32, integers as they are."""

import json, pathlib, struct

import numpy as np

DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I32": "<i4", "BOOL": "?"}


def load(path):
    """The tensors of a file, by name."""
    data = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]  # the header is JSON, behind its length
    tensors = {}
    for name, tensor in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        begin, end = (start + offset for offset in tensor["data_offsets"])
        array = np.frombuffer(data[begin:end], DTYPES[tensor["dtype"]])
        if tensor["dtype"] == "BF16":  # the upper half of an fp32
            array = (array.astype("<u4") << 16).view("<f4")
        if tensor["dtype"] == "F16":
            array = array.astype("<f4")
        tensors[name] = array.reshape(tensor["shape"])
    return tensors


def save(path, **tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        offsets = [len(data), len(data) + array.size * 4]
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": offsets}
        data += array.astype("<f4").tobytes()
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)
