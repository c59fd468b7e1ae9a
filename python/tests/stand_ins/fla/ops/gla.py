from .recurrence import recurrence


def chunk_gla(q, k, v, g, scale=None, initial_state=None, output_final_state=False,
              state_v_first=False, cu_seqlens=None, cu_seqlens_cpu=None):  # fmt: skip
    return recurrence(q, k, v, g, None, scale, initial_state, output_final_state, False, cu_seqlens)


def fused_recurrent_gla(q, k, v, gk=None, gv=None, scale=None, initial_state=None,
                        output_final_state=False, reverse=False, state_v_first=False,
                        cu_seqlens=None, **kwargs):  # fmt: skip
    return recurrence(
        q, k, v, gk, None, scale, initial_state, output_final_state, False, cu_seqlens
    )
