#pragma once
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <tuple>

namespace at::cuda::philox {
__device__ inline std::tuple<uint64_t, uint64_t> unpack(PhiloxCudaState state) { return {state.seed, state.offset}; }
}  // namespace at::cuda::philox
