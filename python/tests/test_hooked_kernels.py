"""Kernels of attention of other libraries, judged call by call."""

import functools
import sys

import pytest

torch = pytest.importorskip("torch")

from judged_inputs import normal, stand_ins  # noqa: E402

import flashproof.torch as judging  # noqa: E402
from flashproof.torch import calls  # noqa: E402

PACKAGES = (
    *("flash_attn", "flash_attn_interface", "transformer_engine", "flashinfer", "xformers"),
    *("vllm", "sgl_kernel"),
)


@pytest.fixture
def libraries(monkeypatch):
    """The packages that stand in for libraries of kernels, none of them imported, and nothing of them afterwards."""
    own = (*PACKAGES, "plain_attention")
    with stand_ins(monkeypatch, own):
        import plain_attention

        yield plain_attention.Faults


draw = functools.partial(normal, dtype=torch.bfloat16)


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
    return (
        draw(30, heads, dim),
        *caches,
        table,
        lengths,
        torch.tensor([0, 9, 10, 30], dtype=torch.int32),
    )


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


def flash_4(**settings):
    def call():
        from flash_attn.cute.interface import flash_attn_func

        return flash_attn_func(*qkv(), **settings)

    return call


def flash_3_cache():
    import flash_attn_interface

    q, k, v, table, lengths, ends = paged()
    return flash_attn_interface.flash_attn_with_kvcache(
        q, k, v, cache_seqlens=lengths, page_table=table, cu_seqlens_q=ends, max_seqlen_q=20,
        causal=True, cu_seqlens_k_new=ends, return_softmax_lse=True,
    )  # fmt: skip


def served(package, **settings):
    """A layer's call in a server: new queries of three sequences on a cache in pages."""

    def call():
        q, k, v, table, lengths, ends = paged()
        one = torch.ones(1).expand(3, 2)
        common = {"q_descale": one, "k_descale": one, "v_descale": one, "causal": True, **settings}
        if package == "vllm":
            from vllm.vllm_flash_attn.flash_attn_interface import flash_attn_varlen_func

            return flash_attn_varlen_func(
                q=q, k=k, v=v, out=torch.empty_like(q), cu_seqlens_q=ends, max_seqlen_q=20,
                seqused_k=lengths, max_seqlen_k=21, softmax_scale=0.25, window_size=[-1, -1],
                block_table=table, fa_version=3, num_splits=4, **common,
            )  # fmt: skip
        from sgl_kernel.flash_attn import flash_attn_with_kvcache

        return flash_attn_with_kvcache(
            q=q, k_cache=k, v_cache=v, page_table=table, cache_seqlens=lengths, cu_seqlens_q=ends,
            cu_seqlens_k_new=ends, max_seqlen_q=20, softmax_scale=0.25, **common,
        )  # fmt: skip

    return call


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
        if "padding" in kind:
            given["cu_seqlens_q"] = torch.tensor([0, 11, 31], dtype=torch.int32)
            given["cu_seqlens_kv"] = torch.tensor([0, 25, 57], dtype=torch.int32)
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
    "flash, sequences": flash_packed("flash_attn_varlen_func", causal=True, return_attn_probs=True),
    "flash, sequences, packed Q, K and V": flash_packed("flash_attn_varlen_qkvpacked_func"),
    "flash, sequences, packed K and V": flash_packed("flash_attn_varlen_kvpacked_func"),
    "flash, sequences in pages": flash_paged,
    "flash, cache": flash_cache(cache_seqlens=17, return_softmax_lse=True),
    "flash, cache with new keys": flash_cache(
        cache_seqlens=torch.tensor([5, 9, 12]).int(), new=True
    ),
    "flash, cache in pages": flash_cache(paged=True),
    "flash, chosen cache": flash_cache(cache_batch_idx=torch.tensor([2, 0, 1]).int()),
    "flash, padded cache": flash_cache(
        cache_seqlens=20, cache_leftpad=torch.tensor([3, 0, 5]).int()
    ),
    "flash 3": flash_3(causal=True, return_attn_probs=True),
    "flash 3, fp8": flash_3(fp8=True),
    "flash 3, cache": flash_3_cache,
    "flash 4": flash_4(causal=True, return_lse=True),
    "flash 4, window": flash_4(window_size=(5, None)),
    "flash 4, no window": flash_4(window_size=(-1, 0)),
    "flash 4, sink": flash_4(learnable_sink=torch.tensor([0.5, -1.0, 2.0, 0.0])),
    "vLLM": served("vllm"),
    "vLLM, sinks": served("vllm", s_aux=torch.tensor([0.5, -1.0, 2.0, 0.0])),
    "vLLM, ALiBi": served("vllm", alibi_slopes=SLOPES, return_softmax_lse=True),
    "SGLang": served("sgl"),
    "engine": engine(),
    "engine, to the last key": engine("causal_bottom_right", "bshd"),
    "engine, window": engine(made={"window_size": (5, 0)}),
    "engine, arbitrary": engine("arbitrary"),
    "engine, bias": engine("no_mask", bias=True),
    "engine, scale": engine(made={"softmax_scale": 0.4}),
    "engine, padded": engine("padding", "bshd"),
    "engine, padded, causal": engine("padding_causal", "bshd"),
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


#: A call, a fault, and the cause that is told of it.
FAULTS = [
    ("flash, window", "window", "window-limit"),
    ("flash, causal window", "window", "window-limit"),
    ("infer, decode in pages", "window", "window-limit"),
    ("memory-efficient, window", "window", "window-limit"),
    ("flash, causal with LSE", "top-left", "mask-aligned-top-left"),
    ("flash, cache", "top-left", "mask-aligned-top-left"),
    ("flash 3, cache", "top-left", "mask-aligned-top-left"),
    ("infer, pages", "top-left", "mask-aligned-top-left"),
    ("memory-efficient, causal to the last", "top-left", "mask-aligned-top-left"),
    ("engine, to the last key", "top-left", "mask-aligned-top-left"),
    ("flash", "kv-head", "wrong-kv-head"),
    ("infer, ragged", "kv-head", "wrong-kv-head"),
    ("vLLM", "top-left", "mask-aligned-top-left"),
    ("SGLang", "kv-head", "wrong-kv-head"),
    ("flash, softcap", "softcap", "softcap-ignored"),
    ("infer, heads first", "softcap", "softcap-ignored"),
    ("flash, ALiBi", "alibi", "alibi-sign"),
    ("flash 3, fp8", "q_descale", "q_descale is not applied"),
    ("flash 3, fp8", "k_descale", "k_descale is not applied"),
    ("flash 3, fp8", "v_descale", "v_descale is not applied"),
    ("infer, factor of K", "k_descale", "k_descale is not applied"),
]


@pytest.mark.parametrize("case, fault, cause", FAULTS)
def test_a_fault_of_a_library_is_told_with_its_cause(libraries, case, fault, cause):
    libraries.now = fault
    with judging.judged_attention(on_fail="report") as judged:
        CALLS[case]()
    report = judged.calls[0].report
    assert not judged.passed and (cause == report.cause or cause in report.sentence), judged.text


def test_a_mask_from_the_first_key_is_told_from_one_to_the_last(libraries):
    libraries.now = "bottom-right"
    with judging.judged_attention(on_fail="report") as judged:
        engine()()
    assert judged.judged == 1 and not judged.passed


def test_lses_are_judged(libraries):
    for case in ("flash, causal with LSE", "flash, cache", "flash 3, cache", "infer, ragged"):
        with judging.judged_attention() as judged:
            CALLS[case]()
        assert "LSE" in judged.calls[0].report.sentence, case


def test_rows_without_keys_are_as_flash_attention_gives_them(libraries):
    import flash_attn

    with judging.judged_attention() as judged:
        q, k, v = qkv(rows=9, keys=4)
        _, lse, _ = flash_attn.flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    assert torch.isposinf(lse).any() and "LSE" in judged.calls[0].report.sentence


def test_the_lse_of_alibi_under_a_causal_mask_is_not_judged(libraries):
    with judging.judged_attention() as judged:
        flash(alibi_slopes=SLOPES, causal=True, return_attn_probs=True)()
    assert judged.passed and "LSE" not in judged.calls[0].report.sentence
    assert "results: the LSE goes without the row's own term of ALiBi" in judged.text


GRADIENTS = {
    "flash": (qkv, lambda m, q, k, v: m.flash_attn_func(q, k, v, causal=True)),
    "packed Q, K and V": (
        lambda: [draw(2, 20, 3, 4, 16)],
        lambda m, qkv: m.flash_attn_qkvpacked_func(qkv, causal=True),
    ),
    "packed K and V": (
        lambda: [draw(2, 20, 4, 16), draw(2, 32, 2, 2, 16, seed=1)],
        lambda m, q, kv: m.flash_attn_kvpacked_func(q, kv),
    ),
    "sequences": (
        lambda: list(packed()[:3]),
        lambda m, q, k, v: m.flash_attn_varlen_func(
            q, k, v, *packed()[3:], causal=True, return_attn_probs=True
        )[0],
    ),
}


@pytest.mark.parametrize("case", list(GRADIENTS))
def test_gradients_of_a_library_are_judged_and_left_as_they_are(libraries, case):
    import flash_attn

    make, call = GRADIENTS[case]

    def gradients():
        leaves = [x.requires_grad_() for x in make()]
        call(flash_attn, *leaves).float().square().sum().backward()
        return [x.grad for x in leaves]

    unseen = gradients()
    with judging.judged_attention() as judged:
        seen = gradients()
    assert judged.judged == 1 and set(judged.calls[0].gradients) == {"dq", "dk", "dv"}, judged.text
    assert all(torch.equal(a, b) for a, b in zip(unseen, seen))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.tensor([1.0, 1.02, 1.0])[:, None, None].to(grad.dtype)


def test_a_wrong_gradient_of_a_packed_tensor_is_found_by_name(libraries, monkeypatch):
    import flash_attn

    own = flash_attn.flash_attn_interface.each
    monkeypatch.setattr(
        flash_attn.flash_attn_interface,
        "each",
        lambda q, k, v, **given: own(*Doubled.apply(torch.stack([q, k, v], 2)).unbind(2), **given),
    )
    x = draw(2, 20, 3, 4, 16).requires_grad_()
    with judging.judged_attention(on_fail="report") as judged:
        flash_attn.flash_attn_qkvpacked_func(x).float().square().sum().backward()
    assert {one.quantity for one in judged.calls[0].report.findings} == {"dk"}, judged.text


UNJUDGED = {
    "dropout is 0.1": flash(dropout_p=0.1),
    "rotary_cos is given": flash_cache(cache_seqlens=9, rotary_cos=draw(9, 4)),
    "qv is given, which": flash_3(qv=draw(2, 20, 4, 16)),
    "attention_chunk is given": flash_3(attention_chunk=8),
    "window_size is (-2, 5)": flash_4(window_size=(-2, 5)),
    "attn_bias is a PagedBlock": memory_efficient(
        "PagedBlockDiagonalGappyKeysMask", sequences=True
    ),
    "pos_encoding_mode is ALIBI": infer_single(pos_encoding_mode="ALIBI"),
    "v_scale multiplies": infer_single(v_scale=0.5),
    "packed_custom_mask is given": infer_single(packed_custom_mask=draw(1)),
    "custom_mask has": infer_wrapped("PrefillWithRagged", custom_mask=draw(9)),
    "cp_group is set": engine(made={"cp_group": object()}),
    "attention_dropout is 0.1": engine(made={"attention_dropout": 0.1}),
    "inference_params is given": engine(inference_params=object()),
    "pre_scale_bias": engine(core_attention_bias_type="pre_scale_bias"),
}


@pytest.mark.parametrize("reason", list(UNJUDGED))
def test_a_call_with_what_is_not_known_is_not_judged(libraries, reason):
    with pytest.warns(judging.NotJudgedWarning), judging.judged_attention() as judged:
        UNJUDGED[reason]()
        flash()()
    first, *_ = judged.calls
    assert first.report is None and reason in first.not_judged
    assert (judged.judged, judged.passed) == (1, True)
    assert "1 passed, 0 failed, 0 accepted as known, 1 not judged" in judged.summary


def test_a_plan_that_was_not_seen_is_said(libraries):
    import flashinfer

    q, k, v, ends_q, ends_k, *_ = packed()
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(torch.empty(1))
    wrapper.plan(ends_q, ends_k, 4, 2, 16)
    with judging.judged_attention(on_fail="report") as judged:
        wrapper.run(q, k, v)
    assert "its plan was called before" in judged.calls[0].not_judged


def test_kernels_are_hooked_where_they_are_imported_before_and_within(libraries):
    import flash_attn

    own = flash_attn.flash_attn_func
    with judging.judged_attention() as judged:
        assert flash_attn.flash_attn_func is not own
        assert not any(name.startswith("xformers") for name in judged.functions)
        flash()()
        memory_efficient()()
        assert "xformers.ops.fmha.memory_efficient_attention" in judged.functions
        from xformers.ops import memory_efficient_attention as hooked
    from xformers.ops import memory_efficient_attention as unhooked

    assert judged.judged == 2 and flash_attn.flash_attn_func is own is not hooked
    assert hooked is not unhooked and not any(
        type(one).__module__.startswith("flashproof") for one in sys.meta_path
    )
    with judging.judged_attention(on_fail="report") as later:
        flash()()
    assert later.judged == 1
    # What was taken while a context lasted is as it was.
    assert torch.equal(hooked(*qkv(kv_heads=4)), unhooked(*qkv(kv_heads=4)))


def test_what_a_judged_kernel_calls_is_part_of_it(libraries, monkeypatch):
    import flash_attn

    def through_torch(q, k, v, **given):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(q, k, v, enable_gqa=True).transpose(1, 2), None

    monkeypatch.setattr(flash_attn.flash_attn_interface, "each", through_torch)
    with judging.judged_attention() as judged:
        flash()()
    assert judged.judged == 1 == len(judged.calls)
    # A call that cannot be read is not judged, and what it calls is.
    with pytest.warns(judging.NotJudgedWarning), judging.judged_attention() as judged:
        flash(dropout_p=0.1)()
    assert [one.report is None for one in judged.calls] == [True, False]


@pytest.mark.parametrize("fault", [None, "scale"])
@pytest.mark.parametrize("case", ["flash, causal window", "flash, softcap", "with LSE"])
def test_plain_calls_on_a_gpu_are_judged_where_they_lie(libraries, monkeypatch, case, fault):
    libraries.now = fault
    monkeypatch.setattr(calls, "lies_on_device", lambda x: True)
    call = CALLS.get(case, flash(causal=True, return_attn_probs=True))
    with judging.judged_attention(on_fail="report") as judged:
        call()
    assert judged.judged == 1 and judged.passed == (fault is None), judged.text
    assert "Judged on cpu" in judged.calls[0].report.text


@pytest.mark.parametrize("fault", [None, "top-left"])
def test_the_recipe_for_a_kernel_that_writes_into_an_argument(libraries, fault):
    from vllm.v1.attention.ops import triton_unified_attention as ops

    libraries.now = fault
    q, k, v, table, lengths, ends = paged()
    segments = ["seq_threshold_3D", "num_par_softmax_segments"]
    segments += [f"softmax_segm_{name}" for name in ("output", "max", "expsum")]
    kernel = judging.Kernel(ops.unified_attention, layout="bshd", ignore=segments)
    one = torch.ones(1).expand(3, 2)
    with judging.judged_attention(functions=[kernel], on_fail="report") as judged:
        ops.unified_attention(
            q=q, k=k, v=v, out=torch.empty_like(q), cu_seqlens_q=ends, max_seqlen_q=20,
            seqused_k=lengths, max_seqlen_k=21, softmax_scale=0.25, causal=True, window_size=(-1, -1),
            block_table=table, softcap=0, q_descale=None, k_descale=one, v_descale=one,
            seq_threshold_3D=8, softmax_segm_output=torch.empty(3),
        )  # fmt: skip
    assert judged.judged == 1, judged.text
    assert judged.passed == (fault is None), judged.text
