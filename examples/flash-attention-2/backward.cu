// FlashAttention-2's backward kernels under names of their own: which ones the macros say.
#include "flash_bwd_launch_template.h"

using Parameters = FLASH_NAMESPACE::Flash_bwd_params;
using Traits = Flash_bwd_kernel_traits<DIM, BLOCK_M, BLOCK_N, 8, LAYOUT_SDP, LAYOUT_DKV, LAYOUT_DQ, V_IN_REGISTERS, false, ELEMENT>;

extern "C" __global__ void sums(const __grid_constant__ Parameters parameters) {
  FLASH_NAMESPACE::compute_dot_do_o<true, Traits>(parameters);
}

// Without the zeros that dQ begins with: the deterministic backward is given them.
extern "C" __global__ void sums_alone(const __grid_constant__ Parameters parameters) {
  FLASH_NAMESPACE::compute_dot_do_o<false, Traits>(parameters);
}

extern "C" __global__ void gradients(const __grid_constant__ Parameters parameters) {
  FLASH_NAMESPACE::compute_dq_dk_dv_seqk_parallel<Traits, false, CAUSAL, LOCAL, ALIBI, EVEN, EVEN_K, SOFTCAP>(parameters);
}

extern "C" __global__ void convert(const __grid_constant__ Parameters parameters, const int parts) {
  FLASH_NAMESPACE::convert_dQ<Traits>(parameters, parts);
}

// The sizes of a CTA's shared memory, for who launches them.
extern "C" __constant__ int gradients_shared_bytes = Traits::kSmemSize1colblock;
extern "C" __constant__ int convert_shared_bytes = Traits::kSmemdQSize;
