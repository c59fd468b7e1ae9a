"""
Where libraries' attention departs from attention as it is defined here, and that the verdict says so.

What a library does is not asserted, since releases differ; that the verdict follows what it did is.
"""

import numpy as np
import pytest
from reference import attention, problem

from flashproof import audit

EMPTY_QUERY = 3
POISONED_KEY = 5


def all_seen(q, k):
    return np.ones((*q.shape[:3], k.shape[2]), bool)


def mask_with_empty_row(q, k):
    mask = all_seen(q, k)
    mask[..., EMPTY_QUERY, :] = False
    return mask


def mask_without_poisoned_key(q, k):
    mask = all_seen(q, k)
    mask[..., POISONED_KEY] = False
    return mask


def poisoned(array):
    """NaN where no query sees it, as slots of a cache that nobody has written."""
    changed = array.copy()
    changed[:, :, POISONED_KEY] = np.nan
    return changed


def torch_attention(q, k, v, mask=None, causal=False):
    torch = pytest.importorskip("torch")
    tensors = (torch.from_numpy(x) for x in (q, k, v))
    seen = None if mask is None else torch.from_numpy(mask)
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(*tensors, attn_mask=seen, is_causal=causal).numpy()


def jax_attention(q, k, v, mask=None, causal=False):
    jax = pytest.importorskip("jax")
    arrays = (jax.numpy.asarray(x.swapaxes(1, 2)) for x in (q, k, v))
    out = jax.nn.dot_product_attention(*arrays, mask=mask, is_causal=causal)
    return np.asarray(out).swapaxes(1, 2)


def onnx_attention(q, k, v, mask=None):
    ort, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    batch, heads, queries, dim = q.shape
    given = {
        name: np.ascontiguousarray(x.swapaxes(1, 2)).reshape(batch, x.shape[2], -1)
        for name, x in zip("qkv", (q, k, v))
    }
    if mask is not None:
        given["bias"] = np.where(mask, 0, -np.inf).astype(np.float32)
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    inputs = ["q", "k", "v", *([] if mask is None else ["", "", "bias"])]
    domain = "com.microsoft"
    node = helper.make_node("MultiHeadAttention", inputs, ["o"], domain=domain, num_heads=heads)
    values = [helper.make_tensor_value_info(name, kind, x.shape) for name, x in given.items()]
    result = helper.make_tensor_value_info("o", kind, given["q"].shape)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    graph = helper.make_graph([node], "g", values, [result])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    text = model.SerializeToString()
    session = ort.InferenceSession(text, providers=["CPUExecutionProvider"])
    (out,) = session.run(None, given)
    return np.ascontiguousarray(out.reshape(batch, queries, heads, dim).swapaxes(1, 2))


LIBRARIES = pytest.mark.parametrize(
    "library", [torch_attention, jax_attention, onnx_attention], ids=["torch", "jax", "onnxruntime"]
)
CAUSAL_LIBRARIES = pytest.mark.parametrize(
    "library", [torch_attention, jax_attention], ids=["torch", "jax"]
)


@LIBRARIES
def test_what_is_attention_passes(library):
    q, k, v = problem()
    mask = mask_without_poisoned_key(q, k)
    assert audit(q, k, v, library(q, k, v, mask), mask=mask, premises="eager").passed


def test_the_definition_has_none_of_them():
    q, k, v = problem()
    mask = mask_with_empty_row(q, k)
    assert audit(q, k, v, attention(q, k, v, mask=mask)[0], mask=mask).passed
    assert audit(q, k, v, attention(q, k, v, causal=True)[0], causal=True).passed


def tell(library, what, report):
    """What `pytest -s` shows: the documents have it with the releases that it was seen with."""
    print(f"\n{library.__name__}, {what}: {report.sentence}")


@LIBRARIES
def test_a_query_without_keys(library):
    q, k, v = problem()
    mask = mask_with_empty_row(q, k)
    out = library(q, k, v, mask)
    report = audit(q, k, v, out, mask=mask, premises="eager")
    tell(library, "a query without keys", report)
    is_zero = bool((out[:, :, EMPTY_QUERY] == 0).all())
    assert report.passed == is_zero
    assert is_zero or report.cause == "rows-without-keys-not-zero"


@LIBRARIES
@pytest.mark.parametrize("which", ["key", "value"])
def test_nan_behind_the_mask(library, which):
    q, k, v = problem()
    k, v = (poisoned(k), v) if which == "key" else (k, poisoned(v))
    mask = mask_without_poisoned_key(q, k)
    out = library(q, k, v, mask)
    report = audit(q, k, v, out, mask=mask, premises="eager")
    tell(library, f"NaN in a {which} that no query sees", report)
    assert report.passed == bool(np.isfinite(out).all())


@CAUSAL_LIBRARIES
def test_causal_masks_of_fewer_queries_than_keys(library):
    q, k, v = problem()
    out = library(q, k, v, causal=True)
    report = audit(q, k, v, out, causal=True, premises="eager")
    tell(library, "causal, fewer queries than keys", report)
    # The two masks differ in every row.
    is_as_defined = np.allclose(out, attention(q, k, v, causal=True)[0], atol=1e-3)
    assert report.passed == is_as_defined
    assert is_as_defined or report.cause == "mask-aligned-top-left"
