"""A Hopper GPU that is not there, as PyTorch, Triton and fla ask for it. Launches of Triton kernels come to `launched` in its place."""

from types import SimpleNamespace

#: CUDA's numbers for an H100 SXM, of what fla asks.
SHARED_BYTES, PROCESSORS = 232448, 132


def install(launched, configuration):
    """
    Puts the GPU in place; before fla is imported.

    `launched(compiled, grid, arguments)` is called for each launch, with arguments by name; tensors are PyTorch's on the CPU. What an
    autotuner would time it does not: `configuration(name, configurations)` picks one.
    """
    import torch, triton
    from triton.backends.compiler import GPUTarget
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    numbers = {"max_shared_mem": SHARED_BYTES, "multiprocessor_count": PROCESSORS}
    properties = SimpleNamespace(major=9, minor=0, shared_memory_per_block_optin=SHARED_BYTES, multi_processor_count=PROCESSORS)
    answers = {"is_available": True, "device_count": 1, "current_device": 0, "get_device_name": "NVIDIA H100 80GB HBM3"}
    answers |= {"get_device_capability": (9, 0), "get_device_properties": properties}
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, answer=answer: answer)
    driver = SimpleNamespace(
        get_current_target=lambda: GPUTarget("cuda", 90, 32), get_current_device=lambda: 0, get_current_stream=lambda *_: 0,
        utils=SimpleNamespace(get_device_properties=lambda *_: numbers),
    )
    triton.runtime.driver.set_active(driver)
    compile_for, tune = JITFunction.run, Autotuner.run

    def run(self, *given, grid, warmup, **named):
        compiled = compile_for(self, *given, grid=grid, warmup=True, **named)
        arguments = dict(zip(self.arg_names, given)) | {name: one for name, one in named.items() if name in self.arg_names}
        axes = grid(arguments) if callable(grid) else grid
        launched(compiled, axes, {name: arguments[name] for name in self.arg_names})
        return compiled

    def run_one(self, *given, **named):
        every, self.nargs = self.configs, dict(zip(self.arg_names, given))
        self.configs = [configuration(self.base_fn.__name__, self.prune_configs(named))]
        try:
            return tune(self, *given, **named)
        finally:
            self.configs = every

    JITFunction.run, Autotuner.run = run, run_one
    for holder, name in [(torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")]:
        setattr(holder, name, unfilled(getattr(holder, name)))


def unfilled(allocate):
    """A function of PyTorch that allocates memory, of whose bytes each is 255 instead of anything."""
    import torch

    def run(*given, **named):
        tensor = allocate(*given, **named)
        if tensor.is_floating_point() and tensor.is_contiguous():
            tensor.view(-1).view(torch.uint8).fill_(255)
        return tensor

    return run
