// One of FlashAttention-2's forward kernels under a name of its own: which one the macros say.
#include "flash_fwd_launch_template.h"

using Parameters = FLASH_NAMESPACE::Flash_fwd_params;
using Traits = Flash_fwd_kernel_traits<DIM, BLOCK_M, BLOCK_N, WARPS, false, false, ELEMENT>;

#if SPLITS > 1
extern "C" __global__ void attend(const __grid_constant__ Parameters parameters) {
  FLASH_NAMESPACE::compute_attn_splitkv<Traits, CAUSAL, LOCAL, ALIBI, EVEN, EVEN_K, SOFTCAP, true, false>(parameters);
}

extern "C" __global__ void combine(const __grid_constant__ Parameters parameters) {
  FLASH_NAMESPACE::combine_attn_seqk_parallel<Traits, DIM % 128 == 0 ? 4 : DIM % 64 == 0 ? 8 : 16, LOG_SPLITS, WHOLE_DIM>(parameters);
}
#else
extern "C" __global__ void attend(const __grid_constant__ Parameters parameters) {
  FLASH_NAMESPACE::compute_attn<Traits, false, CAUSAL, LOCAL, ALIBI, EVEN, EVEN_K, SOFTCAP, false>(parameters);
}
#endif

// The size of a CTA's shared memory, for who launches it.
extern "C" __constant__ int shared_bytes = Traits::kSmemSize;
