import functools

import torch

from .recurrence import recurrence

#: A fault that a test may plant.
DROPS_BIAS = False


def _dispatched(function):
    """As fla's public names are: wrappers that take anything."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


@_dispatched
def chunk_gated_delta_rule(q, k, v, g, beta, scale=None, initial_state=None,
                           output_final_state=False, use_qk_l2norm_in_kernel=False,
                           use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False,
                           state_v_first=False, cu_seqlens=None, cu_seqlens_cpu=None,
                           chunk_indices=None, cp_context=None, **kwargs):  # fmt: skip
    return recurrence(q, k, v, g, beta, scale, initial_state, output_final_state,
                      use_qk_l2norm_in_kernel, cu_seqlens)  # fmt: skip


def fused_recurrent_gated_delta_rule(q, k, v, g=None, gk=None, gv=None, beta=None, scale=None,
                                     initial_state=None, output_final_state=False,
                                     use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False,
                                     A_log=None, dt_bias=None, use_beta_sigmoid_in_kernel=False,
                                     allow_neg_eigval=False, state_v_first=False, cu_seqlens=None,
                                     **kwargs):  # fmt: skip
    if use_gate_in_kernel:
        bias = 0 if dt_bias is None or DROPS_BIAS else dt_bias
        g = -A_log.exp() * torch.nn.functional.softplus(g + bias)
    if use_beta_sigmoid_in_kernel:
        beta = beta.sigmoid()
    return recurrence(q, k, v, g if gk is None else gk, beta, scale, initial_state,
                      output_final_state, use_qk_l2norm_in_kernel, cu_seqlens)  # fmt: skip


chunk_gdn = chunk_gated_delta_rule
