/*
 * Stands where the CUDA driver and runtime stand under the host code that CuTe DSL compiles: nothing is loaded and
 * nothing runs; a launch is handed to the function that expect_launches() was given.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of the CUDA runtime's driver_types.h: what host code fills in for cudaLaunchKernelExC. */
struct attribute {
  uint32_t id;
  uint32_t padding;
  union {
    uint32_t cluster[3];
    unsigned char bytes[64];
  } value;
};
struct launch {
  uint32_t grid[3];
  uint32_t block[3];
  size_t dynamic_shared_bytes;
  void *stream;
  const struct attribute *attributes;
  uint32_t attribute_count;
};
enum { cluster_dimension = 4 };

/* The numbers of a launch: grid, block, cluster (0 where none is asked for), then the kernel's own arguments. */
typedef void (*listener)(const char *kernel, const uint32_t numbers[9], uint64_t shared_bytes, void **arguments);

static listener listen;

void expect_launches(listener to) { listen = to; }

int _cudaLaunchKernelEx(const struct launch *launch, const char *kernel, void **arguments) {
  uint32_t numbers[9] = {0};
  memcpy(numbers, launch->grid, sizeof launch->grid);
  memcpy(numbers + 3, launch->block, sizeof launch->block);
  for (uint32_t i = 0; i < launch->attribute_count; i++)
    if (launch->attributes[i].id == cluster_dimension)
      memcpy(numbers + 6, launch->attributes[i].value.cluster, 3 * sizeof *numbers);
  listen(kernel, numbers, launch->dynamic_shared_bytes, arguments);
  return 0;
}

/* A kernel is its name: the listener is told it. The name that is given may lie on the stack. */
int _cudaLibraryGetKernel(char **kernel, void *library, const char *name) {
  *kernel = strdup(name);
  return *kernel == NULL;
}
int _cudaLibraryLoadData(void **library, const void *code, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
  *library = (void *)code;
  return 0;
}

static int set(int *value, int to) {
  if (value != NULL) *value = to;
  return 0;
}
int _cudaGetDevice(int *device) { return set(device, 0); }
int _cudaSetDevice(int device) { return 0; }
int _cudaDeviceGetAttribute(int *value, int attribute, int device) { return set(value, 1); }
int _cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) { return set(value, 0); }
int _cudaFuncSetAttribute(void *kernel, int attribute, int value) { return 0; }
int _cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device) { return 0; }
/* What host code calls first: it gives what fetches its kernels. */
int cuda_dialect_init_library_once(void **library, int (*load)(void **), int (*on_device)(void **, int), void *fail) {
  return *library != NULL ? 0 : load(library) || on_device(library, 0);
}
void cuda_dialect_unload_library_once(void) {}
const char *CuteDSLRT_GetErrorName(int error) { return "none"; }
void CuteDSLRT_TVMFFISetRaisedCudaError(int error) {}
