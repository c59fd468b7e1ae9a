from .recurrence import recurrence


def _decays(q, g, g_gamma):
    return g if g_gamma is None else g_gamma.expand(*q.shape[:2], -1)


def chunk_simple_gla(q, k, v, g=None, g_gamma=None, scale=None, initial_state=None,
                     output_final_state=False, state_v_first=False, cu_seqlens=None,
                     cu_seqlens_cpu=None, **kwargs):  # fmt: skip
    g = _decays(q, g, g_gamma)
    return recurrence(q, k, v, g, None, scale, initial_state, output_final_state, False, cu_seqlens)


def fused_recurrent_simple_gla(q, k, v, g=None, g_gamma=None, scale=None, initial_state=None,
                               output_final_state=False, reverse=False, state_v_first=False,
                               cu_seqlens=None, **kwargs):  # fmt: skip
    g = _decays(q, g, g_gamma)
    return recurrence(q, k, v, g, None, scale, initial_state, output_final_state, False, cu_seqlens)
