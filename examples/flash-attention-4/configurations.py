"""Configurations of FlashAttention-4's forward and backward, and random problems of each."""

import math
from dataclasses import dataclass, field

import torch

from flashproof import Array

DTYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2}
DTYPES |= {"F32": torch.float32, "I32": torch.int32, "BOOL": torch.bool}


@dataclass(frozen=True)
class Configuration:
    """What decides which kernel is compiled, and the sizes that problems are drawn from: least and most."""

    dims: tuple  # of Q and K, of V
    format: str = "BF16"
    causal: bool = False
    window: bool = False
    softcap: bool = False
    sink: bool = False
    mask: str = ""  # "tensor": a boolean one; "documents": segments; "prefix"; "blocks": lists of blocks, with a mask in some
    bias: str = ""  # "tensor": numbers for each pair of a query and a key; "alibi": slopes
    descale: bool = False  # factors of fp8 Q, K and V
    batch: int = 1
    sequences: int = 0  # packed, where there are any
    page: int = 0  # keys of a page, where K and V are in pages
    heads: tuple = (1, 1)  # of Q, of K and V
    queries: tuple = (1, 300)
    keys: tuple = (1, 400)
    splits: int = 1
    ctas: int = 2  # 1: without pairs of thread blocks
    backward: bool = False
    deterministic: bool = False
    contract: bool = False  # pairs of mul and add as one operation, where ptxas has been seen to make them that
    settings: dict = field(default_factory=dict)  # of the model, where it does not know what was chosen here

    @property
    def wide(self):
        """The format of what is not quantized."""
        return "BF16" if self.format.startswith("F8") else self.format

    @property
    def any_order(self):
        """Whether gradients are added up in memory in an order that nothing fixes."""
        return self.backward and not self.deterministic


def table():
    """Every configuration by its name. Pairs of thread blocks are chosen by FlashAttention-4 itself, for more than 256 queries."""
    pair, large = {"queries": (257, 420)}, {"keys": (1, 300)}
    fp8 = [("e4m3", "F8_E4M3"), ("e5m2", "F8_E5M2")]
    forward = {
        **{f"d{d}": Configuration((d, d)) for d in (8, 32, 48, 64, 80, 96, 112)},
        **{f"d{d} causal": Configuration((d, d), causal=True) for d in (64, 96, 128)},
        "d64 fp16": Configuration((64, 64), "F16"),
        "d128 fp16 causal": Configuration((128, 128), "F16", causal=True),
        "d128, up to 256 queries": Configuration((128, 128), queries=(1, 256)),
        "d128 pair": Configuration((128, 128), **pair),
        "d128 fp16 pair": Configuration((128, 128), "F16", **pair),
        "d128, no pairs": Configuration((128, 128), ctas=1, **pair),
        "d192,128": Configuration((192, 128), queries=(1, 256), **large),
        "d192,128 causal": Configuration((192, 128), causal=True, **large),
        "d192,128 pair": Configuration((192, 128), **pair, **large),
        "d256": Configuration((256, 256), **large),
        "d256 causal": Configuration((256, 256), causal=True, **large),
        "d256 fp16": Configuration((256, 256), "F16", **large),
        "d256 window": Configuration((256, 256), window=True, **large),
        "d256 softcap": Configuration((256, 256), softcap=True, **large),
        "d256 sink": Configuration((256, 256), sink=True, **large),
        "d256 packed": Configuration((256, 256), sequences=2, queries=(1, 150), keys=(1, 200)),
        "d256, 4 heads of 2": Configuration((256, 256), heads=(4, 2), queries=(1, 90), **large),
        "d256 packed, 4 heads of 2": Configuration((256, 256), heads=(4, 2), sequences=2, queries=(1, 60), keys=(1, 200)),
        "d256, 2 splits": Configuration((256, 256), splits=2),
        "d192,128 window": Configuration((192, 128), window=True, **large),
        "d192,128, 4 heads of 2": Configuration((192, 128), heads=(4, 2), queries=(1, 90), **large),
        **{f"d{d} window": Configuration((d, d), window=True) for d in (64, 128)},
        **{f"d{d} softcap": Configuration((d, d), softcap=True) for d in (64, 128)},
        **{f"d{d} sink": Configuration((d, d), sink=True, heads=(2, 2), queries=(1, 200)) for d in (64, 128)},
        "d64 packed": Configuration((64, 64), sequences=3, queries=(1, 200), keys=(1, 200)),
        "d128 packed": Configuration((128, 128), sequences=3, queries=(1, 200), keys=(1, 200)),
        "d128 packed causal": Configuration((128, 128), causal=True, sequences=3, queries=(1, 200), keys=(1, 200)),
        "d64 pages of 64": Configuration((64, 64), page=64, queries=(1, 200)),
        "d128 pages of 128": Configuration((128, 128), page=128, queries=(1, 200)),
        "d128 pages of 128 pair": Configuration((128, 128), page=128, **pair),
        "d64, 4 heads of 1": Configuration((64, 64), heads=(4, 1), queries=(1, 150)),
        "d64 causal, 4 heads of 1": Configuration((64, 64), causal=True, heads=(4, 1), queries=(1, 150)),
        "d128, 4 heads of 2": Configuration((128, 128), heads=(4, 2), queries=(1, 120)),
        "d128 packed, 4 heads of 2": Configuration((128, 128), heads=(4, 2), sequences=2, queries=(1, 90), keys=(1, 200)),
        **{f"d64 {name} causal": Configuration((64, 64), format, causal=True) for name, format in fp8},
        **{f"d128 {name}": Configuration((128, 128), format, queries=(1, 256)) for name, format in fp8},
        **{f"d128 {name} causal": Configuration((128, 128), format, causal=True) for name, format in fp8},
        **{f"d128 {name} pair": Configuration((128, 128), format, **pair) for name, format in fp8},
        **{f"d{d} mask": Configuration((d, d), mask="tensor", batch=2) for d in (64, 128)},
        "d64 mask causal, 4 heads of 2": Configuration((64, 64), causal=True, mask="tensor", heads=(4, 2), queries=(1, 150)),
        "d128 mask window": Configuration((128, 128), window=True, mask="tensor"),
        "d128 mask pair": Configuration((128, 128), mask="tensor", **pair),
        "d256 mask": Configuration((256, 256), mask="tensor", **large),
        "d64 packed mask": Configuration((64, 64), mask="tensor", sequences=2, queries=(1, 200), keys=(1, 200)),
        "d64 documents": Configuration((64, 64), mask="documents", batch=2),
        "d128 documents causal": Configuration((128, 128), causal=True, mask="documents"),
        "d64 prefix causal": Configuration((64, 64), causal=True, mask="prefix"),
        **{f"d{d} bias": Configuration((d, d), bias="tensor", heads=(2, 2), queries=(1, 200)) for d in (64, 128)},
        "d64 bias causal": Configuration((64, 64), causal=True, bias="tensor"),
        "d128 bias pair": Configuration((128, 128), bias="tensor", **pair),
        "d192,128 bias": Configuration((192, 128), bias="tensor", **large),
        "d256 bias": Configuration((256, 256), bias="tensor", **large),
        "d64 bias, 4 heads of 2": Configuration((64, 64), bias="tensor", heads=(4, 2), queries=(1, 150)),
        "d64 packed bias": Configuration((64, 64), bias="tensor", sequences=2, queries=(1, 200), keys=(1, 200)),
        "d64 bias mask": Configuration((64, 64), bias="tensor", mask="tensor"),
        "d128 e4m3 bias": Configuration((128, 128), "F8_E4M3", bias="tensor", queries=(1, 256)),
        "d64 alibi": Configuration((64, 64), bias="alibi", heads=(2, 2), batch=2, queries=(1, 150), keys=(1, 200)),
        "d128 alibi causal": Configuration((128, 128), causal=True, bias="alibi", heads=(2, 2), queries=(1, 200)),
        **{f"d{d} block mask": Configuration((d, d), mask="blocks", heads=(2, 2), queries=(129, 600), keys=(100, 700)) for d in (64, 128)},
        "d128 block mask, up to 128 queries": Configuration((128, 128), mask="blocks", queries=(1, 128), keys=(100, 700)),
        "d128 block mask causal": Configuration((128, 128), causal=True, mask="blocks", queries=(129, 600), keys=(100, 700)),
        "d128 e4m3 descale": Configuration((128, 128), "F8_E4M3", descale=True, heads=(4, 2), batch=2, queries=(1, 100), keys=(1, 200)),
        "d64 e5m2 descale causal": Configuration((64, 64), "F8_E5M2", causal=True, descale=True, heads=(2, 2), queries=(1, 200)),
        "d128 e4m3 descale pair": Configuration((128, 128), "F8_E4M3", descale=True, **pair),
        "d128 e4m3 descale bias": Configuration((128, 128), "F8_E4M3", descale=True, bias="tensor", queries=(1, 256)),
        "d64, 3 splits": Configuration((64, 64), splits=3),
        "d128 causal, 3 splits": Configuration((128, 128), causal=True, splits=3),
        "d128 fp16, 2 splits": Configuration((128, 128), "F16", splits=2),
    }
    small = {"queries": (1, 260), "keys": (1, 260), "backward": True, "deterministic": True}
    atomic = {"queries": (1, 200), "keys": (100, 520), "backward": True}
    backward = {
        **{f"d{d} backward": Configuration((d, d), **small) for d in (64, 96, 128)},
        **{f"d{d} causal backward": Configuration((d, d), causal=True, **small) for d in (64, 128)},
        "d128 fp16 backward": Configuration((128, 128), "F16", **small),
        "d64 window backward": Configuration((64, 64), window=True, **small),
        **{f"d{d} softcap backward": Configuration((d, d), softcap=True, contract=True, **small) for d in (64, 128)},
        "d64 backward, 4 heads of 2": Configuration((64, 64), heads=(4, 2), **(small | {"queries": (1, 150)})),
        "d192,128 backward": Configuration((192, 128), **small),
        "d192,128 causal backward": Configuration((192, 128), causal=True, **small),
        **{
            f"d{d} packed backward": Configuration((d, d), sequences=2, **(small | {"queries": (1, 150), "keys": (1, 150)}))
            for d in (64, 128)
        },
        "d64 packed causal backward": Configuration((64, 64), causal=True, sequences=2, **(small | {"queries": (1, 150), "keys": (1, 150)})),
        "d256 backward": Configuration((256, 256), **small),
        "d256 causal backward": Configuration((256, 256), causal=True, **small),
        "d256 fp16 backward": Configuration((256, 256), "F16", **small),
        "d256 backward, 4 heads of 2": Configuration((256, 256), heads=(4, 2), **(small | {"queries": (1, 150)})),
        **{f"d{d} backward, any order": Configuration((d, d), **atomic) for d in (64, 128)},
        "d64 causal backward, any order": Configuration((64, 64), causal=True, **atomic),
        "d192,128 backward, any order": Configuration((192, 128), **atomic),
        "d64 backward, any order, 4 heads of 2": Configuration((64, 64), heads=(4, 2), **(atomic | {"queries": (1, 150), "keys": (1, 300)})),
    }
    # one CTA runs what the model, which asks for no such choice, has tuned for pairs
    forward["d128, no pairs"].settings.update({"exp2.frequency": 16, "exp2.startFragment": 1})
    return {**forward, **backward}


def number(generator, least, most):
    return int(torch.randint(least, most + 1, (), generator=generator))


def stored(tensor, format):
    """A tensor as a file has it."""
    rounded = tensor.to(DTYPES[format]).contiguous()
    return Array(format, tuple(rounded.shape), bytes(rounded.view(torch.uint8).flatten().tolist()))


def lengths(generator, count, sizes):
    """Sizes of sequences, and where they begin."""
    each = [number(generator, *sizes) for _ in range(count)]
    return each, [sum(each[:i]) for i in range(count + 1)]


def draw_tensor(generator, sizes, tensors, metadata):
    """A mask of which some keys are seen, few or many, in all heads or in each."""
    batch, heads, queries, keys = sizes
    shape = (batch, 1 if number(generator, 0, 1) else heads, queries, keys)
    tensors["mask"] = stored(torch.rand(shape, generator=generator) < (0.1 + 0.85 * torch.rand((), generator=generator)), "BOOL")


def draw_documents(generator, sizes, tensors, metadata):
    """Documents one behind the other, at the same places of queries and keys."""
    batch, _, queries, keys = sizes
    ends = torch.rand(batch, 3, generator=generator).sort().values
    for name, count in [("q_segments", queries), ("k_segments", keys)]:
        places = (torch.arange(count) + 0.5) / count
        tensors[name] = stored((places[None, :, None] > ends[:, None]).sum(-1), "I32")


def draw_prefix(generator, sizes, tensors, metadata):
    metadata["prefix"] = str(number(generator, 1, sizes[-1]))


def draw_blocks(generator, sizes, tensors, metadata):
    """Blocks of keys for each block of queries and each head. Half of the problems have a mask as well; then blocks without a
    hidden key are in a list of their own, to which FlashAttention-4 applies no mask."""
    batch, heads, queries, keys = sizes
    block_q = 256 if queries > 128 else 128
    metadata |= {"block_q": str(block_q), "block_k": "128"}
    rows, columns = math.ceil(queries / block_q), math.ceil(keys / 128)
    seen = torch.rand(batch, heads, rows, columns, generator=generator) < 0.6
    full = torch.zeros_like(seen)
    if number(generator, 0, 1):
        full = seen & (torch.rand(seen.shape, generator=generator) < 0.5)
        if metadata["causal"] == "true":  # those that lie before the diagonal as a whole
            first, last = torch.arange(rows) * block_q + keys - queries, torch.arange(columns) * 128 + 127
            full &= last <= first[:, None]
        whole = full.repeat_interleave(block_q, 2).repeat_interleave(128, 3)[:, :, :queries, :keys]
        tensors["mask"] = stored(whole | (torch.rand(whole.shape, generator=generator) < 0.5), "BOOL")
        lists(full, "full_kv_num_blocks", "full_kv_indices", tensors)
    lists(seen & ~full, "kv_num_blocks", "kv_indices", tensors)


def lists(chosen, counts, indices, tensors):
    """The numbers of chosen blocks, ascending, those that are not behind them; and how many there are."""
    order = torch.argsort((~chosen).to(torch.int32), dim=-1, stable=True)
    tensors[counts], tensors[indices] = stored(chosen.sum(-1), "I32"), stored(order, "I32")


draw_mask = {"tensor": draw_tensor, "documents": draw_documents, "prefix": draw_prefix, "blocks": draw_blocks}


def draw(configuration, seed):
    """A random problem of a configuration: its tensors, its metadata and a line that says what was drawn. Scores have a spread
    between 0.5 and 32, and in half of the problems key after key or one key alone is larger, so that maxima grow in later blocks."""
    of = configuration
    generator = torch.Generator().manual_seed(seed)
    normal = lambda *shape: torch.randn(*shape, generator=generator)
    (heads, kv_heads), (dim, v_dim) = of.heads, of.dims
    spread = 2.0 ** number(generator, -1, 5)
    scale = 1 / math.sqrt(dim) if number(generator, 0, 1) else round(0.02 + 0.3 * float(torch.rand((), generator=generator)), 3)
    tensors, metadata = {}, {"scale": repr(scale), "causal": "true" if of.causal else "false"}
    if of.sequences:
        queries, starts = lengths(generator, of.sequences, of.queries)
        keys, k_starts = lengths(generator, of.sequences, of.keys)
        q, k, v = normal(starts[-1], heads, dim), normal(k_starts[-1], kv_heads, dim), normal(k_starts[-1], kv_heads, v_dim)
        tensors["cu_seqlens_q"] = stored(torch.tensor(starts), "I32")
        tensors["cu_seqlens_k"] = stored(torch.tensor(k_starts), "I32")
        key_axis = 0
    else:
        queries, keys = number(generator, *of.queries), number(generator, *of.keys)
        q, k, v = (normal(of.batch, count, *size) for count, *size in [(heads, queries, dim), (kv_heads, keys, dim), (kv_heads, keys, v_dim)])
        key_axis = 2
    shape = number(generator, 0, 3)  # 0, 1: as they are; 2: larger from key to key; 3: one key is larger
    q = q * (spread / math.sqrt(dim) / scale)
    if shape == 2:
        sizes = [1] * k.dim()
        sizes[key_axis] = -1
        k = k * torch.linspace(0.1, 1.5, k.shape[key_axis]).reshape(sizes)
    if shape == 3:
        k.select(key_axis, number(generator, 0, k.shape[key_axis] - 1)).mul_(4)
    if of.page:
        pages = math.ceil(keys / of.page)
        order = torch.randperm(pages, generator=generator)
        padded = [torch.zeros(pages * of.page, kv_heads, tensor.shape[-1]) for tensor in (k, v)]
        for tensor, into in zip((k, v), padded):
            into[:keys] = tensor[0].transpose(0, 1)
        k, v = (torch.empty(pages, of.page, *into.shape[1:]).index_copy_(0, order, into.reshape(pages, of.page, *into.shape[1:])) for into in padded)
        tensors["block_table"] = stored(order[None], "I32")
        tensors["seqused_k"] = stored(torch.tensor([keys]), "I32")
    if of.window:
        metadata["window"] = f"{number(generator, 0, 200)},{number(generator, 0, 100)}"
    if of.softcap:
        metadata["softcap"] = str(number(generator, 2, 30))
    if of.sink:
        tensors["sink"] = stored(normal(heads) * 3, of.format)
    sizes = (of.sequences or of.batch, heads, *(max(count) if of.sequences else count for count in (queries, keys)))
    if of.mask in draw_mask:
        draw_mask[of.mask](generator, sizes, tensors, metadata)
    if of.bias == "tensor":
        tensors["bias"] = stored(normal(*sizes) * 2.0 ** number(generator, -3, 3), "F32" if number(generator, 0, 1) else of.wide)
    if of.bias == "alibi":
        tensors["alibi_slopes"] = stored(torch.rand(sizes[:2], generator=generator) / 8, "F32")
    if of.descale:
        for name in "qkv":
            tensors[f"{name}_descale"] = stored(2.0 ** torch.randn(of.batch, kv_heads, generator=generator) / 2, "F32")
    tensors = {"q": stored(q, of.format), "k": stored(k, of.format), "v": stored(v, of.format), **tensors}
    if of.backward:
        tensors["dout"] = stored(normal(*q.shape[:-1], v_dim), of.format)
    told = f"{queries} × {keys}, spread {spread:g}, {['normal', 'normal', 'growing keys', 'one large key'][shape]}"
    return tensors, metadata, told
