"""Kernels of recurrences of PyTorch, judged call by call with their gradients."""

import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

from judged_inputs import normal as draw  # noqa: E402
from judged_inputs import stand_ins  # noqa: E402

import flashproof  # noqa: E402

BATCH, TOKENS, HEADS, DIM = 2, 24, 2, 8
WRITES = {
    "chunk_gla": ("gla", {"g": "dim"}),
    "fused_recurrent_gla": ("gla", {"gk": "dim"}),
    "chunk_simple_gla": ("simple_gla", {"g": "head"}),
    "fused_recurrent_simple_gla": ("simple_gla", {"g_gamma": "fixed"}),
    "chunk_linear_attn": ("linear_attn", {"normalize": False}),
    "fused_recurrent_linear_attn": ("linear_attn", {}),
    "chunk_retention": ("retention", {}),
    "fused_recurrent_retention": ("retention", {}),
    "chunk_delta_rule": ("delta_rule", {"beta": "beta"}),
    "fused_recurrent_delta_rule": ("delta_rule", {"beta": "beta"}),
    "chunk_gated_delta_rule": ("gated_delta_rule", {"g": "head", "beta": "beta"}),
    "fused_recurrent_gated_delta_rule": ("gated_delta_rule", {"gk": "dim", "beta": "beta"}),
}


@pytest.fixture
def fla(monkeypatch):
    """The packages that stand in for fla and mamba_ssm, and nothing of them afterwards."""
    packages = ("fla", "mamba_ssm")
    with stand_ins(monkeypatch, packages):
        import fla.layer
        import fla.ops
        from fla.ops.recurrence import Faults

        Faults.output = Faults.gradient = 1.0
        yield fla


def problem(beside=(), dtype=torch.float32, grad=False):
    """Q, K and V, and what a function has besides, leaves where gradients are asked for."""
    q, k, v = (draw(BATCH, TOKENS, HEADS, DIM, seed=i) for i in range(3))
    found = {"q": q, "k": torch.nn.functional.normalize(k, dim=-1), "v": v}
    rows = (BATCH, TOKENS, HEADS)
    sizes = {"head": rows, "dim": (*rows, DIM), "fixed": (HEADS,)}
    for name, kind in dict(beside).items():
        if kind in sizes:
            found[name] = torch.nn.functional.logsigmoid(draw(*sizes[kind], seed=3))
        else:
            found[name] = draw(*rows, seed=4).sigmoid() if kind == "beta" else kind
    short = {"q", "k", "v", "beta"}
    found = {name: x.to(dtype) if name in short else x for name, x in found.items()}
    if grad:
        for one in found.values():
            one.requires_grad_()
    return found


def gated(**settings):
    return problem({"g": "head", "beta": "beta"}, **settings)


@pytest.mark.parametrize("name", WRITES)
def test_each_function_of_fla_is_judged_where_its_module_has_it(fla, name):
    module, beside = WRITES[name]
    given = problem(beside, torch.bfloat16)
    with flashproof.judged_recurrent() as judged:
        out, state = getattr(sys.modules[f"fla.ops.{module}"], name)(
            **given, output_final_state=True
        )
    (call,) = judged.calls
    assert judged.passed and call.report.passed, judged.text
    assert call.problem.startswith(f"{name}, ") and "test_judged_recurrences.py" in str(call.place)
    assert [one["name"] for one in call.report.json["quantities"]] == ["out", "final_state"]
    assert f"fla.ops.{module}.{name}" in judged.functions


@pytest.mark.parametrize("name", WRITES)
def test_a_wrong_output_of_each_function_fails(fla, name, kept):
    module, beside = WRITES[name]
    sys.modules["fla.ops.recurrence"].Faults.output = 1.02
    with pytest.raises(AssertionError, match=f"(?s)^FAIL: 1 of 1 .*{name}.*Again: python -m"):  # noqa: SIM117
        with flashproof.judged_recurrent():
            getattr(sys.modules[f"fla.ops.{module}"], name)(**problem(beside, torch.bfloat16))
    assert len(list(kept.iterdir())) == 1


def test_functions_are_found_where_they_were_imported_and_put_back(fla):
    own = fla.ops.chunk_gated_delta_rule
    layers = torch.nn.ModuleList([fla.layer.Layer(), fla.layer.Layer(own)])
    with flashproof.judged_recurrent() as judged:
        assert fla.ops.gated_delta_rule.chunk_gdn is not own
        for layer in layers:
            layer(**gated())
        late = fla.layer.Layer(fla.ops.chunk_gated_delta_rule)
    assert judged.judged == 2 and judged.passed
    assert judged.calls[0].place.module.startswith("Layer")
    places = [fla.layer, fla.ops, fla.ops.gated_delta_rule]
    assert all(one.chunk_gated_delta_rule is own for one in places)
    assert layers[1].own is own and late.own is own
    layers[0](**gated())
    assert judged.judged == 2


def test_a_function_that_calls_another_is_one_call(fla):
    with flashproof.judged_recurrent() as judged:
        fla.ops.chunk_retention(**problem())
    assert [one.problem.partition(",")[0] for one in judged.calls] == ["chunk_retention"]


def test_packed_sequences_first_states_and_settings_are_read(fla):
    given = {name: one.reshape(1, -1, *one.shape[2:]) for name, one in gated().items()}
    given["k"] = given["k"] * 3
    with flashproof.judged_recurrent() as judged:
        fla.ops.chunk_gated_delta_rule(
            **given,
            scale=0.5,
            initial_state=draw(3, HEADS, DIM, DIM, seed=5),
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
            cu_seqlens=torch.tensor([0, 7, 40, BATCH * TOKENS]),
            chunk_size=32,
        )
    assert judged.passed, judged.text
    assert "chunks of 32 tokens" in judged.calls[0].report.text
    assert "3 sequences" in judged.calls[0].report.text


def test_what_cannot_be_judged_is_said_in_a_line_and_is_no_pass(fla):
    given = problem()
    with pytest.warns(flashproof.torch.NotJudgedWarning) as caught:  # noqa: SIM117
        with flashproof.judged_recurrent(on_fail="report") as judged:
            fla.ops.chunk_linear_attn(**given)
            fla.ops.fused_recurrent_gla(**given, reverse=True)
            fla.ops.fused_recurrent_simple_gla(**given, g=gated()["g"], g_gamma=torch.zeros(HEADS))
            fla.ops.fused_recurrent_delta_rule(**given, beta=torch.ones(1, TOKENS, HEADS))
    said = [one.not_judged for one in judged.calls]
    assert said[0].startswith("normalize is given to a judged kernel, and may change what it")
    assert said[1].startswith("reverse is given")
    assert said[2] == "g and g_gamma are given to a judged kernel; give one of them"
    assert said[3].startswith("beta") and all("\n" not in one for one in said)
    assert not judged.passed and judged.judged == 0 and judged.text.startswith("NOT JUDGED: ")
    assert len(str(caught[0].message).splitlines()) == 5
    with pytest.raises(AssertionError, match="NOT JUDGED: no call of flash-linear-attention"):  # noqa: SIM117
        with flashproof.judged_recurrent():
            pass


def test_gradients_are_judged_and_stay_as_they_are(fla):
    results = []
    for judged in (flashproof.judged_recurrent(), None):
        given = gated(grad=True)
        first = draw(BATCH, HEADS, DIM, DIM, seed=6).requires_grad_()
        layer = fla.layer.Layer()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if judged is not None:
                judged.__enter__()
            out, state = layer(**given, initial_state=first, output_final_state=True)
            (out.square().sum() + state.sum()).backward()
            if judged is not None:
                judged.__exit__(None, None, None)
                (call,) = judged.calls
        results.append([one.grad for one in (*given.values(), first)])
    assert all(torch.equal(one, other) for one, other in zip(*results))
    assert call.gradient_report.passed and call.gradients_not_judged is None
    assert sorted(call.gradients) == ["dbeta", "dg", "dinitial_state", "dk", "dq", "dv"]


def test_a_wrong_gradient_fails_although_the_output_passes(fla, kept):
    fla.ops.recurrence.Faults.gradient = 1.02
    with flashproof.judged_recurrent(on_fail="report") as judged:
        out, _ = fla.ops.chunk_gated_delta_rule(**gated(grad=True))
        out.square().sum().backward()
    (call,) = judged.calls
    assert call.report.passed and not judged.passed
    assert {one.quantity for one in call.gradient_report.findings} == {"dk"}
    assert judged.text.startswith("FAIL: 1 of 1 judged calls") and "Again: " in judged.text


def test_a_pass_through_the_final_state_alone_is_judged(fla):
    with flashproof.judged_recurrent() as judged:
        given = gated(grad=True)
        _, state = fla.ops.chunk_gated_delta_rule(**given, output_final_state=True)
        state.square().sum().backward()
    (call,) = judged.calls
    assert judged.passed and "dk" in call.gradients
    assert call.gradients_not_judged is None or "dq" in call.gradients_not_judged


def test_a_second_pass_and_none_are_told(fla):
    with flashproof.judged_recurrent() as judged:
        given = gated(grad=True)
        out, state = fla.ops.chunk_gated_delta_rule(**given, output_final_state=True)
        out.sum().backward(retain_graph=True)
        # Its gradients are of other ones of the outputs, and the first pass is what is judged.
        (3 * state.sum()).backward()
        fla.ops.chunk_gated_delta_rule(**given)
        one = fla.ops.chunk_gated_delta_rule(**given)[0]
        torch.autograd.grad(one.sum(), [given["q"]])
    first, second, third = judged.calls
    assert judged.passed, judged.text
    assert first.gradients and first.gradient_report.passed
    assert first.gradients_not_judged == "backward ran 2 times, of which the first is judged"
    assert second.gradients_not_judged == "no backward pass came through"
    assert third.gradients == ("dq",) and "dk: backward gave none" in third.gradients_not_judged


def test_nothing_of_a_call_outlives_its_graph(fla):
    import gc
    import weakref

    with flashproof.judged_recurrent() as judged:
        out, _ = fla.ops.chunk_gated_delta_rule(**gated(grad=True))
        mark = lambda grads: None  # noqa: E731
        out.grad_fn.next_functions[0][0].register_prehook(mark)
        graph = weakref.ref(mark)
        del out, mark
        gc.collect()
        assert graph() is None
    assert judged.passed


def test_a_wrapped_function_judges_gradients_as_the_pass_ends(fla, kept):
    function = fla.ops.chunk_gated_delta_rule
    judged = flashproof.judged_recurrent(function, family="gated-delta")
    given = gated(grad=True)
    judged(**given)[0].square().sum().backward()
    names = [[one["name"] for one in report.json["quantities"]] for report in judged.reports]
    assert judged.passed and names == [["out"], ["dq", "dk", "dv", "dg", "dbeta"]]
    right = [one.grad for one in given.values()]
    plain = gated(grad=True)
    function(**plain)[0].square().sum().backward()
    assert all(torch.equal(one, other.grad) for one, other in zip(right, plain.values()))
    fla.ops.recurrence.Faults.gradient = 1.02
    out, _ = judged(**gated(grad=True))
    with pytest.raises(AssertionError, match="(?s)^FAIL: .*dK.*Again: "):
        out.square().sum().backward()
    assert len(list(kept.iterdir())) == 1


@pytest.mark.parametrize("name", ["chunk_simple_gla", "fused_recurrent_simple_gla"])
def test_tensors_on_a_gpu_are_judged_there(fla, monkeypatch, kept, name):
    """As if they were: the CPU is the device."""
    from flashproof.recurrent import read_call
    from flashproof.torch import judged_recurrences

    monkeypatch.setattr(judged_recurrences, "lies_on_device", lambda _: True)
    monkeypatch.setattr(read_call, "_copied", lambda value, name: value.detach().clone())
    module, beside = WRITES[name]
    given = problem(beside, torch.bfloat16)
    functions = sys.modules[f"fla.ops.{module}"]
    with flashproof.judged_recurrent() as judged:
        getattr(functions, name)(**given, output_final_state=True)
    (call,) = judged.calls
    assert call.report.decided_by == "device" and "bfloat16 q [2, 24, 2, 8]" in call.problem
    fla.ops.recurrence.Faults.output = 1.02
    with flashproof.judged_recurrent(on_fail="report") as judged:
        getattr(functions, name)(**given)
    assert judged.failures and judged.failures[0].report.status == "FAIL"
    assert "Again: python -m flashproof audit " in judged.text and len(list(kept.iterdir())) == 1


def test_calls_can_be_left_out(fla):
    with flashproof.judged_recurrent(most_calls=1, false_alarm_rate=1e-6) as judged:
        for _ in range(3):
            fla.ops.chunk_gated_delta_rule(**gated())
    assert judged.judged == 1 and judged.left_out == 2
    assert "2 calls, left out by most_calls and sample" in judged.text


def test_arguments_that_are_none_are_told():
    for wrong, said in (
        ({"family": "delta"}, "family is 'delta' without a function; give the function to judge"),
        ({"on_fail": "warn"}, "on_fail is 'warn'; give 'raise' or 'report'"),
    ):
        with pytest.raises(ValueError, match=said):
            flashproof.judged_recurrent(**wrong)
    with pytest.raises(ValueError, match="family is not given; name that of the function"):
        flashproof.judged_recurrent(len)
    with pytest.raises(TypeError, match="takes no most_calls"):
        flashproof.judged_recurrent(len, family="delta", most_calls=1)


def test_no_package_to_judge_is_told(monkeypatch):
    for name in list(sys.modules):
        if name.partition(".")[0] in ("fla", "mamba_ssm"):
            monkeypatch.delitem(sys.modules, name)
    for name in ("fla", "mamba_ssm"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match="fla.*; give the function to judge, and its family"):
        flashproof.judged_recurrent()


def test_gates_that_a_kernel_makes_are_judged_by_what_they_are_made_of(fla):
    made = {"A_log": draw(HEADS, seed=7), "dt_bias": draw(HEADS, seed=8)}
    flags = {"use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True}
    given = problem({"g": "head", "beta": "beta"}, grad=True)
    raw = {**given, "g": draw(BATCH, TOKENS, HEADS, seed=9), "beta": draw(BATCH, TOKENS, HEADS)}
    with flashproof.judged_recurrent() as judged:
        out, _ = fla.ops.fused_recurrent_gated_delta_rule(**raw, **made, **flags)
        out.sum().backward()
    (call,) = judged.calls
    assert "softplus(a + dt_bias)" in " ".join(call.report.text.split())
    assert call.gradients == () and "gates or write strengths" in call.gradients_not_judged
    fla.ops.gated_delta_rule.DROPS_BIAS = True
    with flashproof.judged_recurrent(on_fail="report") as judged:
        fla.ops.fused_recurrent_gated_delta_rule(**raw, **made, **flags)
    assert "dt_bias is left out" in judged.text
    own = {"q": raw["q"], "k": raw["k"], "v": raw["v"], "a": raw["g"], "b": raw["beta"], **made}

    def sigmoid_gating(A_log, a, dt_bias, q, k, v, b, scale=None):
        names = {"g": a, "beta": b, "A_log": A_log, "dt_bias": dt_bias}
        return fla.ops.fused_recurrent_gated_delta_rule(q, k, v, **names, **flags)

    judged = flashproof.judged_recurrent(sigmoid_gating, family="gated-delta", on_fail="report")
    judged(**own)
    assert [one.status for one in judged.reports] == ["FAIL"]
    fla.ops.gated_delta_rule.DROPS_BIAS = False
    judged(**own)
    assert [one.status for one in judged.reports] == ["FAIL", "PASS"]


def mamba(groups=1, batch=1, grad=False):
    draws = {
        "x": draw(batch, TOKENS, HEADS, DIM),
        "dt": draw(batch, TOKENS, HEADS, seed=1),
        "A": -draw(HEADS, seed=2).exp(),
        "B": draw(batch, TOKENS, groups, DIM, seed=3),
        "C": draw(batch, TOKENS, groups, DIM, seed=4),
        "D": draw(HEADS, seed=5),
        "dt_bias": draw(HEADS, seed=6),
    }
    return {name: one.requires_grad_(grad) for name, one in draws.items()}


def test_the_chunked_scan_of_mamba_2_is_judged_with_its_gradients(fla):
    from mamba_ssm.ops.triton import ssd_combined

    first = draw(1, HEADS, DIM, DIM, seed=7)
    with flashproof.judged_recurrent() as judged:
        out, state = ssd_combined.mamba_chunk_scan_combined(
            **mamba(grad=True),
            chunk_size=16,
            initial_states=first,
            dt_softplus=True,
            return_final_states=True,
        )
        (out.square().sum() + state.sum()).backward()
        gate = draw(2, TOKENS, HEADS, DIM, seed=8)
        ssd_combined.mamba_chunk_scan_combined(**mamba(batch=2), z=gate, chunk_size=16)
    one, other = judged.calls
    assert judged.passed, judged.text
    assert sorted(one.gradients) == ["dA", "dB", "dC", "dD", "ddt", "ddt_bias", "dx"]
    assert [x["name"] for x in one.report.json["quantities"]] == ["out", "final_states"]
    assert other.report.passed


def test_a_step_of_mamba_2_is_judged_with_the_state_that_it_leaves(fla):
    from mamba_ssm.ops.triton import selective_state_update as steps

    token = {name: x[:, 0] if x.ndim > 1 else x for name, x in mamba(batch=2).items()}
    tied = {
        "dt": token["dt"][..., None].expand(2, HEADS, DIM),
        "A": token["A"][:, None, None].expand(HEADS, DIM, DIM),
        "D": token["D"][:, None].expand(HEADS, DIM),
        "dt_bias": token["dt_bias"][:, None].expand(HEADS, DIM),
    }
    state = draw(2, HEADS, DIM, DIM, seed=7)
    with flashproof.judged_recurrent() as judged:
        steps.selective_state_update(state, **{**token, **tied}, dt_softplus=True)
    (call,) = judged.calls
    assert judged.passed, judged.text
    assert [x["name"] for x in call.report.json["quantities"]] == ["out", "final_states"]
    loose = {**token, **tied, "dt": draw(2, HEADS, DIM, seed=9)}
    with pytest.warns(flashproof.torch.NotJudgedWarning):  # noqa: SIM117
        with flashproof.judged_recurrent(on_fail="report") as judged:
            steps.selective_state_update(state, **loose, dt_softplus=True)
    assert judged.calls[0].not_judged.startswith("dt differs within a head, which is Mamba-1's")


def test_one_call_of_each_so_many_is_judged_and_a_loop_goes_on(fla, capsys, kept):
    with flashproof.judged_recurrent(every=10) as judged:
        for step in range(40):
            fla.ops.recurrence.Faults.output = 1.0 if step < 10 else 1.02
            fla.ops.chunk_gated_delta_rule(**gated())
    assert (judged.judged, judged.left_out, len(judged.failures)) == (4, 36, 3), judged.text
    said = capsys.readouterr().err
    # Each failure as it comes, and all of them at the end, with files that are numbered as the calls.
    assert said.count("flashproof:\ncall ") == 3
    assert said.count("flashproof: FAIL: 3 of 4 judged calls of recurrences fail.") == 1
    assert "Calls: 40 seen, 4 judged, 1 passed, 3 failed, 0 accepted as known, " in judged.summary
    assert "s of it what failed" in judged.summary and judged.summary in said
    names = sorted(int(path.stem.rpartition("-call-")[2]) for path in kept.iterdir())
    assert names == [one.number for one in judged.failures]
    assert [(number - 1) // 10 for number in names] == [1, 2, 3]


def test_gradients_of_a_loop_that_fail_are_told_as_they_come(fla, capsys):
    fla.ops.recurrence.Faults.gradient = 1.02
    with flashproof.judged_recurrent(every=1) as judged:
        out, _ = fla.ops.chunk_gated_delta_rule(**gated(grad=True))
        assert capsys.readouterr().err == ""
        out.square().sum().backward()
        assert "flashproof:\ncall 1, " in capsys.readouterr().err
    assert judged.calls[0].report.passed and not judged.passed


def test_a_sample_of_the_tokens_is_said_to_be_one(fla):
    with flashproof.judged_recurrent(rows=8, seed=3) as judged:
        fla.ops.chunk_gated_delta_rule(**gated())
    assert judged.passed and "sampled" in judged.calls[0].report.sentence
    assert "in a sample of 8 rows of each at most." in judged.text


def test_whatever_becomes_of_the_judge_a_loop_goes_on(fla, monkeypatch):
    from flashproof.torch import judged_recurrences

    def broken(*args):
        raise MemoryError("no room")

    monkeypatch.setattr(judged_recurrences, "recurrent_verdict_on", broken)
    with flashproof.judged_recurrent(every=2) as judged:
        for _ in range(6):
            fla.ops.chunk_gated_delta_rule(**gated())
    assert judged.judged == 0 and "judging it failed: MemoryError: no room" in judged.text
    with pytest.raises(MemoryError), flashproof.judged_recurrent():
        fla.ops.chunk_gated_delta_rule(**gated())


def test_weaknesses_are_accepted_by_known_names_alone():
    with pytest.raises(ValueError, match=r"known has 'none'; it takes torch-cpu-narrow-sums"):
        flashproof.judged_recurrent(known=["none"])
