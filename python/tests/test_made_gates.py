"""Kernels of delta rules that make their gates: A_log, a, dt_bias and b in the place of g and beta."""

import numpy as np
import pytest

from flashproof import audit_recurrent

TOKENS, HEADS, DIM = 24, 2, 8


def problem():
    rng = np.random.default_rng(3)
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    vectors = lambda: normal(1, TOKENS, HEADS, DIM)  # noqa: E731
    return {
        "q": vectors(),
        "k": vectors() / np.float32(np.sqrt(DIM)),
        "v": vectors(),
        "A_log": rng.random(HEADS).astype(np.float32),
        "a": normal(1, TOKENS, HEADS),
        "dt_bias": normal(HEADS) - np.float32(1),
        "b": normal(1, TOKENS, HEADS),
    }


def gated_delta(q, k, v, A_log, a, dt_bias, b):
    g = -np.exp(A_log) * np.log1p(np.exp(a + dt_bias))
    beta = 1 / (1 + np.exp(-b))
    state = np.zeros((HEADS, DIM, DIM), np.float32)
    out = np.zeros_like(v)
    for t in range(TOKENS):
        state = state * np.exp(g[0, t])[:, None, None]
        lacking = v[0, t] - np.einsum("hk,hkv->hv", k[0, t], state)
        state = state + k[0, t][:, :, None] * (beta[0, t][:, None] * lacking)[:, None, :]
        out[0, t] = np.einsum("hk,hkv->hv", q[0, t], state) / np.float32(np.sqrt(DIM))
    return out, state[None]


def test_a_right_kernel_passes():
    given = problem()
    out, state = gated_delta(**given)
    report = audit_recurrent(out=out, final_state=state, family="gated-delta", **given)
    assert report.passed, str(report)
    assert "softplus(a + dt_bias)" in " ".join(str(report).split())


def test_a_bias_that_the_kernel_did_not_see_is_named():
    given = problem()
    out, state = gated_delta(**{**given, "dt_bias": np.zeros(HEADS, np.float32)})
    report = audit_recurrent(out=out, final_state=state, family="gated-delta", **given)
    assert not report.passed
    assert "dt_bias is left out" in str(report)


def test_a_bias_without_a_log_is_refused():
    given = {**problem(), "A_log": None}
    with pytest.raises(ValueError, match="dt_bias is of mamba2, and the family is gated-delta"):
        audit_recurrent(out=given["v"], family="gated-delta", **given)
