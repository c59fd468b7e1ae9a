"""Imports a tutorial of Triton without PyTorch and without a GPU: the kernels are what is wanted of it."""

import importlib.util, sys, types
from types import SimpleNamespace
from unittest.mock import MagicMock


def load(path, architecture):
    """The module at `path`, in which the GPU is one of `architecture` (sm_90, sm_100): kernels and configurations depend on it."""
    import triton

    capability = divmod(int(architecture.removeprefix("sm_")), 10)
    target = triton.backends.compiler.GPUTarget("cuda", 10 * capability[0] + capability[1], 32)
    driver = SimpleNamespace(get_active_torch_device=lambda: "cuda", get_current_target=lambda: target, get_benchmarker=lambda: None)
    triton.runtime.driver.set_active(driver)
    torch = types.ModuleType("torch")
    torch.cuda = SimpleNamespace(get_device_capability=lambda *_: capability, is_available=lambda: False)
    torch.autograd = SimpleNamespace(Function=type("Function", (), {"apply": None}))
    torch.version = SimpleNamespace(hip=None)
    for name in ("float16", "bfloat16", "float32", "float8_e5m2"):
        setattr(torch, name, name)
    kept = {name: sys.modules.get(name) for name in ("torch", "pytest")}
    sys.modules.update(torch=torch, pytest=MagicMock())
    try:
        specification = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
        module = importlib.util.module_from_spec(specification)
        sys.modules[specification.name] = module
        specification.loader.exec_module(module)
    finally:
        for name, one in kept.items():
            sys.modules.pop(name) if one is None else sys.modules.update({name: one})
    return module
