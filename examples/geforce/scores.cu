// Attention of MXFP8 queries and keys, one warp for 16 queries: scores by mma.sync with scale factors, four blocks of 32 dimensions whose
// factors are the four bytes of a word; P·V by mma.sync of bf16.
#include <cuda_bf16.h>
#include <cstdint>

constexpr int dim = 128, blocks = dim / 32, columns = dim / 8;

__device__ void multiply_scaled(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], uint32_t aFactors, uint32_t bFactors, uint16_t byte) {
  asm volatile("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 "
               "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3},{%10},{%11,%12},{%13},{%11,%14};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(aFactors), "h"(byte), "n"(1), "r"(bFactors), "n"(2));
}

__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ uint32_t pair(__nv_bfloat16 low, __nv_bfloat16 high) {
  return uint32_t(__bfloat16_as_ushort(low)) | uint32_t(__bfloat16_as_ushort(high)) << 16;
}

/// The largest or the sum of a row's numbers in the four lanes that share it.
template <class F> __device__ float over_quad(float x, F combine) {
  x = combine(x, __shfl_xor_sync(0xffffffff, x, 1));
  return combine(x, __shfl_xor_sync(0xffffffff, x, 2));
}

extern "C" __global__ void attend(const uint8_t* q, const uint32_t* q_block_scale, const uint8_t* k, const uint32_t* k_block_scale,
                                  const __nv_bfloat16* v, __nv_bfloat16* out, float* lse, float scale, int keys) {
  const int lane = threadIdx.x, group = lane / 4, thread = lane % 4, first = blockIdx.x * 16;
  const float factor = scale * 1.4426950408889634f;
  // Factors of row group in lane 2 of the four, of row group + 8 in lane 3 (thread-id 1); of a key in lane 2 (thread-id 2).
  const uint32_t queryFactors = q_block_scale[first + group + (thread == 3 ? 8 : 0)];
  float o[columns][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  for (int key = 0; key < keys; key += 16) {
    float s[2][4] = {};
    for (int tile = 0; tile < 2; tile++) {
      const int column = key + 8 * tile + group;
      const uint32_t keyFactors = k_block_scale[column];
#pragma unroll
      for (int block = 0; block < blocks; block++) {
        uint32_t a[4], b[2];
        for (int i = 0; i < 4; i++)
          a[i] = *reinterpret_cast<const uint32_t*>(q + (first + group + 8 * (i & 1)) * dim + 32 * block + 4 * thread + 16 * (i / 2));
        for (int i = 0; i < 2; i++)
          b[i] = *reinterpret_cast<const uint32_t*>(k + column * dim + 32 * block + 4 * thread + 16 * i);
        multiply_scaled(s[tile], a, b, queryFactors, keyFactors, block);
      }
    }
    uint32_t p[4];
    for (int half = 0; half < 2; half++) {
      float most = largest[half];
      for (int tile = 0; tile < 2; tile++) most = fmaxf(most, fmaxf(s[tile][2 * half], s[tile][2 * half + 1]));
      most = over_quad(most, [](float x, float y) { return fmaxf(x, y); });
      const float shrink = exp2f((largest[half] - most) * factor);
      largest[half] = most;
      sum[half] *= shrink;
      for (int n = 0; n < columns; n++) o[n][2 * half] *= shrink, o[n][2 * half + 1] *= shrink;
      for (int tile = 0; tile < 2; tile++) {
        const float x = exp2f((s[tile][2 * half] - most) * factor), y = exp2f((s[tile][2 * half + 1] - most) * factor);
        sum[half] += x + y;
        p[half + 2 * tile] = pair(__float2bfloat16_rn(x), __float2bfloat16_rn(y));
      }
    }
    for (int n = 0; n < columns; n++) {
      const __nv_bfloat16* from = v + (key + 2 * thread) * dim + 8 * n + group;
      multiply(o[n], p, pair(from[0], from[dim]), pair(from[8 * dim], from[9 * dim]));
    }
  }
  for (int half = 0; half < 2; half++) {
    const float total = over_quad(sum[half], [](float x, float y) { return x + y; });
    const int row = first + group + 8 * half;
    for (int n = 0; n < columns; n++)
      for (int i = 0; i < 2; i++) out[row * dim + 8 * n + 2 * thread + i] = __float2bfloat16_rn(o[n][2 * half + i] / total);
    if (thread == 0) lse[row] = (largest[half] * factor + log2f(total)) * 0.6931471805599453f;
  }
}
