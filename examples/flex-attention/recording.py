"""Runs a program that PyTorch's compiler wrote with tensors on the CPU: a launch is written to a folder in place of being made."""

import argparse, contextlib, hashlib, importlib.util, json, math

from flashproof import safetensors, triton as recorder

TORCH = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "I32": "int32"}
DTYPES = {name: dtype for dtype, name in TORCH.items()}


class Recorded:
    """A kernel that the program has."""

    def __init__(self, source, folder, target, outputs, results):
        self.folder, self.target, self.outputs, self.results = folder, target, outputs, results
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "kernel.py"
        path.write_text(source)
        specification = importlib.util.spec_from_file_location(f"kernel_{abs(hash(str(path)))}", path)
        module = importlib.util.module_from_spec(specification)
        with choices() as chosen:
            specification.loader.exec_module(module)
        (self.choice,) = chosen

    def run(self, *given, stream):
        """A template's launch has its grid behind its arguments; a reduction's follows from each of the configurations that PyTorch would time."""
        import triton

        signature = self.choice["triton_meta"]["signature"]
        names = [name for name, kind in signature.items() if kind != "constexpr"]
        for configuration in self.choice["configurations"]:
            constants = configuration["constants"]
            rows = dict(zip(names, given)).get("xnumel")
            grid = given[len(names) :] or (-(-rows // constants["XBLOCK"]), 1, 1)
            attributes = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(signature) if signature[name].startswith("*")}
            source = triton.compiler.ASTSource(self.choice["kernel"], dict(signature), constants, attributes)
            options = {name: configuration[name] for name in ("num_warps", "num_stages")}
            compiled = triton.compile(source, target=self.target, options=options)
            held = {name: one if isinstance(one, int) else stored(one) for name, one in zip(names, given)}
            folder = self.folder / "-".join(f"{name}{value}" for name, value in constants.items())
            outputs = [name for name in names if name in self.outputs]
            recorder.record_compiled(folder, compiled, grid, held, outputs, self.results)


@contextlib.contextmanager
def choices():
    """Takes what PyTorch says of a kernel beside its source: its signature, how many warps and stages, and of a reduction how many rows."""
    from torch._inductor.runtime import triton_heuristics

    chosen = []

    def template(**options):
        configuration = {"constants": {}, "num_warps": options["num_warps"], "num_stages": options["num_stages"]}
        return lambda kernel: chosen.append({**options, "kernel": kernel, "configurations": [configuration]})

    def reduction(size_hints, reduction_hint, triton_meta, inductor_meta, filename):
        configurations = [
            {"constants": one.kwargs, "num_warps": one.num_warps, "num_stages": one.num_stages}
            for one in usual["persistent_reduction"](size_hints, reduction_hint, triton_meta, filename, inductor_meta, return_configs=True)
        ]
        return lambda kernel: chosen.append({"triton_meta": triton_meta, "kernel": kernel, "configurations": configurations})

    replaced = {"template": template, "persistent_reduction": reduction}
    usual = {name: getattr(triton_heuristics, name) for name in replaced}
    for name, one in replaced.items():
        setattr(triton_heuristics, name, one)
    try:
        yield chosen
    finally:
        for name, one in usual.items():
            setattr(triton_heuristics, name, one)


def stored(tensor):
    """A tensor as a file has it; one without elements has one, of zero, since an allocation has a size."""
    import torch

    whole = tensor if tensor.numel() > 0 else torch.zeros(1, dtype=tensor.dtype)
    data = bytes(whole.contiguous().reshape(-1).view(torch.uint8).tolist())
    return safetensors.Array(DTYPES[str(whole.dtype).removeprefix("torch.")], tuple(whole.shape), data)


def loaded(array):
    """What `stored` has stored."""
    import torch

    return torch.frombuffer(bytearray(array.data), dtype=getattr(torch, TORCH[array.dtype])).reshape(array.shape)


def with_batch(array):
    """The same, as [batch, heads, seqlen, dim]."""
    return safetensors.Array(array.dtype, (1,) * (4 - len(array.shape)) + array.shape, array.data)


def run_program(program, inputs, folder_of, target, outputs, results):
    """Runs the program, whose kernels are recorded: each in the folder that `folder_of` gives for its name."""
    import torch
    from torch._inductor import async_compile

    empty = lambda shape, stride, dtype: torch.full(shape, math.nan if dtype.is_floating_point else -1, dtype=dtype)
    of_guards = torch._C._dynamo.guards
    usual = async_compile.AsyncCompile, of_guards._empty_strided_cuda
    kernel = lambda name, source, **_: Recorded(source, folder_of(name), target, outputs, results)
    async_compile.AsyncCompile = lambda: argparse.Namespace(triton=kernel, wait=lambda *_: None)
    of_guards._empty_strided_cuda = empty
    try:
        names = {"__name__": "program"}
        exec(program, names)
        return names["call"](list(inputs))
    finally:
        async_compile.AsyncCompile, of_guards._empty_strided_cuda = usual


def keep_hash(path, name, folder):
    """The SHA-256 of a recorded kernel's PTX, which the file at `path`, where one is given, gets too."""
    digest = hashlib.sha256((folder / "kernel.ptx").read_bytes()).hexdigest()
    if path:
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, name: digest}, indent=2, sort_keys=True) + "\n")
    return digest
