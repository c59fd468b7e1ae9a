"""Masks and modified scores of a problem as FlashAttention-4 takes them: functions that it compiles into its kernels, and the
tensors that these read."""

import cutlass
import cutlass.cute as cute
from cutlass import const_expr
from flash_attn.cute.utils import scalar_to_ssa


def mask_mod(places, causal, left, right, prefix):
    """Whether a query sees a key: a mask and segments by their places among the kernel's tensors, and what the problem says
    beside, which FlashAttention-4 leaves to the function. Sides of the window are None where there is no limit."""
    mask, q_segments, k_segments = (places.get(name) for name in ["mask", "q_segments", "k_segments"])
    last = 0 if causal and right is None else min(0, right) if causal else right

    @cute.jit
    def sees(batch, head, query, key, lengths, tensors):
        seen = key >= 0
        diagonal = query + (lengths.seqlen_k - lengths.seqlen_q)
        if const_expr(last is not None):
            seen = seen & (key <= diagonal + last)
        if const_expr(left is not None):
            seen = seen & (key >= diagonal - left)
        if const_expr(prefix > 0):
            seen = seen | (key < prefix)
        if const_expr(mask is not None):
            seen = seen & (scalar_to_ssa(tensors[mask][batch[0], head[0], query[0], key[0]], cutlass.Uint8) != 0)
        if const_expr(q_segments is not None):
            own = scalar_to_ssa(tensors[q_segments][batch[0], query[0]], cutlass.Int32)
            seen = seen & (scalar_to_ssa(tensors[k_segments][batch[0], key[0]], cutlass.Int32) == own)
        return seen

    return sees


def bias_mod(place):
    """Scores with a bias, the tensor at `place`, added."""

    @cute.jit
    def biased(scores, batch, head, q_idx, kv_idx, seqlen_info, aux_tensors):
        return scores + scalar_to_ssa(aux_tensors[place][batch[0], head[0], q_idx[0], kv_idx[0]].to(cutlass.Float32), cutlass.Float32)

    return biased


def alibi_mod(place):
    """Scores less the distance from the diagonal times a slope, of the tensor at `place`."""

    @cute.jit
    def sloped(scores, batch, head, q_idx, kv_idx, seqlen_info, aux_tensors):
        distance = q_idx + (seqlen_info.seqlen_k - seqlen_info.seqlen_q) - kv_idx
        slope = scalar_to_ssa(aux_tensors[place][batch[0], head[0]].to(cutlass.Float32), cutlass.Float32)
        return scores - slope * cute.where(distance < 0, -distance, distance).to(cutlass.Float32)

    return sloped
