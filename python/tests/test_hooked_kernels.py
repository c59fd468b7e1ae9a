"""Kernels of attention of other libraries, judged call by call."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import flashproof.torch as judging  # noqa: E402
from flashproof.request import session  # noqa: E402

STAND_INS = Path(__file__).parent / "stand_ins"
PACKAGES = ("flash_attn", "flash_attn_interface", "transformer_engine", "flashinfer", "xformers")


@pytest.fixture(autouse=True)
def kept(tmp_path):
    before, session.failures = session.failures, tmp_path / "failures"
    yield session.failures
    session.failures = before


@pytest.fixture
def libraries(monkeypatch):
    """The packages that stand in for libraries of kernels, none of them imported, and nothing of them afterwards."""
    own = (*PACKAGES, "plain_attention")
    loaded = {x: one for x, one in sys.modules.items() if x.partition(".")[0] in own}
    for name in loaded:
        del sys.modules[name]
    monkeypatch.syspath_prepend(str(STAND_INS))
    import plain_attention

    yield plain_attention.Faults
    for name in [x for x in sys.modules if x.partition(".")[0] in own]:
        del sys.modules[name]
    sys.modules.update(loaded)


def draw(*shape, seed=0, dtype=torch.bfloat16):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def qkv(rows=20, keys=32, heads=4, kv_heads=2, dim=16, batch=2):
    """[batch, rows, heads, dim], bf16."""
    sizes = (rows, heads), (keys, kv_heads), (keys, kv_heads)
    return [draw(batch, *one, dim, seed=i) for i, one in enumerate(sizes)]


def packed(heads=4, kv_heads=2, dim=16):
    """Three sequences, with the ends of their queries and keys."""
    ends = torch.tensor([[0, 9, 10, 30], [0, 14, 27, 60]], dtype=torch.int32)
    return (draw(30, heads, dim), draw(60, kv_heads, dim, seed=1), draw(60, kv_heads, dim, seed=2),
            *ends, 20, 33)  # fmt: skip


def paged(heads=4, kv_heads=2, dim=16, page=8):
    """Queries of three sequences, pages, which pages each has, and how many keys."""
    table = torch.tensor([[5, 1, 0], [3, 7, 0], [2, 0, 6]], dtype=torch.int32)
    lengths = torch.tensor([14, 13, 21], dtype=torch.int32)
    caches = [draw(8, page, kv_heads, dim, seed=i) for i in (1, 2)]
    return draw(30, heads, dim), *caches, table, lengths, torch.tensor([0, 9, 10, 30], dtype=torch.int32)


SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])


def flash(name="flash_attn_func", **settings):
    def call():
        import flash_attn

        return getattr(flash_attn, name)(*qkv(), **settings)

    return call


def flash_packed(name, **settings):
    def call():
        import flash_attn

        q, k, v, *ends = packed(kv_heads=4 if "qkv" in name else 2)
        if "qkv" in name:
            q = draw(30, 3, 4, 16)
            return flash_attn.flash_attn_varlen_qkvpacked_func(q, ends[0], 20, **settings)
        if "kv" in name:
            return getattr(flash_attn, name)(q, torch.stack([k, v], 1), *ends, **settings)
        return getattr(flash_attn, name)(q, k, v, *ends, **settings)

    return call


def flash_stacked(name, **settings):
    def call():
        import flash_attn

        if "qkv" in name:
            return flash_attn.flash_attn_qkvpacked_func(draw(2, 20, 3, 4, 16), **settings)
        q, k, v = qkv()
        return flash_attn.flash_attn_kvpacked_func(q, torch.stack([k, v], 2), **settings)

    return call


def flash_paged(**settings):
    import flash_attn

    q, k, v, table, lengths, ends = paged()
    ends_k = torch.cat([torch.zeros(1, dtype=torch.int32), lengths.cumsum(0).int()])
    return flash_attn.flash_attn_varlen_func(
        q, k, v, ends, ends_k, 20, 21, causal=True, block_table=table
    )


def flash_cache(**settings):
    def call():
        import flash_attn

        q, k, v = qkv(rows=2, batch=3)
        given = dict(settings)
        if given.pop("new", False):
            given.update(k=draw(3, 2, 2, 16, seed=5), v=draw(3, 2, 2, 16, seed=6))
        if given.pop("paged", False):
            _, k, v, table, lengths, _ = paged()
            given.update(block_table=table, cache_seqlens=lengths)
        return flash_attn.flash_attn_with_kvcache(q, k, v, causal=True, **given)

    return call


def flash_3(fp8=False, **settings):
    def call():
        import flash_attn_interface

        given = dict(settings)
        tensors = qkv(dim=32)
        if fp8:
            tensors = [x.to(torch.float8_e4m3fn) for x in tensors]
            for i, name in enumerate(("q_descale", "k_descale", "v_descale")):
                given[name] = torch.rand(2, 2, generator=torch.Generator().manual_seed(i)) + 0.5
        return flash_attn_interface.flash_attn_func(*tensors, **given)

    return call


def flash_3_cache():
    import flash_attn_interface

    q, k, v, table, lengths, ends = paged()
    return flash_attn_interface.flash_attn_with_kvcache(
        q, k, v, cache_seqlens=lengths, page_table=table, cu_seqlens_q=ends, max_seqlen_q=20,
        causal=True, cu_seqlens_k_new=ends, return_softmax_lse=True,
    )  # fmt: skip


def engine(kind="causal", order="sbhd", made=None, bias=False, **settings):
    def call():
        from transformer_engine.pytorch import DotProductAttention

        q, k, v = qkv()
        own = {"attn_mask_type": kind, "qkv_format": order, **(made or {})}
        module = DotProductAttention(4, 16, 2, **own)
        if order == "thd":
            q, k, v, ends_q, ends_k, *_ = packed()
            return module(q, k, v, cu_seqlens_q=ends_q, cu_seqlens_kv=ends_k)
        given = dict(settings)
        if kind == "arbitrary":
            given["attention_mask"] = draw(1, 1, 20, 32, seed=8) > 0.5
        if bias:
            given.update(
                core_attention_bias_type="post_scale_bias",
                core_attention_bias=draw(1, 4, 20, 32, seed=9),
            )
        if order == "sbhd":
            q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        return module(q, k, v, **given)

    return call


def infer_single(decode=False, layout="NHD", mask=False, **settings):
    def call():
        import flashinfer

        q, k, v = (x[0] for x in qkv())
        if layout == "HND":
            k, v = (x.transpose(0, 1) for x in (k, v))
        given = {"kv_layout": layout, **settings}
        if mask:
            given["custom_mask"] = draw(20, 32, seed=8) < 0.5
        if decode:
            return flashinfer.single_decode_with_kv_cache(q[0], k, v, **given)
        return flashinfer.single_prefill_with_kv_cache(q, k, v, **given)

    return call


def lists(table, lengths, page=8):
    """FlashInfer's lists of pages."""
    counts = -(-lengths // page)
    begin = torch.cat([torch.zeros(1, dtype=torch.int32), counts.cumsum(0).int()])
    indices = torch.cat([one[:n] for one, n in zip(table, counts)])
    return begin, indices, (lengths - 1) % page + 1


def infer_wrapped(kind, layout="NHD", lse=False, joined=False, **settings):
    def call():
        import flashinfer

        q, k, v, table, lengths, ends = paged()
        pages = lists(table, lengths)
        if layout == "HND":
            k, v = (x.transpose(1, 2).contiguous() for x in (k, v))
        cache = torch.stack([k, v], 1) if joined else (k, v)
        wrapper = getattr(flashinfer, f"Batch{kind}KVCacheWrapper")(torch.empty(1), layout)
        given = {"return_lse": True} if lse else {}
        if kind == "DecodeWithPaged":
            wrapper.plan(*pages, 4, 2, 16, 8, pos_encoding_mode="NONE", **settings)
            return wrapper.run(q[:3], cache, **given)
        if kind == "PrefillWithRagged":
            q, k, v, ends_q, ends_k, *_ = packed()
            wrapper.plan(ends_q, ends_k, 4, 2, 16, causal=True, **settings)
            return wrapper.run(q, k, v, **given)
        wrapper.plan(ends, *pages, 4, 2, 16, 8, causal=True, **settings)
        for one in pages:
            # It has its own by now.
            one.zero_()
        return wrapper.run_return_lse(q, cache) if lse else wrapper.run(q, cache)

    return call


def memory_efficient(bias=None, shape=None, sequences=False, **settings):
    def call():
        from xformers.ops import fmha

        q, k, v = qkv(kv_heads=4)
        own = bias
        if shape == 3:
            q, k, v = (x[:, :, 0] for x in (q, k, v))
        elif shape == 5:
            q = q.unflatten(2, (2, 2))
            k, v = (x[:, :, ::2, None].expand(-1, -1, -1, 2, -1) for x in (k, v))
        if sequences:
            q, k, v, ends_q, ends_k, *_ = packed(kv_heads=4)
            q, k, v = (x[None] for x in (q, k, v))
            lengths = torch.tensor([12, 13, 29], dtype=torch.int32)
            own = getattr(fmha.attn_bias, bias)(ends_q, ends_k, lengths)
        elif isinstance(bias, tuple):
            own = getattr(fmha.attn_bias, bias[0])(*bias[1:])
        return fmha.memory_efficient_attention(q, k, v, own, **settings)

    return call


ADDED = draw(2, 4, 20, 32, seed=7, dtype=torch.float32)
CALLS = {
    "flash": flash(),
    "flash, causal with LSE": flash(causal=True, return_attn_probs=True),
    "flash, scale": flash(softmax_scale=0.4),
    "flash, window": flash(window_size=(6, 2)),
    "flash, causal window": flash(causal=True, window_size=(6, -1)),
    "flash, softcap": flash(softcap=2.0),
    "flash, ALiBi": flash(alibi_slopes=SLOPES),
    "flash, ALiBi with LSE": flash(alibi_slopes=SLOPES.expand(2, -1), return_attn_probs=True),
    "flash, packed Q, K and V": flash_stacked("flash_attn_qkvpacked_func", causal=True),
    "flash, packed K and V": flash_stacked("flash_attn_kvpacked_func", causal=True),
    "flash, sequences": flash_packed(
        "flash_attn_varlen_func", causal=True, return_attn_probs=True
    ),
    "flash, sequences, packed Q, K and V": flash_packed("flash_attn_varlen_qkvpacked_func"),
    "flash, sequences, packed K and V": flash_packed("flash_attn_varlen_kvpacked_func"),
    "flash, sequences in pages": flash_paged,
    "flash, cache": flash_cache(cache_seqlens=17, return_softmax_lse=True),
    "flash, cache with new keys": flash_cache(cache_seqlens=torch.tensor([5, 9, 12]).int(), new=True),
    "flash, cache in pages": flash_cache(paged=True),
    "flash, chosen cache": flash_cache(cache_batch_idx=torch.tensor([2, 0, 1]).int()),
    "flash, padded cache": flash_cache(
        cache_seqlens=20, cache_leftpad=torch.tensor([3, 0, 5]).int()
    ),
    "flash 3": flash_3(causal=True, return_attn_probs=True),
    "flash 3, fp8": flash_3(fp8=True),
    "flash 3, cache": flash_3_cache,
    "engine": engine(),
    "engine, to the last key": engine("causal_bottom_right", "bshd"),
    "engine, window": engine(made={"window_size": (5, 0)}),
    "engine, arbitrary": engine("arbitrary"),
    "engine, bias": engine("no_mask", bias=True),
    "engine, scale": engine(made={"softmax_scale": 0.4}),
    "engine, sequences": engine("padding_causal_bottom_right", "thd"),
    "infer": infer_single(causal=True, return_lse=True),
    "infer, heads first": infer_single(layout="HND", window_left=5, logits_soft_cap=3.0),
    "infer, mask": infer_single(mask=True, causal=True),
    "infer, factor of K": infer_single(k_scale=0.25),
    "infer, decode": infer_single(decode=True, return_lse=True),
    "infer, pages": infer_wrapped("PrefillWithPaged"),
    "infer, pages, heads first, with LSE": infer_wrapped(
        "PrefillWithPaged", layout="HND", lse=True, joined=True
    ),
    "infer, ragged": infer_wrapped("PrefillWithRagged", lse=True),
    "infer, decode in pages": infer_wrapped("DecodeWithPaged", window_left=6, lse=True),
    "memory-efficient": memory_efficient(),
    "memory-efficient, scale": memory_efficient(scale=0.4),
    "memory-efficient, causal": memory_efficient(("LowerTriangularMask",)),
    "memory-efficient, causal to the last": memory_efficient(
        ("LowerTriangularFromBottomRightMask",)
    ),
    "memory-efficient, causal window": memory_efficient(
        ("LowerTriangularFromBottomRightLocalAttentionMask", 5)
    ),
    "memory-efficient, causal with a bias": memory_efficient(
        ("LowerTriangularMaskWithTensorBias", ADDED[:1])
    ),
    "memory-efficient, window": memory_efficient(("LocalAttentionFromBottomRightMask", 5, 2)),
    "memory-efficient, bias": memory_efficient(ADDED),
    "memory-efficient, no heads": memory_efficient(shape=3),
    "memory-efficient, groups": memory_efficient(shape=5),
    "memory-efficient, sequences": memory_efficient("BlockDiagonalMask", sequences=True),
    "memory-efficient, causal sequences": memory_efficient(
        "BlockDiagonalCausalFromBottomRightMask", sequences=True
    ),
    "memory-efficient, padded keys": memory_efficient(
        "BlockDiagonalCausalWithOffsetPaddedKeysMask", sequences=True
    ),
}


@pytest.mark.parametrize("fault", [None, "scale"], ids=["right", "damaged"])
@pytest.mark.parametrize("case", list(CALLS))
def test_a_call_of_a_library_is_judged_as_what_it_asks_for(libraries, case, fault):
    libraries.now = fault
    with judging.judged_attention(on_fail="report") as judged:
        CALLS[case]()
    assert judged.judged == 1, judged.text
    assert judged.passed == (fault is None), judged.text
    if fault == "scale":
        assert "scale" in judged.calls[0].report.sentence, judged.text
