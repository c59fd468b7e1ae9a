"""Recurrences on the device: exact values, draws and limits, and which heads are left to the command line."""

import functools
import sys

import pytest
import torch

import flashproof
from flashproof.device.recurrent import judge as judging
from flashproof.device.recurrent import judge_recurrence
from flashproof.device.recurrent.drawn_limit import drawn_limit
from flashproof.device.recurrent.exact import exact_recurrence
from flashproof.device.recurrent.runs import LAWS, RecurrentProblem, runs_of

BATCH, TOKENS, HEADS, DIM, CHUNK = 2, 100, 2, 16, 64


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def inputs(family, dtype=torch.bfloat16, tokens=TOKENS, with_state=True):
    """Q, K and V, decays and write strengths as layers make them, and a first state."""
    decay, is_delta = LAWS[family]
    q, k, v = (draw(BATCH, tokens, HEADS, DIM, seed=i) for i in range(3))
    k = torch.nn.functional.normalize(k, dim=-1)
    found = {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype)}
    rows = (BATCH, tokens, HEADS)
    if decay is not None and family != "retention":
        gates = draw(*rows, *([DIM] if decay == "dim" else []), seed=3)
        found["g"] = torch.nn.functional.logsigmoid(gates + 3).float()
    if is_delta:
        found["beta"] = draw(*rows, seed=4).sigmoid().to(dtype)
    if with_state:
        found["initial_state"] = draw(BATCH, HEADS, DIM, DIM, seed=5).float()
    return found


def problem_of(family, given, out, state=None):
    return RecurrentProblem(
        family, given["q"], given["k"], given["v"], out, state, given.get("g"), given.get("beta"),
        given.get("initial_state"), None, DIM**-0.5, None,
    )  # fmt: skip


def law(family, given, dtype=torch.float64, in_chunks=False, lost=0.0):
    """
    The recurrence: token by token in `dtype`, or by chunks whose operands are rounded to the format of the inputs, and whose dots lose a
    share.
    """
    decay, is_delta = LAWS[family]
    short = given["q"].dtype
    cut = (lambda x: x.to(short).to(dtype)) if in_chunks else (lambda x: x)
    q, k, v = (given[name].to(dtype).transpose(1, 2) for name in "qkv")
    g = torch.zeros(*given["v"].shape[:3], 1, dtype=dtype)
    if family == "retention":
        g = (1 - torch.exp2(-5.0 - torch.arange(HEADS, dtype=dtype))).log()[:, None].expand_as(g)
    elif decay is not None:
        g = given["g"].to(dtype)
        g = g if decay == "dim" else g[..., None]
    g = g.transpose(1, 2)
    beta = given["beta"].to(dtype).transpose(1, 2)[..., None] if is_delta else None
    state = torch.zeros(BATCH, HEADS, DIM, DIM, dtype=dtype)
    if "initial_state" in given:
        state = given["initial_state"].to(dtype)
    size = CHUNK if in_chunks else 1
    out = []
    for first in range(0, q.shape[2], size):
        part = slice(first, first + size)
        sums = g[:, :, part].cumsum(2)
        seen = torch.ones(sums.shape[2], sums.shape[2]).tril().bool()
        between = (sums[:, :, :, None] - sums[:, :, None]).masked_fill(~seen[..., None], -torch.inf)
        dots = functools.partial(_dots, k[:, :, part] * (1 - lost), between.exp())
        copy, start, end = cut(state), sums.exp(), (sums[:, :, -1:] - sums).exp()
        exact = writes = v[:, :, part]
        if is_delta:
            triangle = (beta[:, :, part] * dots(k[:, :, part])).tril(-1)
            inverse = cut(torch.linalg.inv(torch.eye(triangle.shape[-1], dtype=dtype) + triangle))
            keys = cut(inverse @ cut(beta[:, :, part] * start * k[:, :, part]))
            exact = cut(inverse @ cut(beta[:, :, part] * v[:, :, part])) - keys @ copy
            writes = cut(exact)
        out.append(
            cut(start * q[:, :, part]) @ copy if decay == "dim" else start * (q[:, :, part] @ copy)
        )
        out[-1] = (out[-1] + cut(dots(q[:, :, part])) @ writes) * DIM**-0.5
        keys, added = (
            (cut(k[:, :, part] * end), exact)
            if decay == "dim"
            else (k[:, :, part], cut(exact * end))
        )
        state = start[:, :, -1, :, None] * state + keys.transpose(-1, -2) @ added
    return torch.cat(out, 2).transpose(1, 2), state


def _dots(k, decays, x):
    decays = decays.expand(*decays.shape[:4], DIM)
    return torch.einsum("bhsk,bhjk,bhsjk->bhsj", x, k, decays)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("family", LAWS)
@pytest.mark.parametrize("in_chunks", [True, False])
def test_correct_kernels_pass_on_the_device(family, in_chunks):
    given = inputs(family)
    out, state = law(family, given, torch.float32, in_chunks)
    report = flashproof.audit_recurrent_on_device(
        out=out.bfloat16(), final_state=state, family=family, **given
    )
    assert report.passed and report.decided_by == "device", report.text
    assert report.text.startswith("PASS: ") and "Judged on cpu, by 32 draws" in report.text


def one_per_cent(out, state, given):
    out[1, :, 1] *= 1.01


def one_element(out, state, given):
    out[0, 70, 1, 3] += 0.05 * out[0, :, 1].abs().max()


def later_state(out, state, given):
    state[0, 1] *= 1.02


def a_bias(out, state, given):
    out[1, :, 0] += 0.1 * out[1, :, 0].std()


def not_a_number(out, state, given):
    out[0, 3, 0, 0] = torch.nan


@pytest.mark.parametrize("fault", [one_per_cent, one_element, later_state, a_bias, not_a_number])
@pytest.mark.parametrize("family", ["simple-gla", "kda"])
def test_what_is_wrong_is_never_passed(family, fault):
    given = inputs(family)
    out, state = law(family, given, torch.float32, in_chunks=True)
    fault(out, state, given)
    report = flashproof.audit_recurrent_on_device(
        out=out.bfloat16(), final_state=state, family=family, **given
    )
    assert report.status == "FAIL" and report.decided_by == "command line"
    assert "on the CPU" in report.text or "went to the CPU" in report.text


def test_only_the_heads_that_are_open_go_to_the_command_line():
    given = inputs("gated-delta")
    out, _ = law("gated-delta", given, torch.float32, in_chunks=True)
    out[1, :, 0] *= 1.01
    report = flashproof.audit_recurrent_on_device(out=out.bfloat16(), family="gated-delta", **given)
    assert report.status == "FAIL" and "1 of 4 heads" in report.text
    assert "in this order: batch 1 head 0." in report.text
    assert report.json["problem"]["batch"] == 1


def test_a_stale_state_is_open():
    """The state before the second chunk decayed twice, which single elements do not show."""
    given = inputs("gated-delta", tokens=128)
    out, _ = law("gated-delta", given, torch.float32, in_chunks=True)
    empty = {**given, "v": given["v"].clone()}
    empty["v"][:, CHUNK:] = 0
    carried, _ = law("gated-delta", empty, torch.float32)
    out[:, CHUNK:] += 0.02 * carried[:, CHUNK:]
    found = judge_recurrence(problem_of("gated-delta", given, out.bfloat16()), 1e-9)
    assert found.open_heads == {0, 1, 2, 3}


@pytest.mark.parametrize("family", ["gla", "kda"])
def test_dots_of_operands_that_are_cut_to_tf32_are_no_fault(family):
    given = inputs(family, tokens=1024, with_state=False)
    cut = 2**-10 / 1.44  # What cutting two operands to tf32 takes of their product on average.
    for lost, is_right in ((cut, True), (8 * cut, False)):
        out, state = law(family, given, torch.float32, in_chunks=True, lost=lost)
        found = judge_recurrence(problem_of(family, given, out.bfloat16(), state), 1e-9)
        assert (not found.open_heads) == is_right


def test_zeros_where_there_must_only_be_zeros_are_no_pass_of_the_device():
    given = inputs("linear", with_state=False)
    given["v"][1, :, 0] = 0
    out, state = law("linear", given, torch.float32, in_chunks=True)
    found = judge_recurrence(problem_of("linear", given, out.bfloat16(), state), 1e-9)
    assert found.open_heads == {HEADS}


def test_a_state_that_is_not_what_the_last_output_reads_is_open(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "DIM", 64)
    given = inputs("simple-gla")
    out, state = law("simple-gla", given, torch.float32, in_chunks=True)
    _, right = law("simple-gla", given)
    size = (state - right).square().mean().sqrt()
    read = given["q"][1, -1, 0, :, None].double() * given["v"][1, -1, 0].double()
    moved = state.clone()
    # Less than its elements err by, each by itself.
    moved[1, 0] += 0.7 * size * read.sign()

    def opened(final_state):
        found = judge_recurrence(problem_of("simple-gla", given, out, final_state), 1e-9)
        return found.open_heads

    assert opened(state) == set() and opened(moved) == {HEADS}
    # No other test sees it.
    monkeypatch.setattr(judging._Judge, "_pairing", lambda *_: None)
    assert opened(moved) == set()


@pytest.mark.parametrize("family", LAWS)
def test_the_radius_holds_what_fp64_rounds(family):
    """Against the same recurrence in NumPy's long double, whose errors are 2^-11 of fp64's."""
    numpy = pytest.importorskip("numpy")
    if numpy.finfo(numpy.longdouble).nmant < 63:
        pytest.skip("long double has no more bits than fp64 here")
    given = inputs(family, torch.float32)
    out, state = law(family, given, torch.float32)
    (run,) = runs_of(problem_of(family, given, out, state), 100)
    found = exact_recurrence(run, LAWS[family][1])
    wide = {
        name: getattr(run, name).numpy().astype(numpy.longdouble)
        for name in ("q", "k", "v", "decay", "beta", "state")
        if getattr(run, name) is not None
    }
    s, (entries, tokens) = wide["state"], wide["q"].shape[:2]
    # Decays are of the exact gates, which have 24 bits.
    if "g" in given:
        g = given["g"].transpose(1, 2).flatten(0, 1).double().numpy().astype(numpy.longdouble)
        wide["decay"] = numpy.exp(g if g.ndim == 3 else g[..., None])
    for t in range(tokens):
        k, w = wide["k"][:, t], wide["v"][:, t]
        s = s * (wide["decay"][:, t][..., None] if "decay" in wide else 1)
        if "beta" in wide:
            w = wide["beta"][:, t, None] * (w - numpy.einsum("ek,ekv->ev", k, s))
        s = s + k[..., None] * w[:, None]
        right = numpy.longdouble(DIM**-0.5) * numpy.einsum("ek,ekv->ev", wide["q"][:, t], s)
        error = numpy.abs(found.out[:, t].numpy() - right)
        assert (error <= found.radius[:, t].numpy()).all()
        assert float(found.radius[:, t].max()) < 1e-9
    columns = numpy.sqrt(((found.state.numpy() - s) ** 2).sum(1))
    assert (columns <= found.state_radius.numpy()).all() and entries == BATCH * HEADS


def test_limits_of_draws_are_the_lemmas():
    """τ (33 / (32 + τ²))^16.5 is the probability, to the power of ν."""
    freedom = torch.tensor([1.0, 5.0, 400.0], dtype=torch.float64)
    square = drawn_limit(1e-14, 32, freedom).square()
    found = freedom * (0.5 * square.log() - 16.5 * ((32 + square) / 33).log())
    assert torch.allclose(found, torch.full_like(found, -32.2361913), atol=1e-6)


@pytest.mark.parametrize("family", ["gated-delta", "gla", "retention"])
def test_no_limit_is_above_the_command_lines(family, monkeypatch):
    """Where the command line tells a limit, that of the device is smaller."""
    given = inputs(family)
    out, state = law(family, given, torch.float32, in_chunks=True)
    elements, groups, projections = [], [], []

    use = judging._Judge._use

    def watch(self, measured, limit, is_element=False):
        caller = sys._getframe(1).f_code.co_name
        if is_element:
            elements.append(limit.unflatten(1, (-1, DIM)))
        else:
            (projections if caller == "_test_projection" else groups).append(limit[:, 0])
        return use(self, measured, limit, is_element)

    monkeypatch.setattr(judging._Judge, "_use", watch)
    short = out.bfloat16()
    judge_recurrence(problem_of(family, given, short, state), 1e-9)
    report = flashproof.audit_recurrent(out=short, final_state=state, family=family, **given)
    of_out, of_state = report.json["quantities"]
    every = torch.cat(elements[:2], 1).unflatten(0, (BATCH, HEADS))
    for test in (of_out["elements"], of_out["spread"]):
        at = test["worst"]["at"]
        assert every[at["batch"], at["head"], at["token"], at["column"]] <= test["worst"]["bound"]
    at = of_state["spread"]["worst"]["at"]
    row = at.get("row", at.get("token"))
    own = elements[2].unflatten(0, (BATCH, HEADS))[at["batch"], at["head"], row, at["column"]]
    assert own <= of_state["spread"]["worst"]["bound"]
    # Sums of squares: two chunks and the heads, then the state's heads.
    for one in of_out["spread"]["results"]:
        i = one["firstRow"] // CHUNK if one["scope"] == "tile" else 2
        root = (one["rows"] * DIM) ** 0.5
        assert float(groups[i][one["head"]]) / root <= one["limit"]
    # Of each chunk scale and what was carried, then scale and bias of the heads.
    right, _ = law(family, given)
    for one in of_out["structure"]:
        head, tile = one["head"], one["firstRow"] // CHUNK
        rows = right[head // HEADS, one["firstRow"] : one["lastRow"] + 1, head % HEADS]
        if one["test"] == "chunk":
            continue
        is_tile = one["scope"] == "tile"
        i = 2 * tile if is_tile else (4 if one["test"] == "scale" else 5)
        square = float(rows.square().sum()) if one["test"] == "scale" else rows.numel()
        assert float(projections[i][head]) / square <= one["threshold"]


def test_layouts_packed_sequences_and_normalisation():
    given = inputs("gated-delta", with_state=False)
    given["k"] = given["k"] * 3
    unit = {
        name: (
            given[name].float() / (given[name].float().square().sum(-1, keepdim=True) + 1e-6).sqrt()
        ).bfloat16()
        for name in ("q", "k")
    }
    out, state = law("gated-delta", {**given, **unit}, torch.float32, in_chunks=True)
    turned = {name: x.transpose(1, 2) for name, x in given.items()}
    report = flashproof.audit_recurrent_on_device(
        out=out.bfloat16().transpose(1, 2), final_state=state.transpose(2, 3),
        family="gated-delta", layout="bhtd", state_layout="vk", normalisation=True, **turned,
    )  # fmt: skip
    assert report.passed and report.decided_by == "device", report.text
    plain = inputs("kda", with_state=False)
    out, state = law("kda", plain, torch.float32, in_chunks=True)
    flat = {name: x.reshape(1, -1, *x.shape[2:]) for name, x in plain.items()}
    packed = {"family": "kda", "cu_seqlens": torch.tensor([0, TOKENS, 2 * TOKENS]), **flat}
    flat_out = out.bfloat16().reshape(1, -1, *out.shape[2:])
    report = flashproof.audit_recurrent_on_device(out=flat_out, final_state=state, **packed)
    assert report.passed and report.decided_by == "device", report.text
    flat_out[0, 150:, 1] *= 1.02
    report = flashproof.audit_recurrent_on_device(out=flat_out, final_state=state, **packed)
    assert report.status == "FAIL" and "1 of 2 heads" in report.text


def test_what_the_device_does_not_judge_goes_to_the_command_line():
    given = inputs("delta", tokens=20, with_state=False)
    out, _ = law("delta", given, torch.float32)
    short = out.bfloat16()
    for more, said in (
        ({"premises": "recurrent"}, "the device judges no premises 'recurrent'"),
        ({"options": ["--seed", "2"]}, "options are those of the command line"),
        ({"dout": short, "dq": short}, "the device judges no gradients"),
    ):
        try:
            text = flashproof.audit_recurrent_on_device(
                out=short, family="delta", **given, **more
            ).text
        except ValueError:
            continue
        assert f"Judged on the CPU: {said}." in text
    with pytest.raises(ValueError, match="beta"):
        flashproof.audit_recurrent_on_device(out=short, family="delta", **{**given, "beta": None})
    with pytest.raises(TypeError, match="takes"):
        flashproof.audit_recurrent_on_device(out=short, family="delta", causal=True, **given)
    with pytest.raises(TypeError, match="q is a list; give a tensor of PyTorch"):
        flashproof.audit_recurrent_on_device(out=short, family="delta", **{**given, "q": [1.0]})


def test_value_heads_share_keys_with_their_neighbours():
    """Two heads of Q and K for four of V; another order of groups is open."""
    many = inputs("gated-delta", with_state=False)
    few = {name: many[name] for name in ("q", "k")}
    wide = {name: torch.cat([many[name], many[name].flip(1)], 2) for name in ("v", "g", "beta")}
    for repeated, decided in (("repeat_interleave", "device"), ("repeat", "command line")):
        every = {
            name: x.repeat_interleave(2, 2)
            if repeated == "repeat_interleave"
            else x.repeat(1, 1, 2, 1)
            for name, x in few.items()
        }
        parts = [
            law(
                "gated-delta",
                {name: x[:, :, i : i + HEADS] for name, x in {**every, **wide}.items()},
                torch.float32,
                True,
            )[0]
            for i in (0, HEADS)
        ]
        out = torch.cat(parts, 2).bfloat16()
        report = flashproof.audit_recurrent_on_device(out=out, family="gated-delta", **few, **wide)
        assert report.decided_by == decided and report.passed == (decided == "device")
