"""Which forward kernel FlashAttention-3 takes for a problem on an H200, and what its host code is given: the choices of its flash_api.cpp."""

import math

MULTIPROCESSORS = 132  # of an H200
ELEMENTS = {"BF16": "cutlass::bfloat16_t", "F16": "cutlass::half_t", "F8_E4M3": "cutlass::float_e4m3_t"}


def flag(value):
    return str(bool(value)).lower()


def up(number, step):
    return -(-number // step) * step


def tile(dim, dim_v, causal, local, bytes, softcap):
    """Queries and keys of a tile."""
    if bytes == 2:
        if dim <= 64:
            return (192, 128 if causal or local else 192)
        if dim <= 96:
            return (192, 128 if local else 144)
        if dim <= 128:
            return (128, 128 if causal or local else 176)
        if dim <= 192:
            return (128, 96 if local else 128 if dim_v <= 128 else 112)
        return (128, 64 if local else 80)
    if dim <= 64:
        return (192, 160)
    if dim <= 96:
        return (192, 128)
    if dim <= 128:
        return (128, 192 if softcap and local else 224)
    if dim <= 192:
        return (128, 128 if softcap and local else 160)
    return (128, 64 if local else 128)


def split_count(rows, key_blocks, sms):
    """The fewest parts of the keys with which the last wave of CTAs is nearly as full as it can be; `rows` counts tiles of queries."""
    if rows >= 0.8 * sms or key_blocks <= 4:
        return 1
    filled = {n: rows * n / sms / math.ceil(rows * n / sms) for n in range(1, min(128, sms, key_blocks) + 1)}
    return next(n for n in filled if filled[n] >= 0.85 * max(filled.values()))


def mask(queries, keys, metadata, causal):
    """Whether it is causal, whether it is a window, and how many keys to the left and right a query sees."""
    left, right = (int(one) for one in (metadata.get("window") or "-1,-1").split(","))
    left, right = -1 if left >= keys - 1 else left, -1 if right >= queries - 1 else right
    if causal:
        right = 0
    return left < 0 and right == 0, left >= 0 or right > 0, left if left >= 0 else keys - 1, right if right >= 0 else queries - 1


def configuration(q, k, v, metadata, splits=None, sms=MULTIPROCESSORS):
    """The macros of forward.cu and the numbers that its program takes, for tensors of [batch, heads, seqlen, dim] or [heads, seqlen, dim]."""
    heads, queries, dim = q.shape[-3:]
    batch, (kv_heads, keys, dim_v) = math.prod(q.shape[:-3]), v.shape[-3:]
    if dim not in (64, 96, 128, 192, 256) or dim_v not in (dim, 128 if dim == 192 else dim):
        raise ValueError(f"dimensions {dim} and {dim_v} are not recorded here")
    softcap = float(metadata.get("softcap") or 0)
    is_cut = 0 <= int((metadata.get("window") or "-1").split(",")[0]) < keys - 1
    is_causal = metadata.get("causal") == "true" and (queries > 1 or is_cut)
    causal, local, left, right = mask(queries, keys, metadata, is_causal)
    rows, columns = tile(dim, dim_v, causal, local, 2 if q.dtype != "F8_E4M3" else 1, softcap > 0)
    group = heads // kv_heads
    loaded = max(0, min(keys, right + left + 1 + rows)) if local else keys
    if splits is None:
        splits = split_count(batch * kv_heads * up(queries * group, rows) // rows, up(loaded, columns) // columns, sms)
    filled = lambda number: number / up(number, rows)
    pack = splits > 1 or group > 1 and filled(queries) < 0.9 * filled(queries * group)
    m_blocks = up(queries * (group if pack else 1), rows) // rows
    may_pair = (dim >= 128 if q.dtype != "F8_E4M3" else dim == 192) and not causal and not local and splits == 1
    macros = {
        "ELEMENT": ELEMENTS[q.dtype], "DIM": dim, "DIM_V": dim_v, "CLUSTER": 2 if may_pair and m_blocks % 2 == 0 else 1, "CAUSAL": flag(causal),
        "LOCAL": flag(local), "SOFTCAP": flag(softcap > 0), "PACK": flag(pack), "SPLIT": flag(splits > 1),
    }
    if splits > 1:
        macros["LOG_SPLITS"] = max(4 if dim_v <= 64 else 5, math.ceil(math.log2(splits)))
    numbers = {
        "batch": batch, "heads": heads, "kv_heads": kv_heads, "queries": queries, "keys": keys, "scale": float(metadata.get("scale") or 1 / math.sqrt(dim)),
        "softcap": softcap, "left": left, "right": right, "splits": splits, "multiprocessors": sms,
    }
    return macros, numbers


# How the backward's warpgroups share its products, by the macros of backward.cu.
SHARES = ["BLOCK_M", "BLOCK_N", "STAGES_DO", "STAGES_DS", "SWAP_SDP", "SWAP_DKV", "SWAP_DQ", "WARPGROUPS", "LAYOUT_SDP", "LAYOUT_DKV", "LAYOUT_DQ", "V_IN_REGISTERS"]


def shares(dim, is_masked, has_softcap, causal):
    """Queries and keys of a tile of the backward, and the like: run_mha_bwd_hdim… of flash_bwd_launch_template.h."""
    if dim == 64:
        return (96, 128, 2, 2, True, False, True, 2, 1, 2, 2, False) if causal and has_softcap else (128, 128, 2, 2, True, False, False, 2, 1, 2, 2, False)
    if dim == 96:
        return 64, 128, 2, 2, True, False, False, 2, 1, 2, 1, True
    if dim == 128:
        return (64, 128, 2, 2, True, False, False, 2, 1, 2, 1, False) if is_masked or has_softcap else (80, 128, 2, 2, True, False, True, 2, 1, 2, 1, False)
    if dim == 192:
        return 64, 96, 1, 1, False, True, False, 3, 1, 1, 1, False
    return 64, 80, 1, 1, False, True, True, 2, 1, 1, 1, False


def backward_configuration(q, k, v, metadata, deterministic, sms=MULTIPROCESSORS):
    """The macros of backward.cu and the numbers that its program takes."""
    heads, queries, dim = q.shape[-3:]
    batch, (kv_heads, keys, dim_v) = math.prod(q.shape[:-3]), v.shape[-3:]
    if dim not in (64, 96, 128, 192, 256) or dim_v != dim:
        raise ValueError(f"the backward of dimensions {dim} and {dim_v} is not recorded here")
    if deterministic and dim == 256:
        raise ValueError("FlashAttention-3 has no deterministic backward for dimension 256")
    softcap = float(metadata.get("softcap") or 0)
    causal, local, left, right = mask(queries, keys, metadata, metadata.get("causal") == "true")
    chosen = dict(zip(SHARES, shares(dim, causal or local, softcap > 0, causal)))
    macros = {
        "ELEMENT": ELEMENTS[q.dtype], "DIM": dim, "CAUSAL": flag(causal), "LOCAL": flag(local), "SOFTCAP": flag(softcap > 0), "DETERMINISTIC": flag(deterministic),
        "GROUPED": flag(heads != kv_heads), **{name: flag(one) if isinstance(one, bool) else one for name, one in chosen.items()},
    }
    numbers = {
        "batch": batch, "heads": heads, "kv_heads": kv_heads, "queries": queries, "keys": keys, "scale": float(metadata.get("scale") or 1 / math.sqrt(dim)),
        "softcap": softcap, "left": left, "right": right, "multiprocessors": sms,
    }
    return macros, numbers
