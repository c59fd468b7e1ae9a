"""Compiles flex_attention as PyTorch does, for a GPU that need not be here, and records its kernel for `flashproof run`.

    python flex.py problem.safetensors … --to recorded [--architecture sm_90]

Problems are flashproof's: q, k, v of [heads, seqlen, dim] or [batch, heads, seqlen, dim], scale, causal and softcap. With what a GPU made
of them (`triton_flex.out`) `run` compares.
"""

import argparse, contextlib, hashlib, importlib.util, json, math, pathlib

import device
from flashproof import safetensors, triton as recorder

TORCH = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "I32": "int32"}
DTYPES = {name: dtype for dtype, name in TORCH.items()}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="+", type=pathlib.Path)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--architecture", default="sm_90", choices=list(device.PROPERTIES))
    parser.add_argument("--hashes", type=pathlib.Path, help="adds the SHA-256 of each PTX to this file")
    return parser.parse_args()


def generated(shapes, dtype, scale, causal, softcap):
    """The program that PyTorch's compiler writes for flex_attention, as text, and the block mask that it reads."""
    import torch
    from torch._higher_order_ops.flex_attention import flex_attention
    from torch._inductor.debug import DebugContext
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.nn.attention.flex_attention import _apply_kernel_options, _create_empty_block_mask, create_block_mask

    queries, keys = shapes[0][2], shapes[1][2]
    shift = keys - queries

    def score(score, b, h, query, key):
        return score if softcap is None else softcap * torch.tanh(score / softcap)

    def mask(b, h, query, key):
        return query + shift >= key

    if causal:
        blocks = create_block_mask(mask, None, None, queries, keys, device="cpu")
    else:
        blocks = _create_empty_block_mask(torch.empty(shapes[0]), torch.empty(shapes[1]))
    members = blocks.as_tuple()
    given = [one for one in members if isinstance(one, torch.Tensor)]
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        fake = lambda shape, dtype: torch.empty(shape, dtype=dtype, device="cuda")
        inputs = [*(fake(shape, dtype) for shape in shapes), *(fake(one.shape, one.dtype) for one in given)]
        options = _apply_kernel_options(*inputs[:3], True, None)

        def attend(q, k, v, *tensors):
            left = iter(tensors)
            whole = tuple(next(left) if isinstance(one, torch.Tensor) else one for one in members)
            return flex_attention(q, k, v, score, whole, scale, options, (), ())[:2]

        graph = make_fx(attend, decomposition_table=select_decomp_table(), tracing_mode="real")(*inputs)
        lowering = GraphLowering(graph, example_inputs=inputs)
        with V.set_graph_handler(lowering), V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
            lowering.run(*inputs)
            program = lowering.codegen()[0]
    return getattr(program, "value", program), given


class Recorded:
    """A kernel that the program has: a launch is written to a folder in place of being made."""

    def __init__(self, source, folder, target, results):
        self.folder, self.target, self.results = folder, target, results
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "kernel.py"
        path.write_text(source)
        specification = importlib.util.spec_from_file_location(f"kernel_{abs(hash(str(path)))}", path)
        module = importlib.util.module_from_spec(specification)
        with choices() as chosen:
            specification.loader.exec_module(module)
        (self.choice,) = chosen

    def run(self, *given, stream):
        import triton

        *tensors, x, y, z = given
        meta = self.choice["triton_meta"]
        names = list(meta["signature"])
        attributes = {(i,): [["tt.divisibility", 16]] for i in range(len(names))}
        source = triton.compiler.ASTSource(self.choice["kernel"], dict(meta["signature"]), {}, attributes)
        options = {"num_warps": self.choice["num_warps"], "num_stages": self.choice["num_stages"]}
        compiled = triton.compile(source, target=self.target, options=options)
        held = dict(zip(names, map(stored, tensors)))
        recorder.record_compiled(self.folder, compiled, (x, y, z), held, ["out_ptr0", "arg_LSE"], self.results)


@contextlib.contextmanager
def choices():
    """Takes what PyTorch says of a kernel beside its source: how many warps and stages, and its signature."""
    from torch._inductor.runtime import triton_heuristics

    chosen, usual = [], triton_heuristics.template
    triton_heuristics.template = lambda **options: lambda kernel: chosen.append({**options, "kernel": kernel})
    try:
        yield chosen
    finally:
        triton_heuristics.template = usual


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


def run_program(program, inputs, folder, target, results):
    """Runs the program, whose kernels are recorded: tensors lie on the CPU."""
    import torch
    from torch._inductor import async_compile

    empty = lambda shape, stride, dtype: torch.full(shape, math.nan if dtype.is_floating_point else -1, dtype=dtype)
    of_guards = torch._C._dynamo.guards
    usual = async_compile.AsyncCompile, of_guards._empty_strided_cuda
    async_compile.AsyncCompile = lambda: argparse.Namespace(
        triton=lambda name, source, **_: Recorded(source, folder, target, results), wait=lambda *_: None
    )
    of_guards._empty_strided_cuda = empty
    try:
        names = {"__name__": "program"}
        exec(program, names)
        names["call"](list(inputs))
    finally:
        async_compile.AsyncCompile, of_guards._empty_strided_cuda = usual


def main():
    options = arguments()
    device.with_runtime()
    target = device.install(options.architecture)
    import torch

    for path in options.problem:
        tensors, metadata = safetensors.read(path)
        given = {name: with_batch(tensors[name]) for name in ("q", "k", "v", "triton_flex.out") if name in tensors}
        inputs = [loaded(given[name]) for name in "qkv"]
        scale = float(metadata.get("scale") or 1 / math.sqrt(inputs[0].shape[-1]))
        softcap = float(metadata["softcap"]) if "softcap" in metadata else None
        program, blocks = generated([one.shape for one in inputs], inputs[0].dtype, scale, metadata.get("causal") == "true", softcap)
        folder = options.to / path.stem
        results = {"out_ptr0": given["triton_flex.out"]} if "triton_flex.out" in given else {}
        run_program(program, [*inputs, *blocks], folder, target, results)
        digest = hashlib.sha256((folder / "kernel.ptx").read_bytes()).hexdigest()
        print(f"{path.stem}: {folder}/launch.json, PTX {digest[:8]}")
        if options.hashes:
            known = json.loads(options.hashes.read_text()) if options.hashes.exists() else {}
            options.hashes.write_text(json.dumps({**known, f"{options.architecture} {path.stem}": digest}, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
