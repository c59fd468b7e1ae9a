"""Records Triton kernels for flashproof: kernel.ptx, launch.json and tensors.safetensors, for `flashproof run`.

One file to copy, which needs Triton alone; arguments are torch tensors, numpy arrays or `Raw` bytes, and numbers.

    compiled = compile(kernel, arguments, target="sm_100")          # without a GPU
    record("recorded", compiled, grid, arguments, outputs=["o"])

    launch("recorded", kernel, grid, arguments, outputs=["o"])      # with one: runs it, and keeps what came of it
"""

import json, math, pathlib, re, struct
from dataclasses import dataclass

DTYPES = {  # numpy's and torch's names: safetensors', Triton's
    "float64": ("F64", "fp64"), "float32": ("F32", "fp32"), "float16": ("F16", "fp16"), "bfloat16": ("BF16", "bf16"),
    "float8_e4m3fn": ("F8_E4M3", "fp8e4nv"), "float8_e5m2": ("F8_E5M2", "fp8e5"), "int64": ("I64", "i64"),
    "int32": ("I32", "i32"), "int16": ("I16", "i16"), "int8": ("I8", "i8"), "uint64": ("U64", "u64"),
    "uint32": ("U32", "u32"), "uint16": ("U16", "u16"), "uint8": ("U8", "u8"), "bool": ("BOOL", "i1"),
}
# Triton's types of numbers: launch files'. A truth is a byte.
NUMBERS = {"i1": "u8", "i8": "s8", "i16": "s16", "i32": "s32", "i64": "s64", "u8": "u8", "u16": "u16", "u32": "u32",
           "u64": "u64", "fp16": "f16", "bf16": "bf16", "fp32": "f32", "f32": "f32", "fp64": "f64"}


@dataclass
class Raw:
    """A tensor as bytes, little-endian and row by row: of formats that numpy does not have."""

    dtype: str  # as numpy or torch would call it: "bfloat16"
    shape: tuple
    data: bytes


def is_tensor(value):
    return hasattr(value, "dtype") and getattr(value, "shape", ()) != ()


def dtype_of(tensor):
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ValueError(f"a tensor of {name} cannot be recorded")
    return DTYPES[name]


def bytes_of(tensor):
    """What a tensor holds now, wherever it is."""
    if isinstance(tensor, Raw):
        return tensor.data
    if hasattr(tensor, "detach"):  # torch's
        import torch

        return tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()
    return tensor.tobytes()


def write_safetensors(path, tensors):
    """Writes tensors, by name: (dtype, shape, bytes)."""
    header, position = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, position + len(data)]}
        position += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(data for _, _, data in tensors.values())
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def compile(kernel, arguments, target="sm_100", **options):
    """Compiles a kernel for a GPU that need not be here.

    kernel: a function with @triton.jit; arguments: all of its arguments by name, constants too; options: num_warps, num_stages, …
    Addresses are taken to be multiples of 16 bytes, as those of tensors are; of numbers nothing is assumed.
    """
    import triton
    from triton.backends.compiler import GPUTarget

    signature, constants, attributes = {}, {}, {}
    for i, parameter in enumerate(kernel.params):
        value = arguments[parameter.name]
        if parameter.is_constexpr:
            signature[parameter.name], constants[parameter.name] = "constexpr", value
        elif is_tensor(value):
            signature[parameter.name] = "*" + dtype_of(value)[1]
            attributes[(i,)] = [["tt.divisibility", 16]]
        elif isinstance(value, bool):
            signature[parameter.name] = "i1"
        elif isinstance(value, int):
            signature[parameter.name] = "i32" if -(2**31) <= value < 2**31 else "i64"
        elif isinstance(value, float):
            signature[parameter.name] = "fp32"
        else:
            raise ValueError(f"{parameter.name} is {type(value).__name__}: no tensor and no number")
    source = triton.compiler.ASTSource(kernel, signature, constants, attributes)
    number = int(re.fullmatch(r"sm_(\d+)a?", target).group(1))
    return triton.compile(source, target=GPUTarget("cuda", number, 32), options=options)


def parameters_of(compiled, entry, arguments, grid):
    """The parameters that a compiled kernel takes, as a launch file has them; those that the compiler appended are scratch."""
    parameters = []
    for name, kind in compiled.src.signature.items():
        if kind == "constexpr":
            continue
        if kind.startswith("*"):
            parameters.append({"tensor": name})
        elif kind in NUMBERS:
            value = arguments[name]
            text = isinstance(value, float) and not math.isfinite(value) or isinstance(value, int) and abs(value) >= 2**53
            parameters.append({NUMBERS[kind]: str(value) if text else value})
        else:
            raise ValueError(f"{name} is {kind}, which this recorder does not know")
    head = compiled.asm["ptx"].split(f".entry {entry}(")[1].split("{")[0]
    ctas = math.prod(grid)
    for size in ("global_scratch_size", "profile_scratch_size"):
        if len(parameters) < head.count(".param"):
            parameters.append({"scratch": ctas * (getattr(compiled.metadata, size, 0) or 0)})
    if len(parameters) != head.count(".param"):
        raise ValueError(f"{entry} has {head.count('.param')} parameters, and {len(parameters)} are known")
    return parameters


def record(folder, compiled, grid, arguments, outputs, results={}, template=None):
    """Writes what starts a compiled kernel into a folder.

    grid: programs along each axis; arguments: by name, as they are before the launch; outputs: names of tensors that it writes;
    results: what a GPU made of them, by name. template: what of the launch is an expression of a problem, to write template.json too:
    {"grid": […], "numbers": {argument: expression}, "outputs": {tensor: quantity}, "formats": […], "requires": […]}.
    """
    folder, ptx, metadata = pathlib.Path(folder), compiled.asm["ptx"], compiled.metadata
    folder.mkdir(parents=True, exist_ok=True)
    entry = re.search(r"\.entry\s+([\w$]+)\s*\(", ptx).group(1)
    ctas = getattr(metadata, "num_ctas", 1)
    # A program of a kernel for clusters is one cluster along x.
    axes = [*grid, 1, 1][:3]
    file = {
        "entry": entry,
        "grid": [axes[0] * ctas, *axes[1:]],
        "block": [32 * metadata.num_warps, 1, 1],
        **({"cluster": [ctas, 1, 1]} if ctas > 1 else {}),
        "dynamicSharedBytes": metadata.shared,
        "parameters": parameters_of(compiled, entry, arguments, axes),
        "outputs": outputs,
    }
    tensors = {name: value for name, value in arguments.items() if is_tensor(value)}
    stored = {name: (dtype_of(one)[0], one.shape, bytes_of(one)) for name, one in tensors.items()}
    for name, data in results.items():
        stored[f"{name}.fused"] = (*stored[name][:2], data)
    (folder / "kernel.ptx").write_text(ptx)
    (folder / "launch.json").write_text(json.dumps(file, indent=2) + "\n")
    write_safetensors(folder / "tensors.safetensors", stored)
    if template is not None:
        (folder / "template.json").write_text(json.dumps(template_of(file, compiled, template), indent=2) + "\n")


def template_of(file, compiled, template):
    """The launch file with expressions in the place of numbers."""
    names = [name for name, kind in compiled.src.signature.items() if kind != "constexpr"]
    parameters = list(file["parameters"])
    for i, name in enumerate(names):
        if name in template["numbers"]:
            (kind,) = parameters[i]
            parameters[i] = {kind: template["numbers"][name]}
    return {
        **file,
        "grid": template["grid"],
        "parameters": parameters,
        "outputs": [{"name": name, "as": quantity} for name, quantity in template["outputs"].items()],
        "formats": template["formats"],
        "requires": template["requires"],
    }


def launch(folder, kernel, grid, arguments, outputs, **options):
    """Runs a kernel on a GPU, and records it with what came of it, which `flashproof run` compares with: arguments are torch tensors.

    Triton compiles for the very numbers of a launch (1, multiples of 16): for a template, which takes others too, use `compile`.
    """
    given = {name: arguments[name] for name in kernel.arg_names}
    before = {
        name: Raw(str(one.dtype), tuple(one.shape), bytes_of(one)) if is_tensor(one) else one for name, one in given.items()
    }
    compiled = kernel[tuple(grid)](**given, **options)
    record(folder, compiled, grid, before, outputs, {name: bytes_of(given[name]) for name in outputs})
    return compiled
