// Stands where the CUDA runtime stands under forward.cu's host code: nothing is allocated and nothing runs. Each launch, and each tensor map that it
// takes, becomes a line of JSON in the file FLASH_LAUNCHES; FLASH_ENTRIES is "entry bytes entry bytes …", the size of each kernel's parameter.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace {

// A function's variable: kernels are registered while those of files are still being made.
std::map<void const *, std::string> &kernels() {
  static std::map<void const *, std::string> names;
  return names;
}
struct { dim3 grid, block; size_t shared; } configuration;
int tensor_maps = 0;

std::ofstream &lines() {
  static std::ofstream file(std::getenv("FLASH_LAUNCHES"), std::ios::app);
  return file;
}

template <typename T> std::string list(T const *numbers, int count) {
  std::ostringstream text;
  for (int i = 0; i < count; i++) text << (i ? ", " : "[") << static_cast<long long>(numbers[i]);
  text << "]";
  return text.str();
}

std::string list(dim3 size) {
  unsigned const numbers[] = {size.x, size.y, size.z};
  return list(numbers, 3);
}

size_t bytes_of(std::string const &kernel) {
  std::istringstream words(std::getenv("FLASH_ENTRIES"));
  std::string entry;
  size_t bytes = 0;
  while (words >> entry >> bytes)
    if (entry == kernel) return bytes;
  std::fprintf(stderr, "%s is not among FLASH_ENTRIES\n", kernel.c_str());
  std::exit(1);
}

cudaError_t launch(void const *function, dim3 grid, dim3 block, dim3 cluster, void **arguments, size_t shared) {
  std::string const &kernel = kernels().at(function);
  auto const *data = static_cast<unsigned char const *>(arguments[0]);
  lines() << "{\"entry\": \"" << kernel << "\", \"grid\": " << list(grid) << ", \"block\": " << list(block) << ", \"cluster\": " << list(cluster)
          << ", \"shared\": " << shared << ", \"parameter\": \"";
  for (size_t i = 0; i < bytes_of(kernel); i++) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", data[i]);
    lines() << digits;
  }
  lines() << "\"}\n" << std::flush;
  return cudaSuccess;
}

// A map is its number, behind a word that nothing else makes.
CUresult encode_tiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, cuuint64_t const *extents, cuuint64_t const *strides,
                      cuuint32_t const *boxes, cuuint32_t const *element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, "flashmap", 8);
  reinterpret_cast<cuuint64_t *>(map)[2] = tensor_maps;
  lines() << "{\"map\": " << tensor_maps++ << ", \"type\": " << int(type) << ", \"address\": " << reinterpret_cast<size_t>(address) << ", \"globalDim\": "
          << list(extents, rank) << ", \"globalStrides\": " << list(strides, rank - 1) << ", \"boxDim\": " << list(boxes, rank) << ", \"elementStrides\": "
          << list(element_strides, rank) << ", \"interleave\": " << int(interleave) << ", \"swizzle\": " << int(swizzle) << ", \"fill\": " << int(fill) << "}\n";
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

void **__cudaRegisterFatBinary(void *) { return reinterpret_cast<void **>(&configuration); }
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterVar(void **, char *, char *, char const *, int, size_t, int, int) {}
void __cudaRegisterFunction(void **, char const *function, char *, char const *name, int, uint3 *, uint3 *, dim3 *, dim3 *, int *) { kernels()[function] = name; }

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st *) {
  configuration = {grid, block, shared};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  *grid = configuration.grid, *block = configuration.block, *shared = configuration.shared;
  *static_cast<void **>(stream) = nullptr;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, void const *function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void *>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t) {
  return launch(kernel, grid, block, dim3(1, 1, 1), arguments, shared);
}
cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const *config, void const *function, void **arguments) {
  dim3 cluster(1, 1, 1);
  for (unsigned i = 0; i < config->numAttrs; i++)
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
      auto const &given = config->attrs[i].val.clusterDim;
      cluster = dim3(given.x, given.y, given.z);
    }
  return launch(function, config->gridDim, config->blockDim, cluster, arguments, config->dynamicSmemBytes);
}

cudaError_t cudaGetDriverEntryPointByVersion(char const *, void **function, unsigned, unsigned long long, cudaDriverEntryPointQueryResult *result) {
  *function = reinterpret_cast<void *>(encode_tiled);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
// Each allocation has 2^36 addresses, which no number of a problem is.
cudaError_t cudaMalloc(void **there, size_t) {
  static size_t next = size_t(0x5a) << 40;
  *there = reinterpret_cast<void *>(next);
  next += size_t(1) << 36;
  return cudaSuccess;
}
cudaError_t cudaMemset(void *, int, size_t) { return cudaSuccess; }
cudaError_t cudaMemcpy(void *, void const *, size_t, cudaMemcpyKind) { return cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int) { return *value = 0, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *version) { return *version = CUDA_VERSION, cudaSuccess; }
cudaError_t cudaFuncSetAttribute(void const *, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
char const *cudaGetErrorString(cudaError_t) { return "no error"; }
}
