// The source of float32-silicon.ts: runs every rounding mode of PTX add, mul and fma on fp32, with
// and without .ftz, over the patterns of float32-patterns.ts, and prints one hash per instruction
// and the bits of each probe, in the order of the instructions.
// Build: nvcc -arch=sm_90 -o float32-silicon float32-silicon.cu
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr uint32_t seed = 20260801;
constexpr int patternCount = 1 << 17;
constexpr int instructionCount = 24;

#define BINARY(slot, name)                                                                         \
  asm(name " %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));                                        \
  out[slot] = __float_as_uint(result);
#define TERNARY(slot, name)                                                                        \
  asm(name " %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));                            \
  out[slot] = __float_as_uint(result);

__global__ void evaluate(const uint32_t *operands, uint32_t *results, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float a = __uint_as_float(operands[3 * i]);
  float b = __uint_as_float(operands[3 * i + 1]);
  float c = __uint_as_float(operands[3 * i + 2]);
  float result;
  uint32_t *out = results + (size_t)i * instructionCount;
  BINARY(0, "add.rn.f32")
  BINARY(1, "add.rz.f32")
  BINARY(2, "add.rm.f32")
  BINARY(3, "add.rp.f32")
  BINARY(4, "add.rn.ftz.f32")
  BINARY(5, "add.rz.ftz.f32")
  BINARY(6, "add.rm.ftz.f32")
  BINARY(7, "add.rp.ftz.f32")
  BINARY(8, "mul.rn.f32")
  BINARY(9, "mul.rz.f32")
  BINARY(10, "mul.rm.f32")
  BINARY(11, "mul.rp.f32")
  BINARY(12, "mul.rn.ftz.f32")
  BINARY(13, "mul.rz.ftz.f32")
  BINARY(14, "mul.rm.ftz.f32")
  BINARY(15, "mul.rp.ftz.f32")
  TERNARY(16, "fma.rn.f32")
  TERNARY(17, "fma.rz.f32")
  TERNARY(18, "fma.rm.f32")
  TERNARY(19, "fma.rp.f32")
  TERNARY(20, "fma.rn.ftz.f32")
  TERNARY(21, "fma.rz.ftz.f32")
  TERNARY(22, "fma.rm.ftz.f32")
  TERNARY(23, "fma.rp.ftz.f32")
}

const char *names[instructionCount] = {
    "add.rn.f32",     "add.rz.f32",     "add.rm.f32",     "add.rp.f32",
    "add.rn.ftz.f32", "add.rz.ftz.f32", "add.rm.ftz.f32", "add.rp.ftz.f32",
    "mul.rn.f32",     "mul.rz.f32",     "mul.rm.f32",     "mul.rp.f32",
    "mul.rn.ftz.f32", "mul.rz.ftz.f32", "mul.rm.ftz.f32", "mul.rp.ftz.f32",
    "fma.rn.f32",     "fma.rz.f32",     "fma.rm.f32",     "fma.rp.f32",
    "fma.rn.ftz.f32", "fma.rz.ftz.f32", "fma.rm.ftz.f32", "fma.rp.ftz.f32"};

// The finalizer of MurmurHash3.
uint32_t mix(uint32_t h) {
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  h ^= h >> 16;
  return h;
}

const uint32_t specials[24] = {
    0x00000000, 0x00000001, 0x00000002, 0x00400000, 0x007fffff, 0x00800000, 0x00800001, 0x00ffffff,
    0x33000000, 0x33800000, 0x3effffff, 0x3f000000, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x3fffffff,
    0x40000000, 0x4b000000, 0x4b800000, 0x7f000000, 0x7f7ffffe, 0x7f7fffff, 0x7f800000, 0x7fc00000};

int clampExponent(int exponent) { return exponent < 0 ? 0 : exponent > 254 ? 254 : exponent; }

uint32_t assemble(uint32_t sign, int exponent, uint32_t fraction) {
  return sign << 31 | (uint32_t)clampExponent(exponent) << 23 | (fraction & 0x7fffff);
}

void pattern(uint32_t patternSeed, uint32_t index, uint32_t *out) {
  uint32_t base = mix(patternSeed + index * 0x9e3779b9u);
  uint32_t w[6];
  for (uint32_t k = 0; k < 6; k++) w[k] = mix(base + (k + 1) * 0x6a09e667u);
  uint32_t signs = w[3], shape = w[4], gaps = w[5];
  int exponentA = w[0] >> 23 & 255, exponentB = w[1] >> 23 & 255, exponentC = w[2] >> 23 & 255;
  uint32_t fractions[3] = {w[0], w[1], w[2]};
  for (int k = 0; k < 3; k++) {
    uint32_t kind = shape >> 3 * k & 7, length = shape >> (9 + 5 * k) & 31;
    uint32_t low = length >= 23 ? 0x7fffff : (1u << length) - 1;
    if (kind == 1) fractions[k] &= ~low;
    if (kind == 2) fractions[k] |= low;
    if (kind == 3) fractions[k] = (0x800000u >> (length % 24)) & 0x7fffff;
    if (kind == 4) fractions[k] = ~low & 0x7fffff;
    if (kind == 5) fractions[k] = low;
  }
  int near = (int)(gaps & 3) - 1, far = 22 + (int)((gaps >> 2 & 0xff) % 39);
  int nearC = (int)((gaps >> 10 & 0xff) % 7) - 3, farC = (int)((gaps >> 18 & 0xff) % 121) - 60;
  uint32_t signA = signs & 1, signB = signs >> 1 & 1, signC = signs >> 2 & 1;
  bool wide = signs >> 3 & 1, same = signs >> 4 & 1;
  switch (index & 7) {
  case 0:
    break;
  case 1:
    exponentB = exponentA + near;
    signB = signA ^ 1;
    if (same) fractions[1] = fractions[0] ^ (fractions[1] & 15);
    break;
  case 2:
    exponentB = wide ? exponentA - far : exponentA + far;
    break;
  case 3:
    exponentB = 127 - exponentA + near;
    break;
  case 4:
    exponentB = 381 - exponentA + near;
    break;
  case 5:
    exponentA &= 3;
    exponentB &= 3;
    exponentC &= 3;
    break;
  case 6:
    exponentA = 64 + (exponentA & 127);
    exponentB = 64 + (exponentB & 127);
    break;
  default:
    break;
  }
  if ((index & 7) != 0 && (index & 7) != 5) {
    exponentC = clampExponent(exponentA) + clampExponent(exponentB) - 127 + (wide ? farC : nearC);
    if (index & 8) signC = signA ^ signB ^ 1;
  }
  out[0] = assemble(signA, exponentA, fractions[0]);
  out[1] = assemble(signB, exponentB, fractions[1]);
  out[2] = assemble(signC, exponentC, fractions[2]);
  if ((index & 7) == 7) {
    out[0] = specials[w[0] % 24] | signA << 31;
    if (wide) out[1] = specials[w[1] % 24] | signB << 31;
    if (same) out[2] = specials[w[2] % 24] | signC << 31;
  }
}

// Operands around the smallest normal number, where the meaning of .ftz shows.
const uint32_t probes[][3] = {
    {0x3f7fffff, 0x00800000, 0x00000000}, // product (1 - 2^-24) 2^-126
    {0x3f7ff800, 0x00800400, 0x00000000}, // product (1 - 2^-26) 2^-126
    {0xbf7ff800, 0x00800400, 0x80000000}, // its negative
    {0x3f800400, 0x007ffc00, 0x00000000}, // the same product from a subnormal operand
    {0x1a000000, 0x9a000000, 0x00800000}, // 2^-126 - 2^-150
    {0x19800000, 0x99800000, 0x00800000}, // 2^-126 - 2^-151
    {0x0f800000, 0x0f800000, 0x80800000}, // -2^-126 + 2^-192
    {0x0f800000, 0x0f800000, 0x807fffff}, // 2^-192, and a subnormal addend
    {0x0f800000, 0x8f800000, 0x00000000}, // -2^-192
    {0x807fffff, 0x3f800000, 0x80000000}, // a negative subnormal
    {0x00c00000, 0x80800000, 0x00000000}, // the sum is a subnormal
    {0xaedbe6ff, 0x4b400000, 0x00000000}, // -1e-10 and 12582912
};

int main() {
  int probeCount = sizeof(probes) / sizeof(probes[0]);
  int count = patternCount + probeCount;
  std::vector<uint32_t> operands(3 * count);
  for (int i = 0; i < patternCount; i++) pattern(seed, i, &operands[3 * i]);
  for (int i = 0; i < 3 * probeCount; i++) operands[3 * patternCount + i] = probes[i / 3][i % 3];
  uint32_t *deviceOperands, *deviceResults;
  std::vector<uint32_t> results((size_t)count * instructionCount);
  cudaMalloc(&deviceOperands, operands.size() * 4);
  cudaMalloc(&deviceResults, results.size() * 4);
  cudaMemcpy(deviceOperands, operands.data(), operands.size() * 4, cudaMemcpyHostToDevice);
  evaluate<<<(count + 255) / 256, 256>>>(deviceOperands, deviceResults, count);
  cudaMemcpy(results.data(), deviceResults, results.size() * 4, cudaMemcpyDeviceToHost);
  cudaError_t error = cudaGetLastError();
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  printf("%s sm_%d%d %s\n", properties.name, properties.major, properties.minor,
         cudaGetErrorString(error));
  uint32_t hash = 0x811c9dc5u;
  for (int i = 0; i < 3 * patternCount; i++) hash = mix(hash ^ operands[i]) + 0x9e3779b9u;
  printf("operands %08x\n", hash);
  for (int slot = 0; slot < instructionCount; slot++) {
    hash = 0x811c9dc5u;
    int strayNaNs = 0;
    for (int i = 0; i < patternCount; i++) {
      uint32_t bits = results[(size_t)i * instructionCount + slot];
      if ((bits & 0x7fffffff) > 0x7f800000) {
        if (bits != 0x7fffffff) strayNaNs++;
        bits = 0x7fffffff;
      }
      hash = mix(hash ^ bits) + 0x9e3779b9u;
    }
    printf("%s %08x stray NaNs %d\n", names[slot], hash, strayNaNs);
  }
  for (int i = 0; i < probeCount; i++) {
    printf("probe %08x %08x %08x:", probes[i][0], probes[i][1], probes[i][2]);
    for (int slot = 0; slot < instructionCount; slot++)
      printf(" %08x", results[(size_t)(patternCount + i) * instructionCount + slot]);
    printf("\n");
  }
  return error != cudaSuccess;
}
