"""PyTorch's attention, judged call by call."""

import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

from judged_inputs import normal  # noqa: E402

import flashproof  # noqa: E402
import flashproof.torch as judging  # noqa: E402
from flashproof.torch import calls  # noqa: E402

attend = torch.nn.functional.scaled_dot_product_attention


def tensors(q=(2, 4, 20, 16), k=(2, 4, 30, 16), dtype=torch.float32):
    return normal(*q, dtype=dtype), normal(*k, seed=1, dtype=dtype), normal(*k, seed=2, dtype=dtype)


class Damaged(torch.overrides.TorchFunctionMode):
    """A PyTorch whose attention is another function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is attend:
            return self.function(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def two_per_cent_more(*args, **settings):
    return attend(*args, **settings) * 1.02


SEEN = torch.rand(20, 30, generator=torch.Generator().manual_seed(3)) < 0.7
ADDED = normal(4, 20, 30, seed=4)
CASES = {
    "plain": (tensors(), (), {}),
    "bf16": (tensors(dtype=torch.bfloat16), (), {}),
    "mask of all heads": (tensors(), (SEEN,), {}),
    "mask of the batch": (tensors(), (), {"attn_mask": SEEN[:1].expand(2, 1, 1, 30)}),
    "additive mask": (tensors(), (), {"attn_mask": ADDED}),
    "additive mask of infinities": (tensors(), (torch.where(SEEN, 0, -torch.inf),), {}),
    "additive mask of the least number": (tensors(), (torch.where(SEEN, 0, -3.4e38),), {}),
    "causal": (tensors(k=(2, 4, 20, 16)), (None, 0.0, True), {}),
    "causal, fewer queries": (tensors(), (), {"is_causal": True}),
    "causal, more queries": (tensors(q=(2, 4, 40, 16)), (), {"is_causal": True}),
    "scale": (tensors(), (), {"scale": 0.5}),
    "grouped": (tensors(q=(2, 8, 20, 16), k=(2, 2, 30, 16)), (), {"enable_gqa": True}),
    "one head of K and V": (tensors(k=(2, 1, 30, 16)), (), {}),
    "one K and V of the batch": (tensors(k=(1, 4, 30, 16)), (), {}),
    "no batch": (tensors((4, 20, 16), (4, 30, 16)), (SEEN,), {}),
    "one head": (tensors((20, 16), (30, 16)), (SEEN,), {}),
    "two axes of the batch": (tensors((2, 3, 2, 9, 16), (2, 1, 2, 11, 16)), (), {}),
}


@pytest.mark.parametrize("damage", [None, two_per_cent_more], ids=["right", "damaged"])
@pytest.mark.parametrize("case", list(CASES))
def test_a_call_is_judged_as_what_it_asks_for(case, damage):
    qkv, args, settings = CASES[case]
    with Damaged(damage or attend), judging.judged_attention(on_fail="report") as judged:
        out = attend(*qkv, *args, **settings)
    assert torch.equal(out, (damage or attend)(*qkv, *args, **settings))
    assert judged.judged == 1, judged.text
    assert judged.passed == (damage is None), judged.text


@pytest.mark.parametrize("q", [(2, 4, 20, 16), (2, 4, 40, 16)])
def test_a_causal_mask_begins_at_the_first_key(q):
    def aligned_to_the_end(query, key, value, is_causal):
        rows, columns = query.shape[-2], key.shape[-2]
        mask = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)
        return attend(query, key, value, attn_mask=mask).nan_to_num()

    context = judging.judged_attention(on_fail="report")
    with Damaged(aligned_to_the_end), context as judged:
        attend(*tensors(q=q), is_causal=True)
    assert judged.judged == 1 and not judged.passed


class Attention(torch.nn.Module):
    def __init__(self, dim=32, heads=2):
        super().__init__()
        self.project, self.heads = torch.nn.Linear(dim, 3 * dim), heads

    def forward(self, x):
        batch, rows, dim = x.shape
        q, k, v = self.project(x).view(batch, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return attend(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, rows, dim)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = torch.nn.ModuleList([Attention(), Attention()])

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


def test_every_call_of_a_model_is_judged_with_its_gradients():
    model, x = Model(), normal(2, 20, 32)
    model(x).square().sum().backward()
    unseen = [one.grad.clone() for one in model.parameters()]
    model.zero_grad()
    with judging.judged_attention() as judged:
        model(x).square().sum().backward()
    # Judging changes nothing of what is judged.
    assert all(torch.equal(a, one.grad) for a, one in zip(unseen, model.parameters()))
    assert [set(one.gradients) for one in judged.calls] == [{"dq", "dk", "dv"}] * 2
    assert [one.place.module for one in judged.calls] == [
        "blocks.0 (Attention)",
        "blocks.1 (Attention)",
    ]
    assert "PASS: 2 calls of attention, with 6 gradients" in judged.text
    attend(*tensors())
    assert len(judged.calls) == 2


def test_failures_are_listed_with_their_places_and_commands(kept):
    with (
        pytest.raises(AssertionError) as caught,
        Damaged(two_per_cent_more),
        judging.judged_attention(),
        torch.no_grad(),
    ):
        Model()(normal(2, 20, 32))
    text = str(caught.value)
    assert text.startswith("FAIL: 2 of 2 judged calls of attention fail.")
    assert "call 2, blocks.1 (Attention), " in text and "test_torch.py:" in text
    commands = [line[7:] for line in text.splitlines() if line.startswith("Again: ")]
    # A file is numbered as its call.
    files = sorted(path.name for path in kept.iterdir())
    assert [name.rpartition("-call-")[2] for name in files] == ["1.safetensors", "2.safetensors"]
    assert [name in command for name, command in zip(files, commands)] == [True, True]
    again = subprocess.run([sys.executable, *commands[1].split()[1:]], capture_output=True)
    assert again.returncode == 1 and again.stdout.startswith(b"FAIL: ")


def test_a_large_call_fails_by_a_sample_with_its_cause_and_else_as_a_whole(kept):
    q, k, v = (normal(1, 8, 256, 16, seed=i, dtype=torch.bfloat16) for i in range(3))

    def judge(out):
        with pytest.raises(AssertionError) as caught:
            flashproof.assert_attention(q, k, v, out)
        return str(caught.value)

    sampled = judge(two_per_cent_more(q, k, v))
    assert "too large: row sum or final scale (judged: 256 sampled rows" in " ".join(
        sampled.split()
    )
    assert "the command below judges all of them" in sampled
    words = sampled.rpartition("Again: ")[2].split()
    assert "--rows" not in words and "--false-alarm-rate" not in words
    again = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
    assert again.returncode == 1 and "sampled" not in again.stdout
    # A sample has few of one row, and an error that no cause explains is told of the whole.
    out = attend(q, k, v)
    out[0, 3, 77] = out[0, 3, 78]
    assert "sampled" not in judge(out)


class WrongBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * 1.02


@pytest.mark.parametrize("wrong", ["query", "key", "value", "attn_mask"])
def test_a_gradient_that_is_wrong_is_found_by_name(wrong):
    def attention(query, key, value, attn_mask):
        given = {"query": query, "key": key, "value": value, "attn_mask": attn_mask}
        given[wrong] = WrongBackward.apply(given[wrong])
        return attend(**given)

    leaves = [one.requires_grad_() for one in (*tensors(), normal(1, 4, 20, 30, seed=5))]
    with Damaged(attention), judging.judged_attention(on_fail="report") as judged:
        attend(*leaves).square().sum().backward()
    (call,) = judged.calls
    assert set(call.gradients) == {"dq", "dk", "dv", "dbias"}
    due = {"query": "dq", "key": "dk", "value": "dv", "attn_mask": "dbias"}[wrong]
    assert {one.quantity for one in call.report.findings} == {due}


def test_gradients_are_those_of_the_call_alone():
    x = normal(1, 2, 20, 16).requires_grad_()
    with judging.judged_attention() as judged:
        # One tensor is Q, K and V of two calls, and used besides.
        out = attend(x, x, x) + attend(x, x, x, scale=0.1) + x
        (out * x).sum().backward()
    assert judged.passed and all(len(one.gradients) == 3 for one in judged.calls)


def test_gradients_that_a_call_does_not_give_are_said():
    q, k, v = tensors(k=(1, 4, 30, 16))
    with judging.judged_attention() as judged:
        attend(q.requires_grad_(), k.requires_grad_(), v).sum().backward()
        attend(q, k, v)
        out = attend(q, k, v)
        out.sum().backward(retain_graph=True)
        (2 * out).sum().backward()
    first, second, third = judged.calls
    assert first.gradients == ("dq",)
    assert "dk is a sum over what K is repeated for" in first.gradients_not_judged
    assert second.gradients_not_judged == "no backward pass came through"
    assert "backward ran 2 times" in third.gradients_not_judged
    assert "dk is a sum" in judged.text and judged.passed


def test_what_follows_a_call_does_not_change_its_verdict():
    q, k, v = tensors()
    with judging.judged_attention() as judged:
        out = attend(q.requires_grad_(), k, v)
        with torch.no_grad():
            out.add_(1)
            q.zero_()
    assert judged.passed


def test_what_autocast_rounds_is_judged_as_rounded():
    with torch.autocast("cpu", torch.bfloat16), judging.judged_attention() as judged:
        out = attend(*tensors())
    assert out.dtype == torch.bfloat16 and judged.calls[0].problem.startswith("bfloat16")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_math_backend_is_judged_as_what_it_is(dtype):
    q, k, v = (one.requires_grad_() for one in tensors(dtype=dtype))
    with (
        torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
        judging.judged_attention() as judged,
    ):
        attend(q, k, v).square().sum().backward()
    assert judged.passed and len(judged.calls[0].gradients) == 3


def unjudged(name):
    q, k, v = tensors()
    if name == "dropout_p is 0.1":
        attend(q, k, v, dropout_p=0.1)
    elif name == "nested":
        nested = torch.nested.nested_tensor([q[0], q[1]], layout=torch.strided)
        attend(nested, nested, nested)
    elif name == "device is meta":
        attend(q.to("meta"), k.to("meta"), v.to("meta"))
    elif name == "torch.func":
        torch.vmap(attend)(q, k, v)
    elif name == "another way":
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
    elif name == "need_weights=True":
        x = normal(2, 9, 32)
        torch.nn.MultiheadAttention(32, 2)(x, x, x)
    elif name == "no plain tensor":
        own = q.as_subclass(type("Own", (torch.Tensor,), {}))
        attend(own, k, v)


NAMES = ["dropout_p is 0.1", "nested", "device is meta", "torch.func", "another way"]


@pytest.mark.parametrize("name", [*NAMES, "need_weights=True", "no plain tensor"])
def test_what_is_not_judged_is_said_and_is_no_pass(name):
    said = "NOT JUDGED: no call"
    with pytest.raises(AssertionError, match=said) as caught, judging.judged_attention():
        unjudged(name)
    assert name in str(caught.value)
    with pytest.warns(judging.NotJudgedWarning, match=name), judging.judged_attention() as judged:
        unjudged(name)
        attend(*tensors())
    assert judged.passed and judged.judged == 1 and name in judged.text


def test_multi_head_attention_is_seen_through():
    x = normal(2, 9, 32)
    layer = torch.nn.TransformerEncoderLayer(32, 2, batch_first=True).eval()
    with torch.no_grad(), judging.judged_attention() as judged:
        torch.nn.MultiheadAttention(32, 2)(x, x, x, need_weights=False)
        layer(x)
    assert judged.judged == 2 and "self_attn (MultiheadAttention)" in judged.text + str(
        judged.calls[1]
    )


def test_compiled_calls_are_counted():
    q, k, v = tensors()
    compiled = torch.compile(lambda q, k, v: 2 * attend(q, k, v), backend="aot_eager")
    compiled(q, k, v)
    said = "2 calls in what torch.compile compiled"
    with pytest.warns(judging.NotJudgedWarning, match=said), judging.judged_attention():
        compiled(q, k, v)
        compiled(q, k, v)
        attend(q, k, v)


def test_nothing_to_judge_is_no_pass():
    with pytest.raises(AssertionError, match="NOT JUDGED"), judging.judged_attention():
        torch.softmax(normal(3, 3), -1)
    with judging.judged_attention(on_fail="report") as judged:
        pass
    assert not judged


def test_what_is_raised_within_is_what_is_raised():
    with pytest.raises(ZeroDivisionError), judging.judged_attention():
        attend(*tensors())
        raise ZeroDivisionError
    q, k, v = tensors()
    with judging.judged_attention() as judged:
        with pytest.raises(RuntimeError):
            attend(q, k[..., :3], v)
        with pytest.raises(TypeError):
            attend(q, k, v, None, 0.0, False, 0.5)
        attend(q, k, v)
    assert judged.judged == 1


def test_calls_are_left_out_as_asked():
    with judging.judged_attention(most_calls=2) as judged:
        for _ in range(4):
            attend(*tensors())
    assert (judged.judged, judged.left_out) == (2, 2) and "2 calls, left out" in judged.text
    counts = set()
    for _ in range(2):
        with judging.judged_attention(sample=0.3, seed=7) as judged:
            for _ in range(10):
                attend(*tensors())
        assert judged.calls[0].number == 1
        counts.add((judged.judged, judged.left_out))
    ((some, others),) = counts
    assert 0 < some < 10 and some + others == 10
    for wrong in ({"sample": 0}, {"most_calls": 0}, {"on_fail": "shout"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is .*; give"):
            judging.judged_attention(**wrong)
    with pytest.raises(TypeError, match="unexpected keyword argument 'causal'"):
        judging.judged_attention(causal=True)


@pytest.mark.parametrize("settings", [{}, {"is_causal": True}, {"scale": 0.5}])
@pytest.mark.parametrize("damage", [None, two_per_cent_more], ids=["right", "damaged"])
@pytest.mark.parametrize("queries", [20, 30, 40])
def test_tensors_of_a_gpu_are_judged_where_they_lie(monkeypatch, kept, queries, damage, settings):
    monkeypatch.setattr(calls, "lies_on_device", lambda x: True)
    with Damaged(damage or attend), judging.judged_attention(on_fail="report") as judged:
        attend(*tensors(q=(2, 4, queries, 16)), **settings)
    (call,) = judged.calls
    assert "Judged on cpu" in call.report.text
    assert judged.passed == (damage is None)
    assert judged.passed or str(next(kept.iterdir())) in call.report.command


@pytest.mark.parametrize("is_additive", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_masks_and_gradients_are_judged_where_they_lie(monkeypatch, is_additive, causal):
    monkeypatch.setattr(calls, "lies_on_device", lambda x: True)
    q, k, v = (x.requires_grad_() for x in tensors(q=(2, 4, 20, 16)))
    seen = torch.rand(2, 1, 20, k.shape[2], generator=torch.Generator().manual_seed(3)) < 0.8
    seen[..., 0] = True
    mask = torch.where(seen, 0.0, -torch.inf).to(q.dtype) if is_additive else seen
    with judging.judged_attention(on_fail="report") as judged:
        out = attend(q, k, v, is_causal=True) if causal else attend(q, k, v, attn_mask=mask)
        out.sum().backward()
    (call,) = judged.calls
    assert judged.passed and "Judged on cpu" in call.report.text
    assert set(call.gradients) == {"dq", "dk", "dv"}


def test_no_warning_where_all_is_judged():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with judging.judged_attention():
            attend(*tensors())


def test_an_output_is_judged_by_the_arguments_of_the_call():
    q, k, v = tensors()
    out = attend(q, k, v, None, 0.0, True)
    assert judging.audit_call(out, q, k, v, None, 0.0, True).passed
    lse = (q @ k.mT / 4).masked_fill(~torch.ones(20, 30).tril().bool(), -torch.inf).logsumexp(-1)
    assert judging.audit_call(out, q, k, v, is_causal=True, lse=lse).passed
    assert not judging.audit_call(out, q, k, v, is_causal=True, lse=lse / 0.7).passed
    assert not judging.audit_call(out, q, k, v).passed
    with pytest.raises(ValueError, match="dropout_p is 0.5"):
        judging.audit_call(out, q, k, v, None, 0.5)
