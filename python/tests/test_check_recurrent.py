"""The laws of recurrences on a Python callable."""

import numpy as np
import pytest
from test_recurrent import recurrence

import flashproof
import flashproof.pytest

PROMISES = {"families": ["linear", "gated-delta"], "formats": ["fp32"], "packed": False}
SOME = ["within-bound", "zero-strength", "handed-over-state"]


def kernel(q, k, v, *, family, scale, normalisation, **features):
    """The recurrence with each key head in all value heads of its group, in fp32."""
    if normalisation is not None:
        raise flashproof.Declined("no normalisation")
    group = v.shape[2] // k.shape[2]
    wide = [np.repeat(x, group, axis=2) for x in (q, k)]
    with np.errstate(all="ignore"):
        return recurrence(*wide, v, scale=scale, **features)


def test_a_correct_recurrence_holds_the_laws():
    assert set(SOME) < set(flashproof.laws("recurrent")) and "masked-keys" not in flashproof.laws(
        "recurrent"
    )
    report = flashproof.check(kernel, PROMISES, contract="recurrent", laws=SOME, runs=4, seed=3)
    assert report.passed, report.text
    assert {report.result(law) for law in SOME} == {"holds"}
    assert report.json["contract"] == "recurrent"


def test_a_state_without_the_last_token_is_caught_and_its_problem_kept(kept):
    def late(q, k, v, **settings):
        out, state = kernel(q, k, v, **settings)
        given = {name: settings.get(name) for name in ("g", "beta", "initial_state")}
        if v.shape[1] > 1:
            early = {
                name: x if x is None or name == "initial_state" else x[:, :-1]
                for name, x in given.items()
            }
            _, state = kernel(q[:, :-1], k[:, :-1], v[:, :-1], **{**settings, **early})
        return {"out": out, "final_state": state}

    asked = {"contract": "recurrent", "laws": ["handed-over-state"], "runs": 20, "seed": 1}
    with pytest.raises(AssertionError, match="handed-over-state") as caught:
        flashproof.assert_kernel(late, PROMISES, **asked)
    (path,) = kept.iterdir()
    again = f"flashproof.replay(late, {str(path)!r}, {PROMISES!r}, contract='recurrent')"
    assert again in str(caught.value)
    assert not eval(again)
    assert not flashproof.replay(late, path, PROMISES, contract="recurrent").passed
    assert flashproof.replay(kernel, path, PROMISES, contract="recurrent").passed


@pytest.mark.parametrize("factor", [1, 1.01])
def test_gradients_by_a_function_are_judged(factor):
    def backward(q, k, v, dout, *, scale, dfinal_state=None, initial_state=None, **settings):
        """Of linear attention, by the products of all pairs of tokens."""
        wide = [x.astype(np.float64) for x in (q, k, v, dout)]
        q, k, v, dout = wide
        seen = np.tril(np.ones((q.shape[1],) * 2)) * scale
        p = np.einsum("bihd,bjhd->bhij", q, k) * seen
        dp = np.einsum("bihd,bjhd->bhij", dout, v) * seen
        found = {
            "dq": np.einsum("bhij,bjhd->bihd", dp, k),
            "dk": np.einsum("bhij,bihd->bjhd", dp, q) * factor,
            "dv": np.einsum("bhij,bihd->bjhd", p, dout),
        }
        if dfinal_state is not None:
            of_state = dfinal_state.astype(np.float64)
            found["dk"] += np.einsum("bhkv,bjhv->bjhk", of_state, v)
            found["dv"] += np.einsum("bhkv,bjhk->bjhv", of_state, k)
        return {name: x.astype(np.float32) for name, x in found.items()}

    promises = {
        "families": ["linear"],
        "formats": ["fp32"],
        "groupSizes": [1],
        "packed": False,
        "initialState": [],
        "gradients": True,
    }
    asked = {"laws": ["gradients-within-bound"], "runs": 6, "seed": 2, "backward": backward}
    report = flashproof.check(kernel, promises, contract="recurrent", **asked)
    assert report.passed == (factor == 1), report.text


def test_gradients_by_autograd_are_judged():
    torch = pytest.importorskip("torch")

    def differentiable(
        q, k, v, *, family, scale, normalisation, g=None, beta=None, initial_state=None
    ):
        if normalisation is not None:
            raise flashproof.Declined("no normalisation")
        group = v.shape[2] // k.shape[2]
        q, k = (x.repeat_interleave(group, dim=2) for x in (q, k))
        batch, tokens, heads, dim = q.shape
        state = (
            torch.zeros(batch, heads, dim, v.shape[-1]) if initial_state is None else initial_state
        )
        rows = []
        for t in range(tokens):
            if g is not None:
                state = state * g[:, t].exp()[..., None, None]
            new = v[:, t]
            if beta is not None:
                new = (new - torch.einsum("bhk,bhkv->bhv", k[:, t], state)) * beta[:, t][..., None]
            state = state + k[:, t][..., None] * new[..., None, :]
            rows.append(torch.einsum("bhk,bhkv->bhv", q[:, t] * scale, state))
        return (torch.stack(rows, 1) if rows else torch.zeros_like(v)), state

    asked = {"contract": "recurrent", "framework": "torch", "runs": 6, "seed": 2}
    promises = {**PROMISES, "gradients": True, "infiniteGates": False}
    law = "gradients-within-bound"
    report = flashproof.check(differentiable, promises, laws=[law], **asked)
    assert report.passed and report.result(law) == "holds", report.text

    def without_decay_of_the_state(*tensors, g=None, **settings):
        return differentiable(*tensors, g=None if g is None else g.detach(), **settings)

    assert not flashproof.check(without_decay_of_the_state, promises, laws=[law], **asked).passed


def test_another_contract_is_one_line():
    with pytest.raises(
        ValueError,
        match="^contract is 'recurent'; did you mean 'recurrent'; give one of attention, recurrent$",
    ):
        flashproof.check(kernel, PROMISES, contract="recurent")


test_laws = flashproof.pytest.laws(kernel, PROMISES, contract="recurrent", only=SOME, runs=3)
