"""Mamba-2 by its own names."""

import numpy as np
import pytest

from flashproof import audit_recurrent

BATCH, TOKENS, HEADS, DIM, GROUPS, STATE = 1, 24, 4, 8, 2, 8


def problem(seed=0):
    rng = np.random.default_rng(seed)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    return {
        "x": draw(BATCH, TOKENS, HEADS, DIM),
        "dt": draw(BATCH, TOKENS, HEADS),
        "A": -1 - rng.random(HEADS).astype(np.float32),
        "B": draw(BATCH, TOKENS, GROUPS, STATE),
        "C": draw(BATCH, TOKENS, GROUPS, STATE),
        "D": draw(HEADS),
        "z": draw(BATCH, TOKENS, HEADS, DIM),
        "dt_bias": draw(HEADS) - 2,
        "initial_states": draw(BATCH, HEADS, DIM, STATE),
    }


def mamba2(x, dt, A, B, C, D, z, dt_bias, initial_states, dt_limit=(0.0, np.inf)):
    """Mamba-2 in fp32, token by token."""
    step = np.clip(np.log1p(np.exp(dt + dt_bias)), *np.float32(dt_limit))
    state = initial_states.copy()
    out = np.empty_like(x)
    group = np.arange(HEADS) // (HEADS // GROUPS)
    for t in range(TOKENS):
        decay = np.exp(step[:, t] * A)[:, :, None, None]
        value = step[:, t, :, None] * x[:, t]
        state = state * decay + value[..., None] * B[:, t, group][:, :, None, :]
        y = np.einsum("bhpn,bhn->bhp", state, C[:, t, group]) + D[:, None] * x[:, t]
        out[:, t] = y * z[:, t] / (1 + np.exp(-z[:, t]))
    return out, state.astype(np.float32)


def test_a_right_kernel_passes():
    given = problem()
    out, states = mamba2(**given)
    report = audit_recurrent(
        out=out, final_states=states, family="mamba2", dt_softplus=True, **given
    )
    assert report.passed, str(report)
    assert "final state" in str(report)


def test_limits_that_the_kernel_did_not_see_are_named():
    given = problem()
    out, states = mamba2(**given)
    report = audit_recurrent(
        out=out, final_states=states, family="mamba2", dt_softplus=True, dt_limit=(0.2, 1), **given
    )
    assert not report.passed
    assert "the limits of dt are ignored" in str(report)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": np.zeros(1)}, "q is given for mamba2; call it C"),
        ({"dt": None}, "mamba2 needs dt; give it"),
        ({"scale": 0.5}, "mamba2 has no scale; leave it out"),
        ({"dt_limit": (0, 1, 2)}, "dt_limit is (0, 1, 2); give the least and the largest Δ"),
    ],
)
def test_what_is_no_problem_is_refused(change, message):
    given = {**problem(), **change}
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        audit_recurrent(out=np.zeros(1), family="mamba2", **given)


def test_its_names_are_refused_in_other_families():
    with pytest.raises(ValueError, match="dt is of mamba2, and the family is linear; leave it out"):
        audit_recurrent(np.zeros(1), np.zeros(1), np.zeros(1), family="linear", dt=np.zeros(1))
