"""The judge on candidates of PyTorch, on the CPU and on a GPU where there is one."""

from pathlib import Path

import pytest

import flashproof

torch = pytest.importorskip("torch")

# Whatever else runs on the machine.
BUDGET = flashproof.Budget(problems=2, seconds=1200, call_seconds=60, load_seconds=300)
PLAIN = {
    "framework": "torch",
    "formats": ["fp32"],
    "properties": ["within-bound"],
    "largest": {"queries": 40, "keys": 40, "dim": 16, "heads": 2},
}
SOURCE = """
import torch


def attention(q, k, v, *, scale, causal, window, softcap):
    scores = q.float() @ k.float().transpose(-1, -2) * scale
    if causal:
        queries, keys = scores.shape[-2:]
        seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
        scores = scores.masked_fill(~seen, float("-inf"))
    return (torch.softmax(scores, -1) @ v.float()).to(q.dtype)


def in_place(q, k, v, *, scale, **settings):
    return attention(q.mul_(scale), k, v, scale=1.0, **settings)


def detached(q, k, v, **settings):
    return attention(q, k.detach(), v, **settings)


def patched(q, k, v, **settings):
    torch.allclose = lambda *_, **__: True
    return torch.zeros_like(q)


class ModelNew(torch.nn.Module):
    def forward(self, Q, K, V):
        return torch.nn.functional.scaled_dot_product_attention(Q, K, V)
"""
NO_GROUPS = {"groupedHeads": False, "emptyRows": False, "window": False}
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "promises", "cause"),
    [
        ("attention", {"formats": ["bf16"]}, None),
        ("attention", {"gradients": True}, None),
        ("detached", {"gradients": True, "properties": ["gradients-within-bound"]}, "unexplained"),
        ("in_place", {}, "input-changed"),
        ("patched", {}, "tampering"),
    ],
)
def test_functions_of_tensors(name, promises, cause, device):
    made = flashproof.Candidate.from_source(SOURCE, name)
    contract = {**PLAIN, **NO_GROUPS, "device": device, **promises}
    found = flashproof.judge(made, contract, budget=BUDGET, seed=2)
    assert found.verdict == ("pass" if cause is None else "fail"), str(found)
    assert cause in (None, "unexplained") or found.cause == cause, str(found)


@pytest.mark.parametrize("device", DEVICES)
def test_a_module_of_kernelbench(device, tmp_path):
    path = Path(tmp_path / "model_new.py")
    path.write_text(SOURCE)
    made = flashproof.forms.kernelbench(path)
    assert flashproof.judge(made, {**PLAIN, "device": device}, budget=BUDGET, seed=2)
