"""
Where libraries' attention departs from attention as it is defined here, and that the verdict says so.

What a library does is not asserted, since releases differ; that the verdict follows what it did is.
"""

import numpy as np
import pytest
from onnx_kernels import group_query_attention, multi_head_attention
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


LIBRARIES = pytest.mark.parametrize(
    "library",
    [torch_attention, jax_attention, multi_head_attention],
    ids=["torch", "jax", "onnxruntime"],
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


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
class TestGroupQueryAttention:
    """It is causal, so that what a query does not see differs from row to row."""

    def judge(self, what, k=None, v=None, mask=None, **asked):
        own = self.q, self.k if k is None else k, self.v if v is None else v
        out = group_query_attention(*own, mask=mask, **asked)
        posed = {"window": (7, 0)} if asked else {}
        report = audit(*own, out, causal=True, mask=mask, **posed)
        tell(group_query_attention, f"{self.q.dtype}, {what}", report)
        return out, report

    @pytest.fixture(autouse=True)
    def tensors(self, dtype):
        self.q, self.k, self.v = problem(dtype, keys=33)

    def test_a_query_without_keys(self):
        out, report = self.judge("no keys", mask=mask_with_empty_row(self.q, self.k))
        is_zero = bool((out[:, :, EMPTY_QUERY] == 0).all())
        assert report.passed == is_zero
        assert is_zero or report.cause == "rows-without-keys-not-zero"

    @pytest.mark.parametrize("which", ["k", "v"])
    @pytest.mark.parametrize("window", [None, 8])
    def test_nan_in_a_key_that_some_queries_see(self, which, window):
        asked = {} if window is None else {"local_window_size": window}
        out, report = self.judge(
            f"NaN in a row of {which}, window {window}",
            **{which: poisoned(getattr(self, which))},
            **asked,
        )
        rows = np.arange(self.q.shape[2])
        sees = (rows >= POISONED_KEY) & (rows < POISONED_KEY + (window or len(rows)))
        assert report.passed == bool(np.isfinite(out[:, :, ~sees]).all())

    @pytest.mark.parametrize("which", ["k", "v"])
    def test_nan_behind_the_mask(self, which):
        mask = mask_without_poisoned_key(self.q, self.k)
        given = {which: poisoned(getattr(self, which))}
        out, report = self.judge(f"NaN in a row of {which} that is masked", mask=mask, **given)
        assert report.passed == bool(np.isfinite(out).all())
