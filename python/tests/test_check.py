import inspect
import json
import re
import tempfile

import numpy as np
import pytest
from reference import attention, masked_scores

import flashproof
import flashproof.pytest
from flashproof.pytest_plugin import Flashproof

PROMISES = {
    "formats": ["fp32", "bf16"],
    "lse": True,
    "softcap": True,
    "laws": {"query-order": "bound", "weights-sum-to-one": "bound"},
}
SOME = ["within-bound", "masked-keys", "score-shift"]


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
    again = f"flashproof.replay(one_more, {str(path)!r}, {PROMISES!r})"
    assert f"  Replay    {again}\n" in str(caught.value)
    assert not eval(again)
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


def test_a_report_speaks_of_the_kernel_and_of_no_process():
    def wrong(q, k, v, **settings):
        return attention(q, k, v, **settings)[0] * np.float32(1.01)

    promises = {"formats": ["fp32"], "softcap": True}
    report = flashproof.check(wrong, promises, laws=["within-bound"], runs=3, seed=1)
    assert not report.passed
    for hidden in ("relay.py", "--exec", "--replay", "promises.json", "/dev/shm"):
        assert hidden not in report.text, hidden
        assert hidden not in json.dumps(report.json), hidden
    assert "\nKernel  wrong\n" in report.text
    # The one line works as it stands, and what it gives is printed as a report, not as its fields.
    (line,) = re.findall(r"^  Replay    (.*)$", report.text, re.MULTILINE)
    again = eval(line)
    assert not again and str(again).startswith("FAIL: within-bound")
    assert repr(again).startswith("<Replay: FAIL: within-bound") and "\n" not in repr(again)
    assert repr(report) == f"<CheckReport: {report.sentence}>" and f"{report}\n" == report.text
    assert [one["violation"]["replay"] for one in report.json["properties"]] == [[line]]


def takes_too_little(q, k, v, *, scale, causal):
    raise AssertionError("it is called")


def takes_another_name(q, k, v, *, scale, is_causal=False, window=None, softcap=None):
    raise AssertionError("it is called")


def takes_no_bias(q, k, v, *, scale, causal, window, softcap):
    return attention(q, k, v, scale=scale, causal=causal, window=window, softcap=softcap)


def needs_more(q, k, v, *, scale, causal, window, softcap, blocks):
    raise AssertionError("it is called")


@pytest.mark.parametrize(
    ("kernel", "error"),
    [
        (takes_too_little, r"^takes_too_little\(\) takes no argument 'window'; it is called by "),
        (takes_another_name, r"takes no argument 'causal'; did you mean 'is_causal'; it is "),
        (needs_more, r"^needs_more\(\) needs an argument 'blocks'; it is called by name with q, "),
        (takes_no_bias, r"^takes_no_bias\(\) takes no argument 'bias'; it is called by name with "),
    ],
)
def test_a_kernel_that_cannot_be_called_is_told_so_at_once(kernel, error):
    promises = {**PROMISES, **({"features": ["bias"]} if kernel is takes_no_bias else {})}
    calls = []

    def counted(*tensors, **given):
        calls.append(given)
        return kernel(*tensors, **given)

    counted.__signature__ = inspect.signature(kernel)
    counted.__name__ = kernel.__name__
    with pytest.raises(TypeError, match=error) as caught:
        flashproof.check(counted, promises, laws=SOME, runs=8, seed=1)
    assert "\n" not in str(caught.value)
    assert all("bias" not in given for given in calls)


def plain(q, k, v):
    return attention(q, k, v)


def scaled(q, k, v, scale):
    return attention(q, k, v, scale=scale)


def causal(q, k, v, *, scale, window):
    return attention(q, k, v, scale=scale, causal=True, window=window)


@pytest.mark.parametrize(
    ("kernel", "promises"),
    [
        (plain, {"causal": False, "window": False, "scales": ["default"]}),
        (scaled, {"causal": False, "window": False}),
        (causal, {"causal": "only"}),
    ],
)
def test_a_kernel_is_called_with_what_it_promises_to_take(kernel, promises):
    settings = {"laws": SOME, "runs": 6, "seed": 1}
    report = flashproof.check(kernel, {"formats": ["fp32"], **promises}, **settings)
    assert report.passed, report.text
    with pytest.raises(TypeError, match=r"takes no argument 'softcap'"):
        flashproof.check(kernel, {"formats": ["fp32"], **promises, "softcap": True}, **settings)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (
            {"laws": ["within-bond"]},
            r"^laws= names no property \"within-bond\"; did you mean within-bound.*; flashproof\.laws\(\) lists ",
        ),
        ({"regimes": ["norml"]}, r"^regimes= names no regime .*; did you mean normal; "),
        ({"premises": {"score": "bf16"}}, r"^premises= has \"score\"; did you mean scores; "),
        (
            {"promises": {"format": ["fp32"]}},
            r"^promises: has \"format\", .*; did you mean formats",
        ),
        ({"promises": {"formats": ["fp33"]}}, r"^promises: /formats/0 must be equal to one of "),
        ({"runs": 0}, r"^runs= is \"0\"; "),
    ],
)
def test_a_refusal_names_arguments_of_python(settings, error):
    given = {"promises": PROMISES, "laws": ["within-bound"], "runs": 1, "seed": 1, **settings}
    with pytest.raises(flashproof.RequestError, match=error) as caught:
        flashproof.check(attention, **given)
    assert "--" not in str(caught.value) and tempfile.gettempdir() not in str(caught.value)


def test_a_skipped_law_says_what_is_not_promised():
    test = flashproof.pytest.laws(attention, PROMISES, only=["gradients-within-bound"], runs=2)
    given = Flashproof(seed=1, runs=None, seconds=None)
    with pytest.raises(pytest.skip.Exception, match=r"^gradients are not promised$"):
        test(law="gradients-within-bound", flashproof=given)
