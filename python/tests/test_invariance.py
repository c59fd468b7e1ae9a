import numpy as np
import pytest

import flashproof

RANDOM = np.random.default_rng(7)
Q = RANDOM.standard_normal((2, 2, 3, 8), dtype=np.float32)
K, V = (RANDOM.standard_normal((2, 2, 5, 8), dtype=np.float32) for _ in range(2))
SMALL = {"batch": 20, "heads": 8, "queries": 5}


def copying(changes):
    """A kernel that gives Q, each row by itself, and the next number for each element where `changes` says so."""

    def kernel(q, k, v, **settings):
        return np.nextafter(q, np.float32(np.inf)) if changes(q=q, **settings) else q

    return kernel


def test_a_kernel_that_depends_on_each_row_alone_is_invariant_over_what_was_tried():
    report = flashproof.invariance(copying(lambda **_: False), Q, K, V, up_to=SMALL)
    assert report and report.passed and report.sentence.startswith("INVARIANT")
    assert report.result("batch") == "invariant" and report.change("batch") is None
    assert report.result("neighbour-keys") == "untried"


@pytest.mark.parametrize("first", [2, 7, 18])
def test_the_batch_from_which_bits_are_others_is_named(first):
    kernel = copying(lambda q, **_: len(q) >= first)
    report = flashproof.invariance(kernel, Q, K, V, up_to=SMALL, causal=True)
    assert not report and report.change("batch") == (first - 1, first)
    assert report.result("heads") == "invariant"
    assert f"{first - 1} → {first}" in report.text


def test_neighbours_are_packed_where_the_kernel_takes_that():
    def changes(q, cu_seqlens_k=None, **_):
        return cu_seqlens_k is not None and len(cu_seqlens_k) == 3 and cu_seqlens_k[-1] >= 15

    report = flashproof.invariance(
        copying(changes), Q, K, V, takes=["packed"], dimensions=["neighbour-keys"]
    )
    assert report.change("neighbour-keys") == (9, 10)


def test_numbers_of_splits_reach_the_kernel():
    kernel = copying(lambda splits=1, **_: splits > 2)
    report = flashproof.invariance(kernel, Q, K, V, dimensions=["splits"], splits=[1, 2, 4])
    assert report.change("splits") == (2, 4)


def test_what_is_no_request_is_refused_in_one_line():
    def broken(q, k, v, **settings):
        raise RuntimeError("no such luck")

    with pytest.raises(flashproof.RequestError, match="no output of the problem.*no such luck"):
        flashproof.invariance(broken, Q, K, V)
    with pytest.raises(TypeError, match="is_causal"):
        flashproof.invariance(broken, Q, K, V, is_causal=True)
