// FlashInfer's host code chooses among kernels when it runs, and so compiles them all. These macros take the place of its own and compile
// the one for the tile that the macros TILE_Q and MMA_KV name; where FlashInfer chooses another the program says so.
#pragma once
#include <flashinfer/utils.cuh>

#include <stdexcept>
#include <string>

inline void expect(const char* what, unsigned chosen, unsigned compiled) {
  if (chosen != compiled)
    throw std::runtime_error(std::string(what) + " " + std::to_string(compiled) + " is compiled, and FlashInfer takes " +
                             std::to_string(chosen));
}

// FlashInfer takes the largest power of two up to 8 that fits.
inline unsigned power_of_two(unsigned most) { return most >= 8 ? 8 : most >= 4 ? 4 : most >= 2 ? 2 : 1; }

#undef DISPATCH_CTA_TILE_Q
#define DISPATCH_CTA_TILE_Q(chosen, CTA_TILE_Q, ...) \
  {                                                  \
    expect("TILE_Q", chosen, TILE_Q);                \
    constexpr uint32_t CTA_TILE_Q = TILE_Q;          \
    __VA_ARGS__                                      \
  }

#undef DISPATCH_NUM_MMA_KV
#define DISPATCH_NUM_MMA_KV(most, NUM_MMA_KV, ...)  \
  {                                                 \
    expect("MMA_KV", power_of_two(most), MMA_KV);   \
    constexpr size_t NUM_MMA_KV = MMA_KV;           \
    __VA_ARGS__                                     \
  }

#undef DISPATCH_HEAD_DIM
#define DISPATCH_HEAD_DIM(chosen, HEAD_DIM, ...) \
  {                                              \
    expect("DIM", chosen, DIM);                  \
    constexpr size_t HEAD_DIM = DIM;             \
    __VA_ARGS__                                  \
  }

#undef DISPATCH_COMPUTE_CAP_DECODE_NUM_STAGES_SMEM
#define DISPATCH_COMPUTE_CAP_DECODE_NUM_STAGES_SMEM(capability, NUM_STAGES_SMEM, ...) \
  {                                                                                   \
    expect("compute capability", capability.first, 9);                                \
    constexpr uint32_t NUM_STAGES_SMEM = 2;                                           \
    __VA_ARGS__                                                                       \
  }

#undef DISPATCH_GQA_GROUP_SIZE
#define DISPATCH_GQA_GROUP_SIZE(chosen, GROUP_SIZE, ...) \
  {                                                      \
    expect("GROUP", chosen, GROUP);                      \
    constexpr size_t GROUP_SIZE = GROUP;                 \
    __VA_ARGS__                                          \
  }
