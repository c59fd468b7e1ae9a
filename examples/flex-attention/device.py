"""A GPU that is not there, as PyTorch's compiler asks for it: its numbers, and nothing that runs."""

import contextlib, os, pathlib, subprocess, sys, tempfile
from types import SimpleNamespace

HERE = pathlib.Path(__file__).parent
PROPERTIES = {  # of the products: H200, B200
    "sm_90": dict(name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, L2_cache_size=50 << 20),
    "sm_100": dict(name="NVIDIA B200", major=10, minor=0, multi_processor_count=148, L2_cache_size=126 << 20),
}
COMMON = dict(total_memory=141 << 30, warp_size=32, max_threads_per_multi_processor=2048, max_threads_per_block=1024,
              regs_per_multiprocessor=65536, shared_memory_per_block=49152, shared_memory_per_block_optin=232448,
              shared_memory_per_multiprocessor=233472, gcnArchName="", is_integrated=False)


def with_runtime():
    """Starts this program again with a CUDA runtime that has a device (runtime.c), unless it has it already."""
    if os.environ.get("FLEX_RUNTIME") == "1":
        return
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "runtime.so"
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, HERE / "runtime.c"], check=True)
        environment = {**os.environ, "FLEX_RUNTIME": "1", "LD_PRELOAD": str(library)}
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)


def install(architecture):
    """Replaces what torch and Triton would ask the driver."""
    import torch, triton
    import torch._subclasses.fake_tensor
    from triton.backends.compiler import GPUTarget

    properties = SimpleNamespace(**PROPERTIES[architecture], **COMMON)
    capability = (properties.major, properties.minor)
    target = GPUTarget("cuda", 10 * properties.major, 32)
    for name, answer in {
        "is_available": True, "device_count": 1, "current_device": 0, "set_device": None, "synchronize": None, "_lazy_init": None,
        "get_device_properties": properties, "_get_device_properties": properties, "get_device_capability": capability,
    }.items():
        setattr(torch.cuda, name, lambda *_, answer=answer: answer)
    torch._subclasses.fake_tensor.init_gpu_context = lambda *_: None
    torch.cuda._DeviceGuard = lambda *_: contextlib.nullcontext()
    torch._C._cuda_getCurrentRawStream = lambda *_: 0
    driver = SimpleNamespace(
        get_current_stream=lambda *_: 0, get_current_device=lambda: 0, set_current_device=lambda *_: None,
        get_current_target=lambda: target, get_active_torch_device=lambda: torch.device("cuda", 0),
        get_device_interface=lambda: torch.cuda, get_device_capability=lambda *_: capability,
    )
    triton.runtime.driver.set_active(driver)
    from torch._inductor.runtime import triton_helpers

    triton_helpers.set_driver_to_gpu = lambda: None
    return target
