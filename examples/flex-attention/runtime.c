/* What PyTorch asks of CUDA while it compiles: which device is current. There is one that does nothing, so that fake tensors may lie on it.
   Preloaded before libcudart, and found as libcuda.so.1. */
int cudaGetDevice(int *device) { return *device = 0; }
int cudaSetDevice(int device) { return 0; }
int cudaGetDeviceCount(int *count) { *count = 1; return 0; }
int cudaGetLastError(void) { return 0; }
int cudaPeekAtLastError(void) { return 0; }
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { return *least = *greatest = 0; }
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { *flags = 0; *active = 1; return 0; }
