import numpy as np
import pytest

import flashproof
import flashproof.pytest
from flashproof.audit import session

from reference import attention

PROMISES = {"formats": ["fp32", "bf16"], "lse": True, "softcap": True, "laws": {"query-order": "bound", "weights-sum-to-one": "bound"}}
SOME = ["within-bound", "causality", "shift-invariance"]


@pytest.fixture(autouse=True)
def kept(tmp_path):
    before, session.failures = session.failures, tmp_path / "failures"
    yield session.failures
    session.failures = before


def test_a_correct_kernel_holds_the_properties():
    known = [law for law in SOME if law in flashproof.laws()]
    assert known, flashproof.laws()
    report = flashproof.check(attention, PROMISES, laws=known, runs=4, seed=3, options=["--dims", "16"])
    assert report.passed, report.text
    assert {report.result(law) for law in known} == {"holds"}


def test_a_kernel_that_sees_one_key_more_is_caught_and_its_problem_kept(kept):
    def one_more(q, k, v, *, causal, window, **settings):
        return attention(q, k, v, causal=False, window=(-1, 1) if causal else window, **settings)

    with pytest.raises(AssertionError, match="within-bound") as caught:
        flashproof.assert_kernel(one_more, PROMISES, laws=["within-bound"], runs=20, seed=1)
    assert "FAIL: " in str(caught.value) and list(kept.iterdir())


def test_what_a_kernel_raises_is_a_finding_and_what_it_declines_is_none():
    def broken(q, k, v, **settings):
        raise RuntimeError("no such luck")

    report = flashproof.check(broken, PROMISES, laws=["within-bound"], runs=2, seed=1)
    assert not report.passed and "RuntimeError: no such luck" in report.text

    def narrow(q, k, v, *, causal, **settings):
        if causal:
            raise NotImplementedError("no causal mask")
        return attention(q, k, v, causal=causal, **settings)

    assert flashproof.check(narrow, PROMISES, laws=["within-bound"], runs=4, seed=1).passed


def test_a_kernel_without_gradients_says_so():
    promises = {"formats": ["fp32"], "gradients": True}
    report = flashproof.check(attention, promises, laws=["gradients-within-bound"], runs=1, seed=1) if (
        "gradients-within-bound" in flashproof.laws()
    ) else None
    if report is None:
        pytest.skip(f"no such law among {flashproof.laws()}")
    assert "give backward=" in report.text


test_laws = flashproof.pytest.laws(attention, PROMISES, only=SOME, runs=3)
