"""Attention operators of ONNX Runtime (com.microsoft), on the CPU."""

import numpy as np
import pytest

DOMAIN = "com.microsoft"


def run_node(operator, inputs, given, outputs, **attributes):
    """What a model of one operator gives: `inputs` in its order, of which those not in `given` are left out."""
    ort, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    helper = onnx.helper
    names = [name if name in given else "" for name in inputs]
    while names[-1] == "":
        names.pop()
    node = helper.make_node(operator, names, outputs, domain=DOMAIN, **attributes)
    kind = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in given.items()}
    values = [helper.make_tensor_value_info(name, kind[name], x.shape) for name, x in given.items()]
    results = [helper.make_tensor_value_info(name, kind["q"], None) for name in outputs]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    graph = helper.make_graph([node], "g", values, results)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    text = model.SerializeToString()
    session = ort.InferenceSession(text, providers=["CPUExecutionProvider"])
    return session.run(None, given)


def packed(x):
    """[batch, heads, seqlen, dim] as [batch, seqlen, heads * dim]."""
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(x.shape[0], x.shape[2], -1)


def unpacked(x, heads):
    """The reverse."""
    batch, rows, width = x.shape
    return np.ascontiguousarray(x.reshape(batch, rows, heads, width // heads).swapaxes(1, 2))


def multi_head_attention(q, k, v, mask=None):
    """MultiHeadAttention, with a mask as an additive one."""
    given = {name: packed(x) for name, x in zip("qkv", (q, k, v))}
    if mask is not None:
        given["bias"] = np.where(mask, 0, -np.inf).astype(q.dtype)
    inputs = ["q", "k", "v", "", "", "bias"]
    (out,) = run_node("MultiHeadAttention", inputs, given, ["o"], num_heads=q.shape[1])
    return unpacked(out, q.shape[1])


def group_query_attention(
    q, k, v, mask=None, bias=None, sink=None, past=None, ends=None, **attributes
):
    """
    GroupQueryAttention, which is causal.

    `past` are K and V of earlier keys, `ends` the last key of each sequence, where they differ.
    """
    batch, heads, rows, _ = q.shape
    total = rows + (0 if past is None else past[0].shape[2])
    last = np.full(batch, total - 1, np.int32) if ends is None else np.asarray(ends, np.int32)
    given = {name: packed(x) for name, x in zip("qkv", (q, k, v))}
    given.update(ends=last, total=np.array(total, np.int32))
    if mask is not None:
        bias = np.where(mask, 0, -np.inf).astype(q.dtype)
    beside = {"bias": bias, "sink": sink}
    beside.update(zip(("past_k", "past_v"), past or ()))
    given.update({name: x for name, x in beside.items() if x is not None})
    inputs = ["q", "k", "v", "past_k", "past_v", "ends", "total", "", "", "", "bias", "sink"]
    counts = {"num_heads": heads, "kv_num_heads": k.shape[1]}
    outputs = ["o", "present_k", "present_v"]
    out, *_ = run_node("GroupQueryAttention", inputs, given, outputs, **counts, **attributes)
    return unpacked(out, heads)
