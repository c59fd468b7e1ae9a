"""Functions of attention of one's own, judged whenever they are called."""

import math
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from judged_inputs import normal as draw  # noqa: E402

import flashproof.torch as judging  # noqa: E402
from flashproof.audits import keep_failure  # noqa: E402
from flashproof.request import Request  # noqa: E402
from flashproof.torch import calls  # noqa: E402
from flashproof.torch.sampling import Sampling  # noqa: E402

attend = torch.nn.functional.scaled_dot_product_attention


def qkv(rows=20, keys=20, **given):
    return [draw(2, one, 4, 16, seed=i, **given) for i, one in enumerate((rows, keys, keys))]


def my_flash(q, k, v, softmax_scale=None, is_causal=False, num_warps=4, factor=1.0):
    """[batch, rows, heads, dim]."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = q.float() @ k.float().mT * (softmax_scale or 1 / math.sqrt(q.shape[-1]))
    if is_causal:
        rows, keys = scores.shape[-2:]
        seen = torch.ones(rows, keys, dtype=torch.bool).tril(keys - rows)
        scores = scores.masked_fill(~seen, -math.inf)
    out = scores.softmax(-1) @ v.float() * factor
    return out.transpose(1, 2).to(q.dtype), scores.logsumexp(-1)


def strange(queries, keys, values, look_back):
    return my_flash(queries, keys, values, is_causal=look_back)[0]


KERNEL = {"layout": "bshd", "ignore": ["num_warps", "factor"]}


def causal_by_itself(q, k, v):
    return attend(q, k, v, is_causal=True)


@pytest.mark.parametrize("declared", [{}, {"causal": True}, {"causal": False}])
def test_a_function_that_nothing_calls_causal_may_be_declared_so(declared):
    kernel = judging.Kernel(causal_by_itself, **declared)
    with judging.judged_attention(functions=[kernel], on_fail="report") as judged:
        causal_by_itself(*qkv())
    assert judged.passed == declared.get("causal", False), judged.text
    assert ("Kernel(causal_by_itself, causal=True)" in judged.text) == (declared == {})


def test_a_function_that_no_module_holds_is_said_to_be_unseen():
    held = [causal_by_itself]
    with (
        pytest.warns(
            judging.NotJudgedWarning, match="causal_by_itself: no call was seen; what a c"
        ),
        judging.judged_attention(functions=held) as judged,
    ):
        held[0](*(x.transpose(1, 2) for x in qkv()))
    # What it calls of PyTorch is judged as that.
    assert judged.passed and judged.judged == 1 and "no call was seen" in judged.text


@pytest.mark.parametrize("factor", [1.0, 1.02])
def test_a_function_is_judged_by_the_names_of_its_arguments(factor):
    kernel = judging.Kernel(my_flash, **KERNEL)
    with judging.judged_attention(functions=[kernel], on_fail="report") as judged:
        my_flash(*qkv(), is_causal=True, num_warps=8, factor=factor)
        my_flash(*qkv(keys=30), 0.5, factor=factor)
    assert judged.judged == 2 and judged.passed == (factor == 1), judged.text
    assert all("LSE" in one.report.sentence for one in judged.calls if factor == 1)


def test_a_function_is_named_alone_where_its_names_are_known():
    def plain(q, k, v, scale=None, causal=False):
        return attend(q, k, v, scale=scale, is_causal=causal)

    holder = torch.nn.Module()
    holder.attend = plain
    with judging.judged_attention(functions=[plain]) as judged:
        holder.attend(*(x.transpose(1, 2) for x in qkv()), causal=True)
    # What it calls of PyTorch is part of it.
    assert judged.judged == 1 and holder.attend is plain


def test_arguments_of_other_names_are_mapped_and_defaults_given():
    arguments = {"queries": "q", "keys": "k", "values": "v", "look_back": "causal"}
    kernel = judging.Kernel(strange, arguments=arguments, layout="bshd")
    with judging.judged_attention(functions=[kernel]) as judged:
        strange(*qkv(), look_back=True)
    assert "causal" in judged.calls[0].problem
    causal = judging.judged(
        lambda q, k, v: my_flash(q, k, v, is_causal=True), layout="bshd", causal=True
    )
    causal(*qkv())
    assert causal.passed
    wrong = judging.judged(lambda q, k, v: my_flash(q, k, v, is_causal=True), layout="bshd")
    with pytest.raises(AssertionError, match="FAIL: "):
        wrong(*qkv())


def test_what_is_written_into_an_argument_is_judged():
    def into(out, q, k, v, is_causal):
        out.copy_(my_flash(q, k, v, is_causal=is_causal)[0])

    out = torch.empty_like(qkv()[0])
    own = judging.judged(into, layout="bshd")
    assert own(out, *qkv(), True) is None
    assert own.passed and "causal" in own.calls[0].problem


def test_a_causal_mask_may_begin_at_the_first_key():
    own = judging.judged(
        lambda q, k, v: attend(q, k, v, is_causal=True), causal=True, from_first=True
    )
    q, k, v = (x.transpose(1, 2) for x in qkv(keys=30))
    own(q, k, v)
    assert own.passed
    other = judging.judged(lambda q, k, v: attend(q, k, v, is_causal=True), causal=True)
    with pytest.raises(AssertionError, match="top left"):
        other(q, k, v)


def test_sequences_may_begin_at_the_first_key_each():
    def packed(q, k, v, cu_seqlens_q, cu_seqlens_k):
        made = []
        for i in range(len(cu_seqlens_q) - 1):
            rows, keys = slice(*cu_seqlens_q[i : i + 2]), slice(*cu_seqlens_k[i : i + 2])
            one = (x.transpose(0, 1) for x in (q[rows], k[keys], v[keys]))
            made.append(attend(*one, is_causal=True).transpose(0, 1))
        return torch.cat(made)

    ends = torch.tensor([0, 9, 10, 30]).int(), torch.tensor([0, 14, 27, 60]).int()
    tensors = [draw(rows, 2, 16, seed=i) for i, rows in enumerate((30, 60, 60))]
    own = judging.judged(packed, causal=True, from_first=True)
    own(*tensors, *ends)
    assert own.passed and "mask [1, 1, 20, 33]" in own.calls[0].problem
    other = judging.judged(packed, causal=True, on_fail="report")
    other(*tensors, *ends)
    assert not other.passed and other.judged == 1


class Attends(torch.nn.Module):
    """A module whose method is named as a function to judge."""

    def forward(self, q, k, v, scale=None, dense=True):
        return attend(q, k, v, scale=scale)


def test_methods_of_classes_are_hooked():
    module, inputs = Attends(), [x.transpose(1, 2) for x in qkv()]
    own = Attends.forward
    with judging.judged_attention(functions=[Attends.forward]) as judged:
        module(*inputs)
    assert judged.judged == 1 == len(judged.calls) and Attends.forward is own
    with pytest.raises(ValueError, match="method of one object; give that of its class"):
        judging.Kernel(module.forward)
    # A flag that is set by default is known no better where it is not.
    with judging.judged_attention(functions=[Attends.forward], on_fail="report") as judged:
        module(*inputs, dense=False)
    assert "dense is given" in judged.calls[0].not_judged


def test_packed_tensors_of_another_order_are_not_judged():
    own = judging.judged(lambda qkv: qkv[:, :, :, 0], layout="bshd", on_fail="report")
    own(draw(2, 20, 4, 3, 16))
    assert "qkv has [2, 20, 4, 3, 16], not [..., 3, heads, dim]" in own.calls[0].not_judged


def test_calls_that_are_compiled_are_counted():
    compiled = torch.compile(
        lambda q, k, v: 2 * my_flash(q, k, v)[0], backend="aot_eager", fullgraph=True
    )
    kernel = judging.Kernel(my_flash, **KERNEL)
    with judging.judged_attention(functions=[kernel], on_fail="report") as judged:
        compiled(*qkv())
    assert judged.judged == 0 and judged.compiled >= 1


def test_an_argument_that_is_not_known_leaves_a_call_unjudged():
    kernel = judging.Kernel(my_flash, layout="bshd")
    said = "num_warps is given, which is not known"
    with (
        pytest.warns(judging.NotJudgedWarning, match=said),
        judging.judged_attention(functions=[kernel]) as judged,
    ):
        my_flash(*qkv(), num_warps=8)
        # Its own default is what it may have.
        my_flash(*qkv(), num_warps=4)
    assert judged.judged == 1


@pytest.mark.parametrize(
    "given, said",
    [
        ({"layout": "bsdh"}, "layout is 'bsdh'; give"),
        ({"arguments": {"x": "query"}}, "'query' is no word of a problem; give alibi_slopes"),
        ({"temperature": 1}, "'temperature' is no word of a problem"),
        ({"results": ("lse",)}, "results is .*; give 'out'"),
        ({"lse_base": 10}, "lse_base is 10; give 2"),
    ],
)
def test_a_description_of_nothing_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        judging.Kernel(my_flash, **given)
    with pytest.raises(TypeError, match="function is 3; give one"):
        judging.Kernel(3)


def test_a_decorated_function_raises_at_once():
    @judging.judged(**KERNEL)
    def own(q, k, v, softmax_scale=None, is_causal=False, num_warps=4, factor=1.0):
        """Its own words."""
        return my_flash(q, k, v, softmax_scale, is_causal, num_warps, factor)

    assert own.__doc__ == "Its own words." and own.__name__ == "own"
    made = own(*qkv())
    assert torch.equal(made[0], my_flash(*qkv())[0]) and own.passed and own.judged == 1
    with pytest.raises(AssertionError, match="Again: python -m flashproof audit "):
        own(*qkv(), factor=1.02)
    assert not own.passed


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * 1.02


@pytest.mark.parametrize("is_wrong", [False, True])
def test_gradients_of_a_decorated_method_are_judged_as_they_come(is_wrong):
    class Layer:
        @judging.judged(layout="bshd", results=("out", None))
        def attend(self, q, k, v):
            return my_flash(q, Wrong.apply(k) if is_wrong else k, v)

    leaves = [x.requires_grad_() for x in qkv()]
    out, _ = Layer().attend(*leaves)
    # The output passes as it comes.
    assert Layer.attend.judged == 1 and Layer.attend.passed
    if is_wrong:
        with pytest.raises(AssertionError, match="dK"):
            out.square().sum().backward()
    else:
        out.square().sum().backward()
    assert Layer.attend.passed != is_wrong
    assert set(Layer.attend.calls[0].gradients) == {"dq", "dk", "dv"}


@pytest.mark.parametrize("factor", [1.0, 1.02])
def test_tensors_of_a_gpu_are_judged_where_they_lie(monkeypatch, factor):
    monkeypatch.setattr(calls, "lies_on_device", lambda x: True)
    own = judging.judged(my_flash, on_fail="report", **KERNEL)
    leaves = [x.requires_grad_() for x in qkv(rows=12, dtype=torch.bfloat16)]
    out, _ = own(*leaves, is_causal=True, factor=factor)
    out.float().square().sum().backward()
    assert own.passed == (factor == 1), own.text
    assert factor != 1 or "Judged on cpu" in own.calls[0].report.text
    assert own.calls[0].gradients == ("dq", "dk", "dv")


def damaged_at(places):
    """A step of training whose attention is wrong in the calls at some places."""
    count = iter(range(10**9))

    def step(q, k, v):
        return my_flash(q, k, v, factor=1.02 if next(count) in places else 1.0)[0]

    return step


def test_one_call_of_each_so_many_is_judged_and_a_loop_goes_on(capsys):
    step = damaged_at(range(150, 400))
    kernel = judging.Kernel(step, layout="bshd")
    inputs = qkv(dtype=torch.bfloat16)
    model = torch.nn.Module()
    model.step = step
    with judging.judged_attention(functions=[kernel], every=100) as judged:
        for _ in range(400):
            model.step(*inputs)
    assert (judged.judged, judged.left_out, len(judged.failures)) == (4, 396, 2), judged.text
    # Numbered among all calls, one of each hundred.
    assert [(call.number - 1) // 100 for call in judged.calls] == [0, 1, 2, 3]
    said = capsys.readouterr().err
    # Each failure as it comes, and all of them at the end.
    assert said.count("flashproof:\ncall ") == 2
    assert said.count("flashproof: FAIL: 2 of 4 judged calls of attention fail.") == 1
    counts = (
        "400 seen, 4 judged, 2 passed, 2 failed, 0 accepted as known, 0 not judged, 396 left out"
    )
    assert f"Calls: {counts}; judging took" in said and "396 calls, left out by every" in said
    command = next(line for line in said.splitlines() if line.startswith("Again: "))
    again = subprocess.run([sys.executable, *command.split()[2:]], capture_output=True)
    assert again.returncode == 1 and again.stdout.startswith(b"FAIL: ")


def test_a_loop_that_is_interrupted_tells_what_was_found(capsys):
    inputs = [x.transpose(1, 2) for x in qkv()]
    with pytest.raises(KeyboardInterrupt), judging.judged_attention(every=5):
        for _ in range(7):
            attend(*inputs)
        raise KeyboardInterrupt
    said = capsys.readouterr().err
    assert said.startswith("flashproof: PASS: ") and "Calls: 7 seen, " in said


def test_a_loop_raises_where_it_is_asked_to_and_judges_by_samples_of_rows():
    own = judging.judged(damaged_at({0}), every=10, on_fail="raise", layout="bshd")
    with pytest.raises(AssertionError, match="FAIL: "):
        own(*qkv())
    for _ in range(30):
        own(*qkv())
    sampled = judging.judged(my_flash, settings={"rows": 16}, **KERNEL)
    sampled(*qkv())
    assert "in 16 sampled rows of 160" in sampled.calls[0].report.sentence
    assert "rounding explains in a sample of 16 rows of each at most." in sampled.text


def test_whatever_becomes_of_the_judge_a_loop_goes_on(monkeypatch):
    def broken(*args):
        raise MemoryError("no room")

    monkeypatch.setattr(calls, "verdict_on", broken)
    own = judging.judged(my_flash, every=2, **KERNEL)
    for _ in range(6):
        own(*qkv())
    assert own.judged == 0 and "judging it failed: MemoryError: no room" in own.text
    assert own.text.startswith("NOT JUDGED: ")


def test_no_more_than_a_few_problems_are_kept_of_a_loop(kept):
    own = judging.judged(damaged_at(range(12)), every=1, layout="bshd")
    for _ in range(12):
        own(*qkv())
    assert len(own.failures) == 12 and len(list(kept.iterdir())) == 8
    assert own.text.count("Again: ") == 8


def test_a_file_that_another_process_has_just_begun_is_left_alone(kept, monkeypatch):
    found = Request._unused

    def raced(self, folder, suffix, call=None):
        path = found(self, folder, suffix, call)
        if not any(folder.iterdir()):
            path.write_text("another process's")
        return path

    monkeypatch.setattr(Request, "_unused", raced)
    x = draw(1, 1, 4, 8)
    command = keep_failure({"q": x, "k": x, "v": x, "out": x}, {})
    first, second = sorted(kept.iterdir())
    assert first.read_text() == "another process's" and str(second) in command


def test_calls_that_wait_for_a_backward_pass_do_not_pile_up():
    own = qkv()
    leaf = own[0].requires_grad_()
    with judging.judged_attention(every=1) as judged:
        for _ in range(20):
            attend(*(x.transpose(1, 2) for x in (leaf, *own[1:])))
        assert len(judged._waiting) <= 16
    assert judged.judged == 20 and judged.passed
    assert "17 more calls, gradients: no backward pass came through" in judged.text


def test_a_draw_of_each_block_meets_every_layer():
    sampling = Sampling(every=8, seed=3)
    chosen = []
    for i in range(8 * 200):
        if sampling.wants():
            sampling.taken += 1
            chosen.append(i)
    assert chosen[0] == 0 and [i // 8 for i in chosen] == list(range(200))
    assert {i % 8 for i in chosen} == set(range(8))
    # Where no call can be judged, not all are tried.
    sampling = Sampling(every=10)
    assert sum(sampling.wants() for _ in range(1000)) == 10 + 99
    for wrong in ({"every": 0}, {"every": 1.5}, {"every": 2, "sample": 0.5}):
        with pytest.raises(ValueError, match="give"):
            Sampling(**wrong)


def narrow_sums():
    """A call whose dV PyTorch adds up in bf16."""
    q, k, v, dout = (draw(1, 2, 64, 32, seed=i, dtype=torch.bfloat16) for i in range(4))
    out = attend(*(x.requires_grad_() for x in (q, k, v)), is_causal=True)
    out.backward(dout)


def test_a_known_weakness_is_told_and_accepted_by_its_name():
    with judging.judged_attention(on_fail="report") as judged:
        narrow_sums()
    assert not judged.passed
    assert "known=['torch-cpu-narrow-sums'] accepts it" in judged.text
    with judging.judged_attention(known=["torch-cpu-narrow-sums"]) as judged:
        narrow_sums()
    assert judged.passed and judged.text.startswith("ACCEPTED: the call of attention")
    with judging.judged_attention(known=["torch-cpu-narrow-sums"]) as judged:
        narrow_sums()
        attend(*qkv())
    assert judged.passed and len(judged.accepted) == 1
    assert "but for a known weakness of 1" in judged.text.splitlines()[0]
    assert "Accepted by known:" in judged.text and "1 accepted as known" in judged.summary
    with pytest.raises(ValueError, match="known has 'torch'; it takes torch-cpu-narrow-sums"):
        judging.judged_attention(known=["torch"])


def test_a_known_weakness_excuses_nothing_else():
    class Damaged(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            given = dict(kwargs or {})
            if func is attend:
                given["query"] = Wrong.apply(given["query"])
            return func(*args, **given)

    context = judging.judged_attention(known=["torch-cpu-narrow-sums"], on_fail="report")
    with Damaged(), context as judged:
        narrow_sums()
    assert not judged.passed and not judged.accepted
    own = judging.judged(
        lambda q, k, v: attend(q, k, v, is_causal=True),
        causal=True,
        known=["torch-cpu-narrow-sums"],
        on_fail="report",
    )
    q, k, v, dout = (draw(1, 2, 64, 32, seed=i, dtype=torch.bfloat16) for i in range(4))
    own(*(x.requires_grad_() for x in (q, k, v))).backward(dout)
    # Another function's narrow sums are its own.
    assert not own.passed and not own.accepted
