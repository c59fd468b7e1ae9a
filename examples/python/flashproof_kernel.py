"""Serves a kernel to flashproof: JSON on stdin and stdout, a line each way; tensors in files."""

import json, pathlib, struct, sys

import numpy as np
from flash_attention import attention  # your kernel here

DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def load(path):
    """The tensors of a safetensors file, widened to fp32, as [batch, heads, seqlen, dim]."""
    data = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]  # the header is JSON, behind its length
    for name, tensor in json.loads(data[8:start]).items():
        if name != "__metadata__":
            begin, end = (start + offset for offset in tensor["data_offsets"])
            array = np.frombuffer(data[begin:end], DTYPES[tensor["dtype"]])
            if tensor["dtype"] == "BF16":  # the upper half of an fp32
                array = (array.astype("<u4") << 16).view("<f4")
            yield name, array.astype("<f4").reshape(([1] + tensor["shape"])[-4:])


def save(path, **tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        offsets = [len(data), len(data) + array.size * 4]
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": offsets}
        data += array.astype("<f4").tobytes()
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


for line in sys.stdin:
    r = json.loads(line)
    t = dict(load(r["problem"]))
    out, lse = attention(t["q"], t["k"], t["v"], r["scale"], r["causal"], r["window"], r["softcap"])
    save(r["output"], out=out, lse=lse)
    print(json.dumps({"id": r["id"], "ok": True}), flush=True)
