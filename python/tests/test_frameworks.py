"""Kernels that people use, on the CPU; each library is left out where it is not installed."""

import numpy as np
import pytest
from reference import problem

import flashproof
from flashproof import audit
from flashproof.audits import session


@pytest.fixture(autouse=True)
def kept(tmp_path):
    before, session.failures = session.failures, tmp_path / "failures"
    yield
    session.failures = before


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

    @pytest.mark.parametrize("factor", [1, 1.02])
    def test_tensors_are_judged_where_they_lie_as_elsewhere(self, factor):
        torch = self.torch
        q, k, v = (torch.from_numpy(x).bfloat16() for x in problem(queries=64, keys=64, dim=32))
        out = factor * torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        report = flashproof.audit_on_device(q, k, v, out, causal=True)
        assert report.passed == (factor == 1) == audit(q, k, v, out, causal=True).passed
        assert "Judged on cpu" in report.text
        assert report.passed or report.cause is not None

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
            attention, promises, framework="jax", laws=["gradients-within-bound"], runs=2, seed=6
        )
        assert report.passed, report.text


class TestOnnxRuntime:
    def test_multi_head_attention_passes(self):
        ort = pytest.importorskip("onnxruntime")
        onnx = pytest.importorskip("onnx")
        q, k, v = problem(queries=40)
        heads, dim = q.shape[1], q.shape[3]
        packed = [
            np.ascontiguousarray(x.swapaxes(1, 2)).reshape(x.shape[0], x.shape[2], -1)
            for x in (q, k, v)
        ]
        helper, kind = onnx.helper, onnx.TensorProto.FLOAT
        node = helper.make_node(
            "MultiHeadAttention", ["q", "k", "v"], ["o"], domain="com.microsoft", num_heads=heads
        )
        values = [
            helper.make_tensor_value_info(name, kind, x.shape) for name, x in zip("qkv", packed)
        ]
        graph = helper.make_graph(
            [node], "g", values, [helper.make_tensor_value_info("o", kind, packed[0].shape)]
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        run = ort.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        ).run
        (out,) = run(None, dict(zip("qkv", packed)))
        out = np.ascontiguousarray(out.reshape(q.shape[0], -1, heads, dim).swapaxes(1, 2))
        assert audit(q, k, v, out).passed
