import os
import subprocess
import sys

import numpy as np
import pytest

from flashproof import RequestError, assert_recurrent, audit_recurrent, judged_recurrent
from flashproof.safetensors import read

ml_dtypes = pytest.importorskip("ml_dtypes")

#: Whether a family has a decay of each head ("head") or key dimension ("dim"), and whether it writes by a delta rule.
FAMILIES = {
    "linear": (None, False),
    "simple-gla": ("head", False),
    "gla": ("dim", False),
    "delta": (None, True),
    "gated-delta": ("head", True),
    "kda": ("dim", True),
}
BATCH, TOKENS, HEADS, DIM = 2, 40, 2, 16


def problem(family, dtype=np.float32, batch=BATCH, tokens=TOKENS, seed=0):
    """Q, K and V, and what the family has besides: keys of length 1, decays and write strengths below 1."""
    rng = np.random.default_rng(seed)
    decay, is_delta = FAMILIES[family]
    q, k, v = (rng.standard_normal((batch, tokens, HEADS, DIM)) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    found = {name: x.astype(dtype) for name, x in {"q": q, "k": k, "v": v}.items()}
    rows = (batch, tokens, HEADS)
    if decay is not None:
        shape = rows if decay == "head" else (*rows, DIM)
        found["g"] = -rng.random(shape).astype(np.float32)
    if is_delta:
        found["beta"] = rng.random(rows).astype(dtype)
    return found


def recurrence(q, k, v, g=None, beta=None, initial_state=None, scale=None):
    """The recurrence in fp32, token by token: the output in Q's format, and the final state."""
    wide = [x.astype(np.float32) for x in (q, k, v)]
    scale = np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
    batch, tokens, heads, dim = q.shape
    state = np.zeros((batch, heads, dim, v.shape[-1]), np.float32)
    if initial_state is not None:
        state = state + initial_state
    out = np.empty(v.shape, np.float32)
    for t in range(tokens):
        qt, kt, vt = (x[:, t] for x in wide)
        if g is not None:
            gt = np.exp(g[:, t])
            state = state * (gt[..., None, None] if gt.ndim == 2 else gt[..., None])
        if beta is not None:
            vt = vt - np.einsum("bhk,bhkv->bhv", kt, state)
            vt = vt * beta[:, t].astype(np.float32)[..., None]
        state = state + kt[..., None] * vt[..., None, :]
        out[:, t] = np.einsum("bhk,bhkv->bhv", qt * scale, state)
    return out.astype(q.dtype), state


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_correct_recurrence_passes(family, dtype):
    given = problem(family, dtype)
    out, state = recurrence(**given)
    report = assert_recurrent(out=out, final_state=state, family=family, **given)
    assert report.passed and report.status == "PASS" and report.findings == ()
    assert report.text.startswith("PASS: ") and report.json["problem"]["family"] == family
    assert [one["name"] for one in report.json["quantities"]] == ["out", "final_state"]


def test_a_wrong_token_fails_with_its_quantity_and_a_command_that_shows_it_again(kept):
    given = problem("gated-delta")
    out, state = recurrence(**given)
    out[1, 17, 0] *= np.float32(1.01)
    with pytest.raises(AssertionError) as caught:
        assert_recurrent(out=out, final_state=state, family="gated-delta", **given)
    text = str(caught.value)
    assert text.startswith("FAIL: ")
    report = audit_recurrent(out=out, final_state=state, family="gated-delta", **given)
    assert not report.passed and {one.quantity for one in report.findings} == {"out"}
    assert report.command is None
    (path,) = kept.iterdir()
    words = text.rsplit("Again: ", 1)[1].split()
    assert words == ["python", "-m", "flashproof", "audit", str(path)]
    again = subprocess.run(
        [sys.executable, *words[1:]],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert again.returncode == 1
    assert again.stdout.splitlines()[0] == text.splitlines()[0]


def test_another_recurrence_than_the_kernels_fails():
    given = problem("gated-delta")
    out, _ = recurrence(**given)
    assert audit_recurrent(out=out, family="gated-delta", **given).passed
    later = {**given, "g": np.roll(given["g"], 1, axis=1)}
    assert not audit_recurrent(out=out, family="gated-delta", **later).passed
    assert not audit_recurrent(out=out, family="gated-delta", scale=0.3, **given).passed
    assert not audit_recurrent(out=out, family="gated-delta", normalisation=0.5, **given).passed


def test_settings_pass_through():
    given = problem("delta", ml_dtypes.bfloat16)
    first = np.random.default_rng(3).standard_normal((BATCH, HEADS, DIM, DIM)).astype(np.float32)
    out, state = recurrence(**given, initial_state=first, scale=0.3)
    family = {"family": "delta", "scale": 0.3}
    assert audit_recurrent(out=out, final_state=state, initial_state=first, **family, **given)
    assert not audit_recurrent(out=out, final_state=state, **family, **given)
    turned = {name: np.ascontiguousarray(x.swapaxes(1, 2)) for name, x in given.items()}
    states = {"initial_state": first.swapaxes(2, 3), "final_state": state.swapaxes(2, 3)}
    report = audit_recurrent(
        out=out.swapaxes(1, 2), layout="bhtd", state_layout="vk", **states, **family, **turned
    )
    assert report.passed
    declared = audit_recurrent(
        out=out, initial_state=first, premises={"form": "recurrent"}, **family, **given
    )
    assert declared.passed and "chunks" not in declared.text


def test_normalisation_is_of_the_problem():
    given = problem("delta")
    given["k"] *= np.float32(3)
    unit = {
        name: x / np.sqrt((x * x).sum(-1, keepdims=True) + np.float32(1e-6))
        for name, x in given.items()
        if name in ("q", "k")
    }
    out, _ = recurrence(**{**given, **unit})
    for normalisation in (True, 1e-6):
        assert audit_recurrent(out=out, family="delta", normalisation=normalisation, **given)


def test_retention_has_decays_of_its_own():
    given = problem("linear")
    decays = np.log1p(-(2.0 ** (-5 - np.arange(HEADS)))).astype(np.float32)
    out, _ = recurrence(**given, g=np.broadcast_to(decays, (BATCH, TOKENS, HEADS)))
    assert audit_recurrent(out=out, family="retention", **given)
    assert not audit_recurrent(out=out, family="linear", **given)


def test_packed_sequences_begin_anew():
    given = problem("simple-gla", batch=1)
    ends = [0, 13, TOKENS]
    parts = [
        recurrence(**{name: x[:, first:end] for name, x in given.items()})
        for first, end in zip(ends, ends[1:])
    ]
    out, state = (np.concatenate(x, axis) for x, axis in zip(zip(*parts), (1, 0)))
    packed = {"family": "simple-gla", "cu_seqlens": np.array(ends), **given}
    assert audit_recurrent(out=out, final_state=state, **packed)
    assert not audit_recurrent(out=recurrence(**given)[0], **packed)


def test_gradients_are_judged():
    given = problem("linear")
    wide = {name: x.astype(np.float64) for name, x in given.items()}
    dout = np.random.default_rng(5).standard_normal(given["v"].shape).astype(np.float32)
    seen = np.tril(np.ones((TOKENS, TOKENS)))
    p = np.einsum("bihd,bjhd->bhij", wide["q"], wide["k"]) * DIM**-0.5 * seen
    dp = np.einsum("bihd,bjhd->bhij", dout, wide["v"]) * DIM**-0.5 * seen
    grads = {
        "dq": np.einsum("bhij,bjhd->bihd", dp, wide["k"]),
        "dk": np.einsum("bhij,bihd->bjhd", dp, wide["q"]),
        "dv": np.einsum("bhij,bihd->bjhd", p, dout),
    }
    narrow = {name: x.astype(np.float32) for name, x in grads.items()}
    out, _ = recurrence(**given)
    asked = {"out": out, "family": "linear", "dout": dout, **given}
    assert audit_recurrent(**asked, **narrow).passed
    wrong = {**narrow, "dk": narrow["dk"] * np.float32(1.01)}
    report = audit_recurrent(**asked, **wrong)
    assert not report.passed and "dk" in {one.quantity for one in report.findings}


def test_what_cannot_be_judged_is_one_line():
    given = problem("delta")
    out, _ = recurrence(**given)
    with pytest.raises(RequestError) as caught:
        audit_recurrent(out=out, family="lineer", **given)
    assert str(caught.value) == (
        'family is "lineer"; give one of linear, retention, simple-gla, gla, delta, gated-delta, kda, mamba2'
    )
    for name, value, said in (
        ("g", np.zeros(out.shape[:3], np.float32), "g"),
        ("beta", None, "beta"),
        ("layout", "hbsd", 'layout is "hbsd"'),
        ("state_layout", "kk", 'state_layout is "kk"'),
        ("premises", "eager", "for linear attention give recurrent, chunked, fla"),
        ("normalisation", -1.0, "normalisation is "),
    ):
        with pytest.raises(RequestError, match=said) as caught:
            audit_recurrent(out=out, family="delta", **{**given, name: value})
        assert "\n" not in str(caught.value) and "problem.safetensors" not in str(caught.value)
    for wrong, said in (
        ({"out": None}, "out is None; give the kernel's output"),
        ({"dq": out}, "dq is given without dout"),
        ({"dout": out}, "dout is given without a gradient to judge; give dq, .*, dinitial_state"),
        ({"dfinal_state": out}, "dfinal_state is given without dout"),
        ({"scale": True}, "scale is True; give a number"),
        ({"normalisation": "yes"}, "normalisation is 'yes'; give a number"),
    ):
        with pytest.raises(ValueError, match=said):
            audit_recurrent(**{"out": out, "family": "delta", **given, **wrong})
    for function in (audit_recurrent, assert_recurrent):
        for name, meant in {"h0": "initial_state", "do": "dout", "gk": "g"}.items():
            with pytest.raises(TypeError, match=f"argument '{name}'; call it {meant}"):
                function(out=out, family="delta", **given, **{name: out})
        with pytest.raises(TypeError, match="unexpected keyword argument 'causal'; it takes"):
            function(out=out, family="delta", causal=True, **given)
    with pytest.raises(TypeError, match="q is a list; give an array"):
        audit_recurrent(out=out, family="delta", **{**given, "q": [[1.0]]})


def test_a_problem_can_be_kept(tmp_path):
    given = problem("kda")
    out, _ = recurrence(**given)
    path = tmp_path / "kept.safetensors"
    report = audit_recurrent(out=out, family="kda", keep=path, premises="recurrent", **given)
    assert report.command == f"python -m flashproof audit {path} --as recurrent"
    assert read(path)[1]["family"] == "kda"


def kernel(q, k, v, g, beta=None, scale=None, initial_state=None, output_final_state=False, **more):
    """As flash-linear-attention's functions are called; it leaves its last state where the first was."""
    out, state = recurrence(q, k, v, g, beta, initial_state, scale)
    if initial_state is not None:
        initial_state[...] = state
    return out * more.get("damage", np.float32(1)), state if output_final_state else None


def test_a_judged_kernel_gives_what_it_gave_and_is_judged_at_each_call(kept):
    given = problem("gated-delta")
    first = np.random.default_rng(3).standard_normal((BATCH, HEADS, DIM, DIM)).astype(np.float32)
    judged = judged_recurrent(kernel, family="gated-delta", premises="recurrent")
    assert judged.__name__ == "kernel" and not judged.passed
    expected = kernel(**given, output_final_state=True, initial_state=first.copy())
    made = judged(**given, output_final_state=True, initial_state=first, chunk_size=64)
    assert all((one == other).all() for one, other in zip(made, expected))
    q, k, v, g, beta = given.values()
    assert judged(q, k, v, g, beta, 0.3)[1] is None
    assert judged.passed and len(judged.reports) == 2
    names = [[one["name"] for one in report.json["quantities"]] for report in judged.reports]
    assert names == [["out", "final_state"], ["out"]]


def test_a_judged_kernel_fails_by_an_assertion_or_in_its_reports(kept):
    given = problem("gated-delta")
    wrong = lambda q, k, v, g, beta: kernel(q, k, v, g, beta, damage=np.float32(1.01))  # noqa: E731
    with pytest.raises(AssertionError, match="FAIL: "):
        judged_recurrent(wrong, family="gated-delta")(**given)
    assert len(list(kept.iterdir())) == 1
    judged = judged_recurrent(wrong, family="gated-delta", on_fail="report")
    judged(**given)
    assert not judged.passed and [one.status for one in judged.reports] == ["FAIL"]


def test_a_judged_kernel_refuses_what_may_change_its_meaning():
    given = problem("gated-delta")
    judged = judged_recurrent(kernel, family="gated-delta")
    with pytest.raises(ValueError, match="^A_log is given to a judged kernel") as caught:
        judged(**given, A_log=given["g"], dt_bias=None, use_gate_in_kernel=False)
    assert "\n" not in str(caught.value) and judged.reports == []
    with pytest.raises(ValueError, match="on_fail is 'warn'; give 'raise' or 'report'"):
        judged_recurrent(kernel, family="gated-delta", on_fail="warn")
