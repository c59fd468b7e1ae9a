// What FlashAttention-2's parameters take of PyTorch: the state of dropout's generator, which no kernel here uses.
#pragma once
#include <cstdint>

namespace at {
struct PhiloxCudaState {
  uint64_t seed, offset;
};
}  // namespace at
