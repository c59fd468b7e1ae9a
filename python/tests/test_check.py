import numpy as np
import pytest
from reference import attention, masked_scores

import flashproof
import flashproof.pytest
from flashproof.request import session

PROMISES = {
    "formats": ["fp32", "bf16"],
    "lse": True,
    "softcap": True,
    "laws": {"query-order": "bound", "weights-sum-to-one": "bound"},
}
SOME = ["within-bound", "masked-keys", "score-shift"]


@pytest.fixture(autouse=True)
def kept(tmp_path):
    before, session.failures = session.failures, tmp_path / "failures"
    yield session.failures
    session.failures = before


def test_a_correct_kernel_holds_the_properties():
    assert set(SOME) < set(flashproof.laws())
    report = flashproof.check(
        attention, PROMISES, laws=SOME, runs=4, seed=3, options=["--dims", "16"]
    )
    assert report.passed, report.text
    assert {report.result(law) for law in SOME} == {"holds"}


def test_a_kernel_that_sees_one_key_more_is_caught_and_its_problem_kept(kept):
    def one_more(q, k, v, *, causal, window, **settings):
        return attention(q, k, v, causal=False, window=(-1, 1) if causal else window, **settings)

    with pytest.raises(AssertionError, match="within-bound") as caught:
        flashproof.assert_kernel(one_more, PROMISES, laws=["within-bound"], runs=20, seed=1)
    assert "FAIL: " in str(caught.value)
    (path,) = kept.iterdir()
    assert f"In Python: flashproof.replay(kernel, {str(path)!r})" in str(caught.value)
    assert not flashproof.replay(one_more, path, PROMISES).passed
    assert flashproof.replay(attention, path, PROMISES).passed


def test_what_a_kernel_raises_is_a_finding_and_what_it_declines_is_none():
    def broken(q, k, v, **settings):
        raise RuntimeError("no such luck")

    report = flashproof.check(broken, PROMISES, laws=["within-bound"], runs=2, seed=1)
    assert not report.passed and "RuntimeError: no such luck" in " ".join(report.text.split())

    def narrow(q, k, v, *, causal, **settings):
        if causal:
            raise NotImplementedError("no causal mask")
        return attention(q, k, v, causal=causal, **settings)

    assert flashproof.check(narrow, PROMISES, laws=["within-bound"], runs=4, seed=1).passed


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--help"], r"^options has --help, which judges nothing; leave it out"),
        (["-qh"], r"^options is \['-qh'\], which makes no report of "),
        (["--list"], r"^options has --list, which judges nothing; leave it out"),
        (["--replay", "x"], r"^options has --replay, .*flashproof\.replay"),
        (["--shard", "2/2"], r"^options has --shard, .* on the command line"),
        (["--exec", "true"], r"^options has --exec, which names another kernel; leave it out"),
        (["--json=x"], r"^options has --json=x; the report that is returned has \.json"),
        (["--promises", "x"], r"^options has --promises; give them as promises="),
        (["--threads"], r"^option '--threads <n>' argument missing"),
        ([""], r"^too many arguments for 'check'"),
        ([1], r"^options is \[1\]; give a list of words"),
        ("--full", r"^options is '--full'; give a list of words"),
    ],
)
def test_options_that_make_no_report_are_refused(options, error):
    settings = {"laws": ["within-bound"], "runs": 1, "seed": 1}
    with pytest.raises((TypeError, ValueError), match=error) as caught:
        flashproof.check(attention, PROMISES, options=options, **settings)
    assert "\n" not in str(caught.value)


def test_gradients_of_a_kernel_that_has_none_are_asked_for_by_name():
    promises = {"formats": ["fp32"], "gradients": True}
    with pytest.raises(flashproof.RequestError, match="give backward="):
        flashproof.check(attention, promises, laws=["gradients-within-bound"], runs=1, seed=1)


def backward(q, k, v, dout, *, scale, causal, window, softcap):
    q, k, v, dout = (x.astype(np.float64) for x in (q, k, v, dout))
    s = masked_scores(q, k, scale, causal, window)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    dp = dout @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    found = ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dout
    return tuple(x.astype(np.float32) for x in found)


@pytest.mark.parametrize("factor", [1, 1.01])
def test_gradients_by_a_function_are_judged(factor):
    def scaled(*tensors, **settings):
        dq, dk, dv = backward(*tensors, **settings)
        return dq, dk * np.float32(factor), dv

    promises = {"formats": ["fp32"], "gradients": True, "groupedHeads": False, "emptyRows": False}
    settings = {"laws": ["gradients-within-bound"], "runs": 3, "seed": 2, "backward": scaled}
    assert flashproof.check(attention, promises, **settings).passed == (factor == 1)


test_laws = flashproof.pytest.laws(attention, PROMISES, only=SOME, runs=3)
