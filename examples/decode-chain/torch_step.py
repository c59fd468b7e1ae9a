"""One decode step on PyTorch, recorded as a chain: `python3 torch_step.py chain.safetensors [link=fault]`.

The functions stand for the custom operators of a server: `chain.watch` records the calls that a model makes of them, and the model
knows nothing of it.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import flashproof
import torch
from flashproof import result

BATCH, HEADS, KEY_HEADS, DIM, PAGE, PAGES, SELECTED = 3, 8, 2, 64, 16, 16, 12
EPSILON, BASE = 1e-6, 10000.0
SCALE = torch.tensor(0.03125)


def norm_rope(
    q: torch.Tensor,
    k: torch.Tensor,
    q_gain: torch.Tensor,
    k_gain: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
) -> None:
    """RMS norm and rotation of halves, in place."""
    for x, gain in ((q, q_gain), (k, k_gain)):
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON) * gain
        a, b = normed.chunk(2, dim=-1)
        c, s = cos[positions][:, None], sin[positions][:, None]
        x.copy_(torch.cat([a * c - b * s, b * c + a * s], dim=-1))


def norm_rope_next(q, k, q_gain, k_gain, cos, sin, positions):  # type: ignore[no-untyped-def]
    """The same, by the next position: a fault."""
    norm_rope(q, k, q_gain, k_gain, cos, sin, positions + 1)


def reshape_and_cache(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    scale: torch.Tensor,
) -> None:
    """New tokens into their slots, in fp8."""
    for x, cache in ((key, key_cache), (value, value_cache)):
        numbers = (x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
        cache.view(torch.uint8).flatten(0, 1)[slot_mapping] = numbers.view(torch.uint8)


def reshape_and_cache_inverse(key, value, key_cache, value_cache, slot_mapping, scale):  # type: ignore[no-untyped-def]
    """The same, times the factor where it is divided by: a fault."""
    reshape_and_cache(key, value, key_cache, value_cache, slot_mapping, 1 / scale)


def top_keys(scores: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The keys of the largest scores of each sequence, [batch, 1, 1, SELECTED]."""
    hidden = torch.arange(scores.shape[-1]) >= lengths[:, None]
    return scores.masked_fill(hidden, -torch.inf).topk(SELECTED).indices[:, None, None].int()


def top_keys_pages(scores: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The same, of whole pages, the unused slots behind a sequence too: a fault."""
    return top_keys(scores, (lengths + PAGE - 1) // PAGE * PAGE)


def sparse_decode(
    q: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    indices: torch.Tensor,
    scale: torch.Tensor,
) -> torch.Tensor:
    """Attention over the listed keys of each sequence."""
    own = indices[:, 0, 0].long()
    slots = block_table.gather(1, own // PAGE).long() * PAGE + own % PAGE
    k, v = ((one.float().flatten(0, 1) * scale)[slots] for one in (key_cache, value_cache))
    k, v = (x.repeat_interleave(HEADS // KEY_HEADS, dim=2).transpose(1, 2) for x in (k, v))
    out = torch.nn.functional.scaled_dot_product_attention(q.float()[:, :, None], k, v)
    return out.to(q.dtype)


ops = SimpleNamespace(
    norm_rope=norm_rope,
    reshape_and_cache=reshape_and_cache,
    top_keys=top_keys,
    sparse_decode=sparse_decode,
)

FAULTS = {
    "norm_rope=next": norm_rope_next,
    "reshape_and_cache=inverse": reshape_and_cache_inverse,
    "top_keys=pages": top_keys_pages,
}


def decode() -> None:
    """A step of a model of one layer, by `ops`."""
    torch.manual_seed(7)
    q, k, v = (torch.randn(BATCH, heads, DIM).bfloat16() for heads in (HEADS, KEY_HEADS, KEY_HEADS))
    lengths = torch.tensor([40, 61, 33], dtype=torch.int32)
    positions = lengths - 1
    angles = torch.arange(64)[:, None] * BASE ** (-torch.arange(DIM // 2) / (DIM // 2))
    ops.norm_rope(
        *(q, k, 1 + torch.rand(DIM), 1 + torch.rand(DIM)),
        *(angles.cos().float(), angles.sin().float(), positions),
    )
    table = torch.randperm(PAGES)[: BATCH * 4].view(BATCH, 4).int()
    page = table.gather(1, (positions // PAGE)[:, None].long())[:, 0]
    slots = (page * PAGE + positions % PAGE).long()
    shape = (PAGES, PAGE, KEY_HEADS, DIM)
    caches = [(torch.randn(shape) / SCALE).to(torch.float8_e4m3fn) for _ in range(2)]
    ops.reshape_and_cache(k, v, *caches, slots, SCALE)
    indices = ops.top_keys(torch.randn(BATCH, 4 * PAGE), lengths)
    ops.sparse_decode(q, *caches, table, indices, SCALE)


def record(path: str) -> None:
    """Watch the operators of a step."""
    with flashproof.record_chain(path) as chain:
        chain.watch(
            *(ops, "norm_rope", "prologue"),
            reads={
                **{"q": "q", "k": "k", "q_norm_gain": "q_gain", "k_norm_gain": "k_gain"},
                **{"rope_cos": "cos", "rope_sin": "sin", "positions": "positions"},
            },
            writes={"q_out": "q", "k_out": "k"},
            notes={"norm_epsilon": EPSILON, "rope_layout": "halves"},
        )
        chain.watch(
            *(ops, "reshape_and_cache", "cache-write"),
            reads={
                **{"k": "key", "v": "value", "slot_mapping": "slot_mapping"},
                **{"k_scale": lambda given: given["scale"].item(), "v_scale": SCALE.item()},
            },
            writes={"key_cache": "key_cache", "value_cache": "value_cache"},
            notes={"scale_rule": "given"},
        )
        chain.watch(
            *(ops, "top_keys", "selection"),
            reads={"scores": lambda given: given["scores"][:, None, None], "seqused_k": "lengths"},
            writes={"indices": result},
        )
        chain.watch(
            *(ops, "sparse_decode", "attention"),
            reads={
                "q": lambda given: given["q"][:, :, None],
                **{"k": "key_cache", "v": "value_cache", "block_table": "block_table"},
                **{"kv_index": "indices", "seqused_k": torch.tensor([40, 61, 33])},
                "k_descale": lambda given: given["scale"].view(1),
                "v_descale": lambda given: given["scale"].view(1),
            },
            writes={"out": result},
        )
        decode()


if __name__ == "__main__":
    for name in sys.argv[2:]:
        setattr(ops, name.partition("=")[0], FAULTS[name])
    record(sys.argv[1])
