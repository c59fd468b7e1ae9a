"""What FlashAttention-2's forward kernels are given: one struct, Flash_fwd_params of its flash.h, in the order of its members."""

import struct

POINTER, LONG, INT, FLOAT, BYTE = "pointer", "s64", "s32", "f32", "u8"
BYTES = {POINTER: 8, LONG: 8, INT: 4, FLOAT: 4, BYTE: 1}


def members(kind, names):
    return [(name, kind) for name in names.split()]


FORWARD = [
    *members(POINTER, "q k v"),
    *members(LONG, "q_batch k_batch v_batch q_row k_row v_row q_head k_head v_head"),
    *members(INT, "heads kv_heads group"),
    *members(POINTER, "out out_parts"),
    *members(LONG, "out_batch out_row out_head"),
    *members(POINTER, "weights lse lse_parts"),
    *members(INT, "batch queries keys new_keys dim queries_rounded keys_rounded dim_rounded rotary_dim all_queries"),
    *members(FLOAT, "scale scale_log2"),
    *members(POINTER, "query_starts key_starts left_padding used_keys block_mask new_k new_v"),
    *members(LONG, "new_k_batch new_v_batch new_k_row new_v_row new_k_head new_v_head"),
    *members(POINTER, "cosines sines cache_index block_table"),
    *members(LONG, "block_table_batch"),
    *members(INT, "page"),
    *members(FLOAT, "kept_share"),
    *members(BYTE, "kept_share_byte"),
    *members(FLOAT, "kept_factor scaled_kept_factor"),
    *members(INT, "window_left window_right"),
    *members(FLOAT, "softcap"),
    *members(LONG, "seed offset"),
    *members(POINTER, "random_state"),
    *members(BYTE, "is_bf16 is_causal are_keys_cumulative is_rotary_interleaved"),
    *members(INT, "splits"),
    *members(POINTER, "slopes"),
    *members(LONG, "slopes_batch"),
    *members(BYTE, "is_lse_packed are_groups_swapped"),
]

# Flash_bwd_params: what the forward takes, and behind it
BACKWARD = [
    *FORWARD,
    *members(POINTER, "dout dq dk dv dq_sums dk_sums dv_sums"),
    *members(LONG, "dout_batch dout_row dout_head dq_batch dk_batch dv_batch dq_row dk_row dv_row dq_head dk_head dv_head"),
    *members(POINTER, "delta"),
    *members(BYTE, "is_deterministic"),
    *members(LONG, "dq_sums_part"),
]


def size_of(layout):
    """The size of the struct by the rules of C: every member at a multiple of its size."""
    end = 0
    for _, kind in layout:
        end = -(-end // BYTES[kind]) * BYTES[kind] + BYTES[kind]
    return -(-end // 8) * 8


def parameter(layout, values):
    """The struct as a launch file has it; what is not given is 0, or a null pointer. A pointer is the name of a tensor."""
    unknown = set(values) - {name for name, _ in layout}
    if unknown:
        raise KeyError(f"the struct has no {', '.join(sorted(unknown))}")

    def field(name, kind):
        if kind == POINTER:
            return {"tensor": values[name]} if name in values else {"scratch": 0}
        value = values.get(name, 0)
        return {kind: struct.unpack("<f", struct.pack("<f", value))[0] if kind == FLOAT else value}

    return {"struct": [field(name, kind) for name, kind in layout]}
