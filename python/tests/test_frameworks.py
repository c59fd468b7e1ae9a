"""Kernels that people use, on the CPU; each library is left out where it is not installed."""

import sys

import numpy as np
import pytest
from onnx_kernels import group_query_attention, multi_head_attention
from reference import problem

import flashproof
from flashproof import audit


def gated_delta_rule(q, k, v, g, beta, initial_state):
    """The rule token by token, of tensors of PyTorch."""
    state, rows = initial_state, []
    for t in range(q.shape[1]):
        state = state * g[:, t, :, None, None].exp()
        lacking = v[:, t] - (k[:, t, :, None] @ state)[..., 0, :]
        state = state + k[:, t, :, :, None] * (beta[:, t, :, None] * lacking)[..., None, :]
        rows.append((q[:, t, :, None] * q.shape[-1] ** -0.5 @ state)[..., 0, :])
    return sys.modules["torch"].stack(rows, 1), state


class TestTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        self.torch = pytest.importorskip("torch")

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
    @pytest.mark.parametrize("backend", ["MATH", "FLASH_ATTENTION"])
    def test_scaled_dot_product_attention_passes(self, dtype, backend):
        torch = self.torch
        q, k, v = (
            torch.from_numpy(x).to(getattr(torch, dtype))
            for x in problem(queries=70, keys=70, dim=32)
        )
        with torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, backend)):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        assert audit(
            q, k, v, out, causal=True, premises="torch-math" if backend == "MATH" else "fused"
        ).passed

    @pytest.mark.parametrize("damaged", [None, "dg", "dbeta", "dinitial_state"])
    def test_autograd_of_a_gated_delta_rule_is_judged(self, damaged):
        torch = self.torch
        generator = torch.Generator().manual_seed(6)
        q, k, v, dout = (torch.randn(1, 30, 2, 16, generator=generator) for _ in range(4))
        given = {
            "q": q,
            "k": torch.nn.functional.normalize(k, dim=-1),
            "v": v,
            "g": -torch.rand(1, 30, 2, generator=generator),
            "beta": torch.rand(1, 30, 2, generator=generator),
            "initial_state": torch.randn(1, 2, 16, 16, generator=generator),
        }
        given = {name: x.requires_grad_() for name, x in given.items()}
        out, state = flashproof.judged_recurrent(gated_delta_rule, family="gated-delta")(**given)
        last = torch.randn(state.shape, generator=generator)
        grads = torch.autograd.grad((out, state), list(given.values()), (dout, last))
        found = {f"d{name}": grad for name, grad in zip(given, grads)}
        if damaged is not None:
            found[damaged] = 1.01 * found[damaged]
        beside = {"dout": dout, "dfinal_state": last, **found}
        report = flashproof.audit_recurrent(
            out=out, final_state=state, family="gated-delta", **given, **beside
        )
        assert {one.quantity for one in report.findings} == ({damaged} if damaged else set())
        assert len(report.json["quantities"]) == 8

    @pytest.mark.parametrize("factor", [1, 1.02])
    def test_tensors_are_judged_where_they_lie_as_elsewhere(self, factor):
        torch = self.torch
        q, k, v = (torch.from_numpy(x).bfloat16() for x in problem(queries=64, keys=64, dim=32))
        out = factor * torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        report = flashproof.audit_on_device(q, k, v, out, causal=True)
        assert report.passed == (factor == 1) == audit(q, k, v, out, causal=True).passed
        assert "Judged on cpu" in report.text
        assert report.passed or report.cause is not None

    @pytest.mark.parametrize("factor", [1, 1.05])
    def test_gradients_are_judged_where_they_lie_as_elsewhere(self, factor):
        torch = self.torch
        attention = torch.nn.functional.scaled_dot_product_attention
        q, k, v = (torch.from_numpy(x).bfloat16() for x in problem(queries=64, keys=64, dim=32))
        out = attention(q, k, v, is_causal=True)
        generator = torch.Generator().manual_seed(4)
        dout = torch.randn(out.shape, generator=generator).bfloat16()
        # In bf16 PyTorch's own on the CPU adds up dV in bf16 (docs/reference/findings.md).
        wide = [x.double().requires_grad_() for x in (q, k, v)]
        exact = torch.autograd.grad(attention(*wide, is_causal=True), wide, dout.double())
        dq, dk, dv = (x.bfloat16() for x in exact)
        given = {"causal": True, "dout": dout, "dq": dq, "dk": factor * dk, "dv": dv}
        report = flashproof.audit_on_device(q, k, v, out, **given)
        assert report.passed == (factor == 1) == audit(q, k, v, out, **given).passed
        assert "dK" in report.sentence
        with pytest.raises(ValueError, match="without dout"):
            flashproof.audit_on_device(q, k, v, out, dq=dq)

    def test_tensors_of_every_make_are_read_as_they_count(self):
        torch = self.torch
        q, k, v = (torch.from_numpy(x).bfloat16() for x in problem())

        class Wrapped(torch.Tensor):
            """Of a class that is defined elsewhere."""

        Wrapped.__module__ = "elsewhere"
        out = torch.nn.functional.scaled_dot_product_attention(-q, k, v)
        given = [
            torch._neg_view(q),
            -q.as_subclass(Wrapped).requires_grad_(),
            torch.nn.Parameter(-q),
            (-q).transpose(2, 3).contiguous().transpose(2, 3),
        ]
        for one in given:
            assert audit(one, k, v, out).passed

    def test_tensors_without_elements_of_their_own_are_refused(self):
        torch = self.torch
        from torch._subclasses.fake_tensor import FakeTensorMode

        q, k, v = (torch.from_numpy(x) for x in problem())
        with FakeTensorMode():
            fake = torch.empty(q.shape)
        refused = {
            "q is a meta tensor": q.to("meta"),
            "q is a torch.sparse_coo tensor": q.to_sparse(),
            "q is a nested tensor": torch.nested.nested_tensor([q[0]]),
            "q is a FakeTensor without elements": fake,
        }
        for error, one in refused.items():
            for function in (audit, flashproof.audit_on_device):
                with pytest.raises(TypeError, match=error):
                    function(one, k, v, q)
        with pytest.raises(TypeError, match="out is a NoneType; give a tensor"):
            flashproof.audit_on_device(q, k, v, None)
        with pytest.raises(ValueError, match="causal is 'no'"):
            flashproof.audit_on_device(q, k, v, q, causal="no")

    def test_gradients_of_autograd_pass(self):
        torch = self.torch
        q, k, v = (torch.from_numpy(x).requires_grad_() for x in problem())
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        dout = torch.randn(out.shape, generator=torch.Generator().manual_seed(4))
        dq, dk, dv = torch.autograd.grad(out, (q, k, v), dout)
        assert audit(q, k, v, out, dout=dout, dq=dq, dk=dk, dv=dv).passed

    def test_properties_of_scaled_dot_product_attention_hold_with_gradients(self):
        torch = self.torch

        def attention(q, k, v, *, scale, causal, window, softcap):
            if causal and q.shape[-2] != k.shape[-2]:
                raise flashproof.Declined("PyTorch aligns its causal mask to the top left")
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, scale=scale
            )

        promises = {
            "formats": ["fp32"],
            "gradients": True,
            "window": False,
            "groupedHeads": False,
            "emptyRows": False,
        }
        report = flashproof.check(
            attention,
            promises,
            framework="torch",
            laws=["within-bound", "gradients-within-bound"],
            runs=4,
            seed=6,
            timeout=120,
        )
        assert report.passed, report.text


class TestJax:
    @pytest.fixture(autouse=True)
    def jax(self):
        self.jax = pytest.importorskip("jax")

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_dot_product_attention_passes(self, dtype):
        jax = self.jax
        q, k, v = (jax.numpy.asarray(x.swapaxes(1, 2)).astype(dtype) for x in problem(queries=40))
        out = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        # XLA on the CPU stores scores and weights in the inputs' format.
        assert audit(q, k, v, out, causal=True, layout="bshd", premises="eager").passed

    def test_gradients_by_vjp_pass(self):
        jax = self.jax

        def attention(q, k, v, *, scale, causal, window, softcap):
            if q.shape[-1] != v.shape[-1]:
                raise flashproof.Declined("one head dimension")
            swapped = (jax.numpy.swapaxes(x, 1, 2) for x in (q, k, v))
            return jax.numpy.swapaxes(jax.nn.dot_product_attention(*swapped, scale=scale), 1, 2)

        promises = {
            "formats": ["fp32"],
            "gradients": True,
            "causal": False,
            "window": False,
            "groupedHeads": False,
            "emptyRows": False,
        }
        report = flashproof.check(
            attention,
            promises,
            framework="jax",
            laws=["gradients-within-bound"],
            runs=2,
            seed=6,
            timeout=120,
        )
        assert report.passed, report.text


def grouped(dtype, rows=33, keys=33, seed=0):
    """Eight heads that share two of K and V, in two sequences."""
    random = np.random.default_rng(seed)
    sizes = ((2, 8, rows, 16), (2, 2, keys, 16), (2, 2, keys, 16))
    return tuple(random.standard_normal(size).astype(dtype) for size in sizes)


BIAS = np.random.default_rng(2).standard_normal((1, 8, 33, 33))
SINK = np.random.default_rng(3).standard_normal(8)
#: By what the operator is asked for: what it is given, and the same in the words of `audit`.
GROUP_QUERY_CASES = {
    "plain": ({}, {}),
    "scale": ({"scale": 0.5}, {"scale": 0.5}),
    "softcap": ({"softcap": 2.0}, {"softcap": 2.0}),
    # It counts the query's own key.
    "window": ({"local_window_size": 8}, {"window": (7, 0)}),
    "smooth softmax": ({"smooth_softmax": 1}, {"sink": np.zeros(8, np.float32)}),
    "sink": ({"sink": SINK}, {"sink": SINK}),
    "bias": ({"bias": BIAS}, {"bias": BIAS}),
    "all": (
        {"bias": BIAS, "sink": SINK, "local_window_size": 8, "softcap": 2.0},
        {"bias": BIAS, "sink": SINK, "window": (7, 0), "softcap": 2.0},
    ),
}


def in_format(settings, dtype):
    return {
        name: x.astype(dtype) if isinstance(x, np.ndarray) else x for name, x in settings.items()
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
class TestOnnxRuntime:
    def test_multi_head_attention_passes(self, dtype):
        if dtype is np.float16:
            pytest.skip("it is of fp32 on the CPU")
        q, k, v = problem(queries=40)
        assert audit(q, k, v, multi_head_attention(q, k, v)).passed

    @pytest.mark.parametrize("case", list(GROUP_QUERY_CASES))
    def test_group_query_attention_passes(self, dtype, case):
        asked, posed = (in_format(one, dtype) for one in GROUP_QUERY_CASES[case])
        q, k, v = grouped(dtype)
        out = group_query_attention(q, k, v, **asked)
        assert audit(q, k, v, out, causal=True, **posed).passed
        if asked:
            assert not audit(q, k, v, out, causal=True).passed

    @pytest.mark.parametrize("window", [None, 4, 21])
    def test_group_query_attention_decodes(self, dtype, window):
        q, k, v = grouped(dtype, 1, 1)
        _, *past = grouped(dtype, 20, 20, seed=5)
        asked, posed = (
            ({}, {})
            if window is None
            else ({"local_window_size": window}, {"window": (window - 1, 0)})
        )
        out = group_query_attention(q, k, v, past=past, **asked)
        every = (np.concatenate(both, 2) for both in zip(past, (k, v)))
        assert audit(q, *every, out, causal=True, **posed).passed

    def test_group_query_attention_appends_several_queries(self, dtype):
        q, k, v = (x[:1] for x in grouped(dtype, 5, 5))
        past = [x[:1] for x in grouped(dtype, 20, 20, seed=5)[1:]]
        out = group_query_attention(q, k, v, past=past)
        every = (np.concatenate(both, 2) for both in zip(past, (k, v)))
        assert audit(q, *every, out, causal=True).passed

    def test_group_query_attention_reads_no_slot_that_nobody_wrote(self, dtype):
        q, k, v = grouped(dtype, 1, 1)
        past = grouped(dtype, 20, 20, seed=5)[1:]
        for one in past:
            one[0, :, 11:] = np.nan
        ends = [10, 20]
        out = group_query_attention(q, k, v, past=past, ends=ends)
        for one, end in enumerate(ends):
            mine = slice(one, one + 1)
            every = [
                np.concatenate([old[mine, :, :end], new[mine]], 2) for old, new in zip(past, (k, v))
            ]
            assert audit(q[mine], *every, out[mine], causal=True).passed
