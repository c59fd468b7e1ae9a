"""Which of FlashInfer's kernels takes a problem, and how the problem is given to it."""

import math, pathlib, struct, sys

from flashproof.safetensors import Array
from record import Plan

HERE = pathlib.Path(__file__).parent
ELEMENTS = {"BF16": "__nv_bfloat16", "F16": "half"}
HOPPER_ELEMENTS = {"BF16": "cutlass::bfloat16_t", "F16": "cutlass::half_t"}
# As FlashInfer's just-in-time compiler has them.
FLAGS = ["-static-global-template-stub=false", "-use_fast_math", "-DNDEBUG", "-O3"]
FLAGS += [f"-DFLASHINFER_ENABLE_{name}" for name in ("F16", "BF16", "FP8_E4M3", "FP8_E5M2")]
INCLUDES = ["cccl/libcudacxx/include", "cccl/cub", "cccl/thrust", "include", "cutlass/include", "cutlass/tools/util/include"]


def plan_of(given, metadata, sources, backend):
    """Pages of one query each by the decode kernel, other pages by the batch prefill, one sequence by the single prefill."""
    is_paged = "block_table" in given
    q, k = given["q"], given["k"]
    if is_paged:
        batch, queries, heads, dim = q.shape
        kv_heads = k.shape[2]
    else:
        batch, (heads, queries, dim), kv_heads = 1, q.shape[-3:], k.shape[-3]
        if math.prod(q.shape[:-3]) != 1 or metadata.get("layout", "bhsd") != "bhsd" or "cu_seqlens_q" in given:
            sys.exit("a problem here is one sequence, heads first, or a cache in pages")
    if {"window", "softcap"} & set(metadata) or set(given) & {"bias", "mask", "sink", "alibi_slopes", "q_segments"}:
        sys.exit("problems with a window, a softcap or masks of their own are not recorded")
    source = "hopper" if backend == "fa3" else "single" if not is_paged else "decode" if queries == 1 else "paged"
    if source == "hopper" and is_paged:
        sys.exit("caches in pages are recorded with --backend fa2")
    group = heads // kv_heads
    macros = {"DIM": dim, "ELEMENT": ELEMENTS[q.dtype], "MASK": "kCausal" if metadata.get("causal") == "true" else "kNone"}
    if source == "hopper":
        macros["ELEMENT"] = HOPPER_ELEMENTS[q.dtype]
    elif source == "decode":
        macros |= {"TILE_Q": 0, "MMA_KV": 0, "GROUP": group, "MASK": "kNone"}  # the last query of a causal mask sees all keys
    else:
        macros |= {"TILE_Q": tile_of(queries * group), "GROUP": group}
        # As many keys as two CTAs of an H200 have room for; the program refuses others.
        room = (116736 - 2 * macros["TILE_Q"] * dim) // (64 * dim * (4 if macros["TILE_Q"] == 16 else 1))
        macros["MMA_KV"] = power_of_two(min(room, 4 if macros["TILE_Q"] == 128 else 8))
    numbers = {"heads": heads, "kv_heads": kv_heads, "scale": float(metadata.get("scale") or 1 / math.sqrt(dim))}
    tensors = {name: given[name] for name in "qkv"}
    if is_paged:
        rows = batch * queries
        numbers |= {"batch": batch, "rows": rows, "page": k.shape[1], "float_bytes": 64 * rows * heads * (dim + 1) * 4}
        tensors |= pages(given, batch, queries, k.shape[1])
    else:
        numbers |= {"queries": queries, "keys": k.shape[-2]}
    results = {"out": (q.dtype, (batch, queries, heads, dim)), "lse": ("F32", (batch, queries, heads))}
    flags = [*FLAGS, *(word for path in INCLUDES for word in ("-I", str(sources / path)))]
    return Plan(HERE / f"{source}.cu", tuple(flags), macros, numbers, tensors, results)


def tile_of(rows):
    """Queries, times heads of a group, of a CTA: FA2DetermineCtaTileQ of FlashInfer's utils.cuh, for dimensions below 256."""
    return 128 if rows > 64 else 64 if rows > 16 else 16


def power_of_two(most):
    return 8 if most >= 8 else 4 if most >= 4 else 2 if most >= 2 else 1


def integers(values):
    return Array("I32", (len(values),), struct.pack(f"<{len(values)}i", *values))


def pages(given, batch, queries, page):
    """The table of pages as FlashInfer takes it: the pages of all sequences, where each begins, and how full its last page is."""
    table, lengths = (list(struct.unpack(f"<{math.prod(given[name].shape)}i", given[name].data)) for name in ("block_table", "seqused_k"))
    width = len(table) // batch
    used = [-(-length // page) for length in lengths]
    starts = [sum(used[:i]) for i in range(batch + 1)]
    return {
        "pages": integers([one for i, count in enumerate(used) for one in table[i * width : i * width + count]]),
        "page_starts": integers(starts),
        "last_page_lengths": integers([length - page * (count - 1) for length, count in zip(lengths, used)]),
        "q_starts": integers([i * queries for i in range(batch + 1)]),
    }
