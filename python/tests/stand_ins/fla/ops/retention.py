import torch

from .simple_gla import chunk_simple_gla, fused_recurrent_simple_gla


def _decays(q):
    return (1 - 2.0 ** (-5.0 - torch.arange(q.shape[2], dtype=torch.float))).log()


def chunk_retention(q, k, v, scale=None, initial_state=None, output_final_state=False,
                    cu_seqlens=None, **kwargs):  # fmt: skip
    return chunk_simple_gla(
        q, k, v, g_gamma=_decays(q), scale=scale, initial_state=initial_state,
        output_final_state=output_final_state, cu_seqlens=cu_seqlens, **kwargs,
    )  # fmt: skip


def fused_recurrent_retention(q, k, v, scale=None, initial_state=None, output_final_state=False,
                              reverse=False, state_v_first=False, cu_seqlens=None, **kwargs):  # fmt: skip
    return fused_recurrent_simple_gla(
        q, k, v, g_gamma=_decays(q), scale=scale, initial_state=initial_state,
        output_final_state=output_final_state, cu_seqlens=cu_seqlens,
    )  # fmt: skip
