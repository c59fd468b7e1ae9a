import os
import re
import subprocess
import sys

import numpy as np
import pytest
from reference import attention, problem

from flashproof import Array, RequestError, assert_attention, audit, tolerance
from flashproof.safetensors import read, write

ml_dtypes = pytest.importorskip("ml_dtypes")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_a_correct_output_passes(dtype, causal):
    q, k, v = problem(dtype)
    out, lse = attention(q, k, v, causal=causal)
    report = assert_attention(q, k, v, out, lse, causal=causal)
    assert report.passed and report and report.cause is None and report.findings == ()
    assert report.text.startswith("PASS: ")


def test_a_wrong_mask_fails_with_its_cause_and_a_command_that_shows_it_again(kept):
    q, k, v = problem()
    out, lse = attention(q, k, v, causal=False)
    with pytest.raises(AssertionError) as caught:
        assert_attention(q, k, v, out, lse, causal=True)
    text = str(caught.value)
    assert text.startswith("FAIL: ") and "mask" in text
    (path,) = kept.iterdir()
    assert audit(q, k, v, out, lse, causal=True).command is None
    words = text.rsplit("Again: ", 1)[1].split()
    assert words[:4] == ["python", "-m", "flashproof", "audit"] and words[4] == str(path)
    again = subprocess.run(
        [sys.executable, *words[1:]],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert again.returncode == 1
    assert again.stdout.splitlines()[0] == text.splitlines()[0]


def test_features_pass_through():
    q, k, v = problem()
    mask = np.random.default_rng(1).random((1, 1, 33, 40)) < 0.8
    out, lse = attention(q, k, v, mask=mask, scale=0.3)
    assert audit(q, k, v, out, lse, mask=mask, scale=0.3).passed
    assert not audit(q, k, v, out, lse, scale=0.3).passed
    for settings in ({"window": (5, 0)}, {"softcap": 2.0}):
        out, lse = attention(q, k, v, **settings)
        assert audit(q, k, v, out, lse, **settings).passed
        assert not audit(q, k, v, out, lse).passed
    swapped = [np.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v, attention(q, k, v)[0])]
    assert audit(*swapped, layout="bshd").passed


def test_gradients_are_judged():
    q, k, v = (x.astype(np.float64) for x in problem())
    scale = q.shape[-1] ** -0.5
    dout = np.random.default_rng(5).standard_normal(q.shape)
    s = np.einsum("bhqd,bhkd->bhqk", q, k) * scale
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    out = p @ v
    dp = np.einsum("bhqd,bhkd->bhqk", dout, v)
    ds = p * (dp - (dout * out).sum(-1, keepdims=True))
    grads = {
        "dq": ds @ k * scale,
        "dk": ds.swapaxes(-1, -2) @ q * scale,
        "dv": p.swapaxes(-1, -2) @ dout,
    }
    narrow = {name: x.astype(np.float32) for name, x in grads.items()}
    inputs = [x.astype(np.float32) for x in (q, k, v, out)]
    assert audit(*inputs, dout=dout.astype(np.float32), **narrow).passed
    wrong = {**narrow, "dk": narrow["dk"] * np.float32(1.01)}
    report = audit(*inputs, dout=dout.astype(np.float32), **wrong)
    assert not report.passed and {one.quantity for one in report.findings} == {"dk"}


def test_a_tolerance_holds_what_is_right_and_not_what_is_wrong():
    q, k, v = problem(ml_dtypes.bfloat16)
    out, lse = attention(q, k, v)
    bounds = tolerance(q, k, v)
    assert bounds.out.shape == out.shape and bounds.lse.shape == lse.shape
    assert (np.abs(out.astype(np.float64) - bounds.out) <= bounds.out_bound).all()
    assert (np.abs(lse - bounds.lse) <= bounds.lse_bound).all()
    assert (np.abs(out.astype(np.float64) * 1.05 - bounds.out) > bounds.out_bound).any()


def test_what_cannot_be_judged_is_one_line():
    q, k, v = problem()
    out, _ = attention(q, k, v)
    with pytest.raises(RequestError) as caught:
        audit(q, k[..., :8], v, out)
    assert "\n" not in str(caught.value) and not str(caught.value).startswith("flashproof")
    with pytest.raises(RequestError, match="nonsense"):
        audit(q, k, v, out, premises="nonsense")
    with pytest.raises(TypeError, match="q is a list; give an array"):
        audit([[1.0]], k, v, out)
    with pytest.raises(TypeError, match="complex64"):
        audit(q.astype(np.complex64), k, v, out)
    with pytest.raises(ValueError, match="layout is 'hbsd'"):
        audit(q, k, v, out, layout="hbsd")


def test_reports_name_arguments_in_the_place_of_options():
    q, k, v = (
        np.random.default_rng(i).standard_normal((1, 6, 6, 16), np.float32) for i in range(3)
    )
    out, _ = attention(*(x.swapaxes(1, 2) for x in (q, k, v)))
    report = audit(q, k, v, out.swapaxes(1, 2))
    said = [report.sentence, report.json["verdict"]["sentence"], " ".join(report.text.split())]
    assert all('(layout="bshd")' in one for one in said)
    assert 'options=["--full"] prints' in said[2] and "--full prints" not in said[2]
    with pytest.raises(ValueError, match=r'pass the matching tensor, or layout="bshd"$'):
        audit(q, k, v, out[:, :, :5])
    for function in (audit, assert_attention):
        with pytest.raises(TypeError, match="unexpected keyword argument 'casual'; it takes"):
            function(q, k, v, out, casual=True)
    for name, meant in {"is_causal": "causal", "softmax_scale": "scale", "do": "dout"}.items():
        with pytest.raises(
            TypeError, match=f"unexpected keyword argument '{name}'; call it {meant}"
        ):
            audit(q, k, v, out, **{name: out})
    with pytest.raises(TypeError, match="'grad_out'; it takes"):
        tolerance(q, k, v, grad_out=out)
    # What is judged says nothing of a tolerance, nor a file of what an assertion keeps.
    with pytest.raises(TypeError, match="dout"):
        tolerance(q, k, v, dout=out)
    with pytest.raises(TypeError, match="keep"):
        assert_attention(q, k, v, out, keep="kept.safetensors")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"causal": "no"}, "causal is 'no'; give True or False"),
        ({"scale": True}, "scale is True; give a number"),
        ({"scale": [0.25]}, "scale is .*; give a number"),
        ({"scale": np.ones(2)}, "scale is .*; give one number"),
        ({"softcap": "deep"}, "softcap is 'deep'; give a number"),
        ({"window": (1.5, 2)}, r"window is \(1.5, 2\); give two whole numbers"),
        ({"window": (1,)}, r"window is \(1,\); give two whole numbers"),
        ({"window": 5}, "window is 5; give two whole numbers"),
        ({"dq": np.ones((1, 2, 33, 16))}, "dq is given without dout"),
        ({"dout": np.ones((1, 2, 33, 16))}, "dout is given without a gradient"),
        ({"out": None}, "out is None; give the kernel's output"),
        ({"features": {"softmax_scale": np.float32(0.1)}}, '^tensor "softmax_scale" is not read'),
        ({"features": {"unheard_of": np.ones(3)}}, "^unheard_of: no input .* is known"),
        ({"features": {"page_tables": np.ones(3)}}, "^page_tables: attention is judged without"),
        ({"q": np.ma.masked_array(np.ones((1, 2, 33, 16)))}, "q is a masked array; give its .data"),
        # The file that errors are about is no file of the caller's.
        ({"mask": np.ones((33, 32), bool)}, r"^mask has shape \[33, 32\]; give one"),
    ],
)
@pytest.mark.parametrize("function", [audit, assert_attention])
def test_what_would_be_left_out_or_misread_is_refused(function, given, error):
    q, k, v = problem()
    out, _ = attention(q, k, v)
    with pytest.raises((TypeError, ValueError), match=error) as caught:
        function(**{"q": q, "k": k, "v": v, "out": out, **given})
    assert "\n" not in str(caught.value)


#: Options that make no report of the kernel that was given, or of another, and what is said of each.
HOSTILE = {
    "help": (["--help"], r"^options has --help, which judges nothing; leave it out"),
    "h": (["-h"], r"^options has -h, which judges nothing; leave it out"),
    "letters": (["-qh"], r"^options is \['-qh'\], which makes no report of "),
    "version": (["--version"], r"^options has --version, which judges nothing; leave it out"),
    "shard": (["--shard", "2/2"], r"^options has --shard, .* on the command line"),
    "shard=": (["--shard=1/1"], r"^options has --shard=1/1, .* on the command line"),
    "journal": (["--journal", "j"], r"^options has --journal, .* on the command line"),
    "json": (["--json", "x.json"], r"^options has --json; the report that is returned has \.json"),
    "exec": (["--exec", "true"], r"^options has --exec, which names another kernel; leave it out"),
    "kernel": (["--kernel=fa4"], r"^options has --kernel=fa4, which names another kernel;"),
    "launch": (["--launch", "x"], r"^options has --launch, which names another kernel; leave it"),
    "no number": (["--threads", "x"], r"^option '--threads <n>' argument 'x' is invalid"),
    "no value": (["--threads"], r"^option '--threads <n>' argument missing"),
    "unknown": (["--fulll"], r"^unknown option '--fulll'; did you mean --full"),
    "number": ([1], r"^options is \[1\]; give a list of words"),
    "bytes": ([b"--full"], r"^options is \[b'--full'\]; give a list of words"),
    "text": ("--full", r"^options is '--full'; give a list of words"),
    "no list": (7, r"^options is 7; give a list of words"),
}


@pytest.mark.parametrize(("options", "error"), HOSTILE.values(), ids=HOSTILE)
def test_options_that_make_no_report_are_refused(options, error):
    q, k, v = problem()
    out, _ = attention(q, k, v)
    with pytest.raises((TypeError, ValueError), match=error) as caught:
        audit(q, k, v, out, options=options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("word", ["", " ", "other.safetensors", "a\nb", "\ud800"])
def test_words_of_options_that_belong_to_none_are_refused(word):
    q, k, v = problem()
    out, _ = attention(q, k, v)
    for options in ([word], ["--", word]):
        with pytest.raises(ValueError, match="^options is .*, which makes no report of") as caught:
            audit(q, k, v, out, options=options)
        assert "\n" not in str(caught.value)


def test_options_may_be_any_words_in_order_and_none():
    q, k, v = problem()
    out, _ = attention(q, k, v)
    for options in (["--full"], ("--full",), iter(["--full"])):
        assert len(audit(q, k, v, out, options=options).text.splitlines()) > 40
    assert audit(q, k, v, out, options=None).passed


def test_numbers_and_flags_of_other_libraries_are_settings():
    q, k, v = problem()
    out, _ = attention(q, k, v, causal=True, scale=0.25)
    given = {"scale": np.float32(0.25), "softcap": 0, "window": np.array([-1, -1])}
    for causal in (True, 1, np.True_):
        assert audit(q, k, v, out, causal=causal, **given).passed


def test_a_tolerance_is_refused_with_what_nothing_reads():
    q, k, v = problem()
    with pytest.raises(RequestError, match="^not used: unheard_of; no input"):
        tolerance(q, k, v, features={"unheard_of": np.ones(3)})


def test_files_are_what_they_were(tmp_path):
    arrays = {
        "a": Array("BF16", (2, 3), bytes(range(12))),
        "empty": Array("F32", (0, 4), b""),
        "scalar": Array("F64", (), bytes(8)),
    }
    write(tmp_path / "x.safetensors", arrays, {"note": "é"})
    assert read(tmp_path / "x.safetensors") == (arrays, {"note": "é"})
    with pytest.raises(ValueError, match="24 bytes, and 12 are given"):
        Array("F32", (2, 3), bytes(12))


def test_sequences_are_packed_and_in_pages_as_posed():
    random = np.random.default_rng(0)
    lengths = [9, 20, 5]
    parts = [problem(heads=2, queries=n, keys=n, seed=n) for n in lengths]
    outs = [attention(*one, causal=True)[0] for one in parts]
    q, k, v = (np.concatenate([one[x] for one in parts], 2)[0].swapaxes(0, 1) for x in range(3))
    out = np.concatenate(outs, 2)[0].swapaxes(0, 1)
    ends = np.cumsum([0, *lengths]).astype(np.int32)
    packed = {"cu_seqlens_q": ends, "cu_seqlens_k": ends}
    assert audit(q, k, v, out, causal=True, features=packed).passed
    assert not audit(
        q,
        k,
        v,
        out,
        causal=True,
        features={**packed, "cu_seqlens_k": ends[::-1] * 0 + [0, 10, 29, 34]},
    ).passed
    places = random.permutation(40)[: len(k)].astype(np.int32)
    pages = np.full((2, 40, 1, *k.shape[1:]), np.nan, np.float32)
    pages[0, places, 0], pages[1, places, 0] = k, v
    paged = {"paged_kv_indptr": ends, "paged_kv_indices": places}
    paged["paged_kv_last_page_len"] = np.ones(3, np.int32)
    features = {"cu_seqlens_q": ends, **paged}
    assert audit(q, pages[0], pages[1], out, causal=True, features=features).passed


def test_strict_premises_tell_no_hint():
    q, k, v = problem(ml_dtypes.bfloat16)
    scores = (q.astype(np.float32) @ k.astype(np.float32).swapaxes(2, 3)).astype(ml_dtypes.bfloat16)
    scaled = (scores.astype(np.float32) / np.sqrt(q.shape[-1])).astype(ml_dtypes.bfloat16)
    shifted = scaled.astype(np.float32) - scaled.astype(np.float32).max(-1, keepdims=True)
    total = np.exp(shifted).sum(-1, keepdims=True)
    out = (np.exp(shifted) / total @ v.astype(np.float32)).astype(ml_dtypes.bfloat16)
    lse = (np.log(total) + scaled.astype(np.float32).max(-1, keepdims=True))[..., 0]
    told, strict = audit(q, k, v, out, lse), audit(q, k, v, out, lse, strict_premises=True)
    # Sums of 16 products that are rounded once are scores that are: either is this kernel.
    assert not told.passed
    assert re.search(r"premises=\{'(scores|qkAccumulator)': 'bf16'\}", told.text)
    assert not strict.passed and "premises=" not in strict.text and "would pass" not in strict.text
    assert strict.json["verdict"]["premise"] is None
    with pytest.raises(AssertionError) as caught:
        assert_attention(q, k, v, out, lse, strict_premises=True)
    assert "would pass" not in str(caught.value)
