from .recurrence import recurrence


def chunk_delta_rule(q, k, v, beta, scale=None, initial_state=None, output_final_state=False,
                     use_qk_l2norm_in_kernel=False, cu_seqlens=None, cu_seqlens_cpu=None,
                     **kwargs):  # fmt: skip
    return recurrence(q, k, v, None, beta, scale, initial_state, output_final_state,
                      use_qk_l2norm_in_kernel, cu_seqlens)  # fmt: skip


def fused_recurrent_delta_rule(q, k, v, beta=None, scale=None, initial_state=None,
                               output_final_state=False, use_qk_l2norm_in_kernel=False,
                               cu_seqlens=None):  # fmt: skip
    return recurrence(q, k, v, None, beta, scale, initial_state, output_final_state,
                      use_qk_l2norm_in_kernel, cu_seqlens)  # fmt: skip
