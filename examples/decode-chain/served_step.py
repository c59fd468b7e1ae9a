"""One decode step by the Triton kernels of a server, recorded as a chain: `python3 served_step.py sglang|vllm step.safetensors`.

The modules of the kernels are loaded without the package that they are of, which needs some hundred others. It takes a GPU with fp8 (sm_89 on).
"""

from __future__ import annotations

import enum
import importlib.util
import pathlib
import sys
import types
from typing import Any

import flashproof
import torch
import triton
import triton.language as tl

HEADS, KEY_HEADS, DIM, SLOTS, PAGE, SPLITS = 8, 2, 64, 384, 16, 4
EPSILON, BASE, SCALE = 1e-6, 10000.0, 64**-0.5
LENGTHS = (70, 200, 33)
DEVICE = "cuda"


def stand_in(name: str, **members: Any) -> None:
    """A module that has only what the kernels' modules ask for, and the packages that it is in."""
    for end in (i for i, letter in enumerate(name) if letter == "."):
        sys.modules.setdefault(name[:end], types.ModuleType(name[:end]))
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module


class Package:
    """An installed package of which single modules are loaded, by their files."""

    def __init__(self, name: str) -> None:
        self.name = name
        (self.folder,) = importlib.util.find_spec(name).submodule_search_locations

    def load(self, module: str) -> Any:
        """`ops.store` of the package, without the packages that it is in."""
        name = f"{self.name}.{module}"
        path = pathlib.Path(self.folder, *module.split(".")).with_suffix(".py")
        spec = importlib.util.spec_from_file_location(name, path)
        stand_in(name)
        sys.modules[name] = loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded


def inputs() -> dict[str, torch.Tensor]:
    """A step's queries, keys and values, and the caches before it: three sequences whose last token is new."""
    random = torch.Generator().manual_seed(11)
    normal = lambda *shape: torch.randn(shape, generator=random)  # noqa: E731
    angles = torch.arange(256)[:, None] * BASE ** (-torch.arange(DIM // 2) / (DIM // 2))
    given = {
        "q": normal(len(LENGTHS), HEADS, DIM).bfloat16(),
        "k": normal(len(LENGTHS), KEY_HEADS, DIM).bfloat16(),
        "v": normal(len(LENGTHS), KEY_HEADS, DIM).bfloat16(),
        "key_cache": normal(SLOTS, KEY_HEADS, DIM).bfloat16(),
        "value_cache": normal(SLOTS, KEY_HEADS, DIM).bfloat16(),
        "q_gain": (1 + 0.3 * normal(DIM)).bfloat16(),
        "k_gain": (1 + 0.3 * normal(DIM)).bfloat16(),
        "cos_sin": torch.cat([angles.cos(), angles.sin()], dim=1),
        "positions": torch.tensor(LENGTHS) - 1,
        "pages": torch.randperm(SLOTS // PAGE, generator=random).int(),
    }
    return {name: one.to(DEVICE) for name, one in given.items()}


def page_table(pages: torch.Tensor) -> torch.Tensor:
    """[sequences, pages]: as many pages of the pool as a sequence needs, one sequence behind the other."""
    needed = [-(-length // PAGE) for length in LENGTHS]
    table = pages.new_zeros(len(LENGTHS), max(needed))
    for row, count in enumerate(needed):
        begin = sum(needed[:row])
        table[row, :count] = pages[begin : begin + count]
    return table


def slots_of(table: torch.Tensor, positions: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The slots of positions of sequences."""
    return table[rows, positions // PAGE].long() * PAGE + positions % PAGE


def sglang(chain: flashproof.ChainRecorder) -> None:
    """SGLang's norm and rotation, its store, and its decode attention: splits of the keys, then their merge."""
    package = Package("sglang")
    stand_in("sglang.srt.environ", envs=None)
    stand_in(
        "sglang.srt.utils",
        is_hip=lambda: False,
        is_gfx95_supported=lambda: False,
        is_gfx1250_supported=lambda: False,
        get_device_core_count=lambda device=0: 132,
    )
    prologue = package.load("kernels.ops.attention.table_qk_norm_rope")
    store = package.load("kernels.ops.kvcache.cache_ops")
    package.load("kernels.ops.attention.score_mod")
    decode = package.load("kernels.ops.attention.decode_attention")

    widths = [HEADS * DIM, KEY_HEADS * DIM, KEY_HEADS * DIM]
    part = lambda i: lambda given: given["qkv"].split(widths, dim=1)[i].unflatten(1, (-1, DIM))  # noqa: E731
    chain.watch(
        *(prologue, "table_qk_norm_rope_", "prologue"),
        reads={
            **{"q": part(0), "k": part(1), "v": part(2), "positions": "positions"},
            **{"q_norm_gain": "q_weight", "k_norm_gain": "k_weight"},
            "rope_cos": lambda given: given["cos_sin_cache"][:, : DIM // 2],
            "rope_sin": lambda given: given["cos_sin_cache"][:, DIM // 2 :],
        },
        writes={"q_out": part(0), "k_out": part(1), "v_out": part(2)},
        notes={"norm_epsilon": EPSILON, "rope_layout": "halves", "norm_format": "bf16"},
    )
    chain.watch(
        *(store, "launch_reshape_and_cache_flash", "cache-write"),
        reads={"k": "key", "v": "value", "slot_mapping": "slot_mapping"},
        writes={"key_cache": "key_cache", "value_cache": "value_cache"},
    )
    parts = lambda given: given["att_out"].permute(2, 0, 1, 3)[:, :, :, None]  # noqa: E731
    lses = lambda given: given["att_lse"].permute(2, 0, 1)[..., None]  # noqa: E731
    chain.watch(
        *(decode, "_decode_grouped_att_m_fwd", "attention"),
        reads={
            "q": lambda given: given["q"][:, :, None],
            "k": lambda given: given["k_buffer"][:, None],
            "v": lambda given: given["v_buffer"][:, None],
            **{"paged_kv_indptr": "kv_indptr", "paged_kv_indices": "kv_indices"},
            "paged_kv_last_page_len": torch.ones(len(LENGTHS), dtype=torch.int32),
        },
        writes={"out_partial": parts, "lse_partial": lses},
        notes={"split_block": decode._MIN_BLOCK_KV},
    )
    chain.watch(
        *(decode, "_decode_softmax_reducev_fwd", "merge"),
        reads={
            "out_partial": lambda given: parts({"att_out": given["logits"]}),
            "lse_partial": lambda given: lses({"att_lse": given["lse"]}),
            "v_descale": "v_scale",
        },
        writes={"out": lambda given: given["o"][:, :, None]},
    )

    own = inputs()
    qkv = torch.cat([own[name].flatten(1) for name in ("q", "k", "v")], dim=1)
    prologue.table_qk_norm_rope_(
        *(qkv, own["positions"], own["q_gain"], own["k_gain"], own["cos_sin"]),
        *(HEADS, KEY_HEADS, DIM, EPSILON),
    )
    q, k, v = (one.unflatten(1, (-1, DIM)).contiguous() for one in qkv.split(widths, dim=1))
    table = page_table(own["pages"])
    rows = torch.arange(len(LENGTHS), device=DEVICE)
    new = slots_of(table, own["positions"], rows)
    keys, values = own["key_cache"], own["value_cache"]
    store.launch_reshape_and_cache_flash(k, v, keys[:, None], values[:, None], new)
    lengths = torch.tensor(LENGTHS, device=DEVICE)
    lists = [
        slots_of(table, torch.arange(n, device=DEVICE), rows[i].expand(n))
        for i, n in enumerate(LENGTHS)
    ]
    parts_of = torch.zeros(len(LENGTHS), HEADS, SPLITS, DIM, device=DEVICE)
    lses_of = torch.full((len(LENGTHS), HEADS, SPLITS), -torch.inf, device=DEVICE)
    ends = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int()
    decode.decode_attention_fwd(
        *(q, keys, values, torch.empty_like(q), ends, torch.cat(lists).int()),
        *(parts_of, lses_of, lengths.new_full((len(LENGTHS),), SPLITS).int(), SPLITS),
        *(SCALE, 1.0, 1.0),
    )


def vllm(chain: flashproof.ChainRecorder) -> None:
    """vLLM's norm and rotation, its store in fp8, and its unified attention."""

    class Mode(enum.IntEnum):
        NONE, FP8_PER_TENSOR, INT8_PER_TOKEN_HEAD, FP8_PER_TOKEN_HEAD, INT4_PER_TOKEN_HEAD = range(
            5
        )

    platform = types.SimpleNamespace(
        fp8_dtype=lambda: torch.float8_e4m3fn,
        is_rocm=lambda: False,
        is_xpu=lambda: False,
        has_device_capability=lambda *_: True,
        is_device_capability_family=lambda *_: False,
    )
    limits = torch.finfo(torch.float8_e4m3fn)
    logger = types.SimpleNamespace(debug_once=print, info=print, warning=print)
    package = Package("vllm")
    stand_in("vllm.envs", VLLM_BATCH_INVARIANT=False)
    stand_in("vllm.logger", init_logger=lambda _: logger)
    stand_in("vllm.platforms", current_platform=platform)
    stand_in("vllm.triton_utils", tl=tl, triton=triton)
    stand_in(
        "vllm.v1.kv_cache_interface",
        KVQuantMode=Mode,
        is_quantized_kv_cache=lambda name: name.startswith("fp8"),
    )
    stand_in(
        "vllm.model_executor.layers.quantization.utils.quant_utils",
        FP8_DTYPE=torch.float8_e4m3fn,
        get_fp8_min_max=lambda: (limits.min, limits.max),
    )
    prologue = package.load("model_executor.layers.fused_qk_norm_rope")
    store = package.load("v1.attention.ops.triton_reshape_and_cache_flash")
    package.load("v1.attention.ops.triton_attention_helpers")
    attention = package.load("v1.attention.ops.triton_unified_attention")

    heads = lambda x: x.unflatten(1, (-1, DIM))  # noqa: E731
    returned = lambda i: lambda given: heads(given["return"][i])  # noqa: E731
    chain.watch(
        *(prologue, "fused_qk_rmsnorm_rope_gate", "prologue"),
        reads={
            "q": lambda given: given["q_gate"].unflatten(1, (HEADS, 2, DIM))[:, :, 0],
            "k": lambda given: heads(given["k"]),
            **{"q_norm_gain": "q_weight", "k_norm_gain": "k_weight", "positions": "positions"},
            "rope_cos": lambda given: given["cos_sin_cache"][:, : DIM // 4],
            "rope_sin": lambda given: given["cos_sin_cache"][:, DIM // 4 :],
        },
        writes={"q_out": returned(0), "k_out": returned(1)},
        notes={
            **{"norm_epsilon": EPSILON, "norm_offset": 1, "rope_layout": "halves"},
            **{"rope_dims": DIM // 2, "norm_format": "bf16"},
        },
    )
    chain.watch(
        *(store, "triton_reshape_and_cache_flash", "cache-write"),
        reads={
            **{"k": "key", "v": "value", "slot_mapping": "slot_mapping"},
            **{"k_scale": lambda given: given["k_scale"].item()},
            **{"v_scale": lambda given: given["v_scale"].item()},
        },
        writes={"key_cache": "key_cache", "value_cache": "value_cache"},
        notes={"scale_rule": "given"},
    )
    chain.watch(
        *(attention, "unified_attention", "attention"),
        reads={
            **{"q": lambda given: given["q"][:, :, None], "k": "k", "v": "v"},
            **{"block_table": "block_table", "seqused_k": "seqused_k"},
            **{"k_descale": "k_descale", "v_descale": "v_descale"},
        },
        writes={"out": lambda given: given["out"][:, :, None]},
    )

    own = inputs()
    gates = torch.cat([own["q"], torch.randn_like(own["q"])], dim=2).flatten(1)
    half = torch.cat([one[:, ::2] for one in own["cos_sin"].chunk(2, dim=1)], dim=1).contiguous()
    q, k, _ = prologue.fused_qk_rmsnorm_rope_gate(
        *(gates, own["k"].flatten(1), own["q_gain"] - 1, own["k_gain"] - 1, half, own["positions"]),
        *(EPSILON, HEADS, KEY_HEADS, DIM, DIM // 2),
        norm_beta=1.0,
    )
    q, k = (one.unflatten(1, (-1, DIM)) for one in (q, k))
    table = page_table(own["pages"])
    new = slots_of(table, own["positions"], torch.arange(len(LENGTHS), device=DEVICE))
    scale = torch.tensor(0.03125, device=DEVICE)
    keys, values = (
        (own[name].float() / scale)
        .clamp(-448, 448)
        .to(torch.float8_e4m3fn)
        .unflatten(0, (-1, PAGE))
        for name in ("key_cache", "value_cache")
    )
    store.triton_reshape_and_cache_flash(k, own["v"], keys, values, new, "fp8", scale, scale)
    starts = torch.arange(len(LENGTHS) + 1, device=DEVICE, dtype=torch.int32)
    lengths = torch.tensor(LENGTHS, device=DEVICE, dtype=torch.int32)
    attention.unified_attention(
        *(q, keys, values, torch.empty_like(q), starts, 1, lengths, max(LENGTHS), SCALE, True),
        *((-1, -1), table, 0, None, scale.view(1), scale.view(1)),
        kv_quant_mode=Mode.FP8_PER_TENSOR,
    )


if __name__ == "__main__":
    server, path = sys.argv[1:]
    with flashproof.record_chain(path) as chain:
        {"sglang": sglang, "vllm": vllm}[server](chain)
