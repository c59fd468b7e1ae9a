#pragma once
#define C10_CUDA_CHECK(call) (call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK()
