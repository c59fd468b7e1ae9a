// Stands where the CUDA runtime stands: nothing runs. A launch is told on standard output, a line each, and the memory as it was before the
// first one is left in the folder that RECORD names. RECORD_GPU says which GPU it is: sm_90 (an H200) or sm_100 (a B200). GPU memory is memory
// of this process.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Kernel {
  int registers;
  std::vector<size_t> parameters;
};

struct Allocation {
  char* at;
  size_t size;
};

const char* folder() {
  const char* name = std::getenv("RECORD");
  if (name == nullptr) std::fprintf(stderr, "RECORD is not set\n"), std::exit(1);
  return name;
}

// The kernels of the PTX, each with its registers and the sizes of its parameters.
const std::map<std::string, Kernel>& kernels() {
  static const auto read = [] {
    std::map<std::string, Kernel> found;
    std::ifstream file(std::string(folder()) + "/kernels.txt");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string name;
      Kernel kernel;
      words >> name >> kernel.registers;
      for (size_t size; words >> size;) kernel.parameters.push_back(size);
      found[name] = kernel;
    }
    return found;
  }();
  return read;
}

std::map<const void*, std::string>& names() {
  static std::map<const void*, std::string> all;
  return all;
}

const Kernel& kernel_of(const void* function) { return kernels().at(names().at(function)); }

std::vector<Allocation> allocations;
std::map<const void*, int> shared_limits;
bool has_launched = false;

void keep_memory() {
  if (has_launched) return;
  has_launched = true;
  for (const auto& [at, size] : allocations) {
    char name[32];
    std::snprintf(name, sizeof name, "/%p.memory", static_cast<void*>(at));
    std::ofstream(folder() + std::string(name), std::ios::binary).write(at, size);
  }
}

void must_precede_launches(const char* what) {
  if (!has_launched) return;
  std::fprintf(stderr, "%s behind a launch is not recorded\n", what);
  std::exit(1);
}

cudaError_t tell(const void* function, dim3 grid, dim3 block, dim3 cluster, size_t shared, void** arguments) {
  keep_memory();
  std::printf("launch %s %u %u %u %u %u %u %u %u %u %zu", names().at(function).c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z,
              cluster.x, cluster.y, cluster.z, shared);
  const auto& sizes = kernel_of(function).parameters;
  for (size_t i = 0; i < sizes.size(); i++) {
    std::printf(" ");
    for (size_t j = 0; j < sizes[i]; j++) std::printf("%02x", static_cast<unsigned char*>(arguments[i])[j]);
  }
  std::printf("\n");
  return cudaSuccess;
}

// Marks the 128 bytes of a tensor map with its number, and tells what it was asked for.
CUresult encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                const cuuint32_t* box, const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  static uint64_t count = 0;
  std::memset(map, 0xa5, sizeof *map);
  std::memcpy(map, &count, sizeof count);
  std::printf("map %llu %p %d %d %d %d %d", static_cast<unsigned long long>(count++), address, type, interleave, swizzle, promotion, fill);
  for (cuuint32_t i = 0; i < rank; i++)
    std::printf(" %llu,%llu,%u,%u", static_cast<unsigned long long>(sizes[i]), i == 0 ? 0 : static_cast<unsigned long long>(strides[i - 1]), box[i],
                steps[i]);
  std::printf("\n");
  return CUDA_SUCCESS;
}

int attribute(cudaDeviceAttr which) {
  const char* gpu = std::getenv("RECORD_GPU");
  const bool is_blackwell = gpu != nullptr && std::string(gpu) == "sm_100";
  switch (which) {
    case cudaDevAttrMultiProcessorCount: return is_blackwell ? 148 : 132;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return 233472;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return 232448;
    case cudaDevAttrComputeCapabilityMajor: return is_blackwell ? 10 : 9;
    case cudaDevAttrComputeCapabilityMinor: return 0;
    default: std::fprintf(stderr, "nobody knows device attribute %d\n", which), std::exit(1);
  }
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* binary) {
  static void* handle = binary;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
char __cudaInitModule(void**) { return 0; }
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) { names()[host] = name; }
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t) {
  return tell(reinterpret_cast<const void*>(kernel), grid, block, {1, 1, 1}, shared, arguments);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long, cudaDriverEntryPointQueryResult* found) {
  const bool is_known = std::strcmp(name, "cuTensorMapEncodeTiled") == 0;
  if (!is_known) std::fprintf(stderr, "nobody knows %s of the driver\n", name), std::exit(1);
  *function = reinterpret_cast<void*>(encode);
  if (found != nullptr) *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void*) { std::abort(); }
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { std::abort(); }

cudaError_t cudaMalloc(void** at, size_t size) {
  // Far apart, so that an address says which allocation it is of.
  *at = std::aligned_alloc(4096, (size + 8191) / 4096 * 4096);
  allocations.push_back({static_cast<char*>(*at), size});
  return cudaSuccess;
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaMallocHost(void** at, size_t size) { return (*at = std::malloc(size)) == nullptr ? cudaErrorMemoryAllocation : cudaSuccess; }
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDeviceToHost) must_precede_launches("cudaMemcpy");
  std::memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t) { return cudaMemcpy(to, from, size, kind); }
cudaError_t cudaMemset(void* to, int byte, size_t size) {
  must_precede_launches("cudaMemset");
  std::memset(to, byte, size);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "an error"; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) { return *value = attribute(which), cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
// How many CTAs an SM of compute capability 9.0 or 10.0 holds: by registers (given to warps in units of 256), shared memory, threads.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* count, const void* function, int threads, size_t shared, unsigned) {
  const int warps = (threads + 31) / 32;
  const int registers_of_warp = (std::max(kernel_of(function).registers, 1) * 32 + 255) / 256 * 256;
  const int by_registers = 65536 / 4 / registers_of_warp * 4 / warps;
  const int by_shared = 233472 / ((shared + 1024 + 127) / 128 * 128);
  *count = std::min({by_registers, by_shared, 64 / warps, 32});
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* count, const void* function, int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, threads, shared, 0);
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t) {
  return tell(function, grid, block, {1, 1, 1}, shared, arguments);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  dim3 cluster(1, 1, 1);
  for (unsigned i = 0; i < config->numAttrs; i++)
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
      cluster = dim3(config->attrs[i].val.clusterDim.x, config->attrs[i].val.clusterDim.y, config->attrs[i].val.clusterDim.z);
  return tell(function, config->gridDim, config->blockDim, cluster, config->dynamicSmemBytes, arguments);
}

}
