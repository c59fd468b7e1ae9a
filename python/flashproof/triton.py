"""
Records Triton kernels for `flashproof run`, with a GPU or without one.

    flashproof.triton.record("recorded", kernel, grid, arguments, outputs=["o"], target="sm_100", num_warps=4)

compiles for a GPU that need not be here; without `target` it launches the kernel on the one that is, and keeps what came of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Union

from .arrays import dtype_of, to_array
from .launches import (
    Launch,
    Parameter,
    entry_of,
    number_parameter,
    parameter_count,
    write_launch,
    write_template,
    write_tensors,
)
from .safetensors import Array
from .tensor_maps import descriptor_parameters, descriptor_type, is_descriptor

#: Programs along each axis, or a function of the arguments that gives them.
Grid = Union[Sequence[int], Callable[[dict[str, Any]], Sequence[int]]]


class Template(TypedDict):
    """What of a launch is an expression of a problem (docs/guide/compiled-kernels.md)."""

    grid: Sequence[Any]
    #: By argument.
    numbers: Mapping[str, str]
    #: What each tensor that is written is: `out`, `lse`, ….
    outputs: Mapping[str, str]
    formats: Sequence[str]
    requires: Sequence[str]


#: Triton's types of elements, by safetensors'.
_ELEMENTS = {
    **{"F64": "fp64", "F32": "fp32", "F16": "fp16", "BF16": "bf16"},
    **{"F8_E4M3": "fp8e4nv", "F8_E5M2": "fp8e5", "BOOL": "i1"},
    **{f"I{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}
#: Types of numbers of launch files, by Triton's. A truth is a byte.
_NUMBERS = {
    **{"i1": "u8", "fp16": "f16", "bf16": "bf16", "fp32": "f32", "f32": "f32", "fp64": "f64"},
    **{f"i{bits}": f"s{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}


def record(
    folder: str | os.PathLike[str],
    kernel: Any,
    grid: Grid,
    arguments: Mapping[str, Any],
    outputs: Sequence[str],
    *,
    target: str | None = None,
    template: Template | None = None,
    contract: Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
    buffers: Mapping[str, str] | None = None,
    **options: Any,
) -> Any:
    """
    Write `kernel.ptx`, `launch.json` and `tensors.safetensors` of a kernel's launch into a folder.

    `kernel` is a function with @triton.jit or @gluon.jit; `arguments` are all of its arguments by name, constants too; tensors are
    PyTorch's, NumPy's (ml_dtypes too) or `flashproof.Array`, or descriptors of these (what has `base`, `shape`, `strides` and
    `block_shape`, as `TensorDescriptor`; Gluon's have a `layout`). `outputs` are the tensors that it writes. With `target`
    (`"sm_90"`, `"sm_100"`) the kernel is compiled for it, and no GPU is needed. Without, it is launched here with PyTorch's tensors,
    and what it wrote is kept as `T.fused`, with which `flashproof run` compares. `template` also writes `template.json`, by which the
    kernel takes any problem that fits; it needs a target, since Triton compiles for the very numbers of a launch (1, multiples of
    16). `contract` says what the tensors are, for `flashproof certify`: `{"kind": "attention", "scale": 0.125, "causal": True,
    "q": "q_ptr", …, "out": "o_ptr"}` names arguments, whose shapes are [batch, heads, seqlen, dim] or without batch; a tensor of a launch
    before it in a chain is given as `{"tensor": name, "shape": […]}`. `names` and `buffers` are as those of `record_compiled`.
    `options` are Triton's: `num_warps`, `num_stages`, ….

    Returns what Triton compiled. ValueError and TypeError for arguments that cannot be recorded.
    """
    if not hasattr(kernel, "params"):
        raise ValueError(
            f"the kernel is a {type(kernel).__name__}; give the function with @triton.jit itself"
        )
    missing = [one.name for one in kernel.params if one.name not in arguments]
    if missing:
        raise ValueError(f"the kernel's {', '.join(missing)} is not among the arguments")
    axes = grid(dict(arguments)) if callable(grid) else grid
    if target is not None:
        compiled = compile_for(kernel, arguments, target, **options)
        record_compiled(
            folder,
            compiled,
            axes,
            arguments,
            outputs,
            template=template,
            contract=contract,
            names=names,
            buffers=buffers,
        )
        return compiled
    if template is not None:
        raise ValueError(
            "a template takes other numbers than those of a launch, for which Triton compiles; give target too"
        )
    given = {one.name: arguments[one.name] for one in kernel.params}
    before = {name: _copied(name, one) for name, one in given.items()}
    compiled = kernel[tuple(axes)](**given, **options)
    results = {name: to_array(_stored(given[name]), name) for name in outputs}
    record_compiled(
        folder,
        compiled,
        axes,
        before,
        outputs,
        results,
        contract=contract,
        names=names,
        buffers=buffers,
    )
    return compiled


def compile_for(kernel: Any, arguments: Mapping[str, Any], target: str, **options: Any) -> Any:
    """
    Compile a kernel for a GPU that need not be here; what Triton gives.

    Addresses are taken to be multiples of 16 bytes, as those of tensors are; of numbers nothing is assumed. ValueError for a target that is
    no name of an architecture, and for an argument that is neither tensor nor number.
    """
    import triton
    from triton.backends.compiler import GPUTarget

    named = re.fullmatch(r"sm_(\d+)[af]?", target)
    if named is None:
        raise ValueError(f"target is {target!r}; give an architecture such as sm_90 or sm_100")
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    for place, parameter in enumerate(kernel.params):
        name = parameter.name
        value = arguments[name]
        if parameter.is_constexpr:
            signature[name], constants[name] = "constexpr", value
        elif is_descriptor(value):
            signature[name] = descriptor_type(_element_type(name, value.base), value)
        elif _is_tensor(value):
            signature[name] = "*" + _element_type(name, value)
            attributes[(place,)] = [["tt.divisibility", 16]]
        else:
            signature[name] = _number_type(name, value)
    source = _source_type(kernel)(kernel, signature, constants, attributes)
    gpu = GPUTarget("cuda", int(named.group(1)), 32)
    return triton.compile(source, target=gpu, options=options)


def record_compiled(
    folder: str | os.PathLike[str],
    compiled: Any,
    grid: Sequence[int],
    arguments: Mapping[str, Any],
    outputs: Sequence[str],
    results: Mapping[str, Any] | None = None,
    template: Template | None = None,
    contract: Mapping[str, Any] | None = None,
    *,
    names: Mapping[str, str] | None = None,
    buffers: Mapping[str, str] | None = None,
) -> None:
    """
    Write the files of a kernel that Triton has compiled.

    `arguments` are as they were before the launch; `results` what a GPU made of the outputs, by name, where one was there.
    `contract` is as that of `record`. Launches that follow one another share tensors by their names in the files: `names` gives them for
    arguments, which otherwise have their own. `buffers` are arguments that hold nothing before the launch (`"nothing"`) or zeros
    (`"zeros"`); their elements are not kept. ValueError for a contract that names no tensor among the arguments, and for a buffer of a type
    that is no format.
    """
    launch = launch_of(compiled, grid, arguments, outputs)
    held = {name: _stored(one) for name, one in arguments.items()}
    tensors = {name: to_array(one, name) for name, one in held.items() if _is_tensor(one)}
    if contract is not None:
        launch = replace(launch, contract=_contract(contract, tensors))
    blank = {name: _buffer(name, tensors.pop(name), how) for name, how in (buffers or {}).items()}
    launch = _renamed(replace(launch, buffers=list(blank.values())), names or {})
    kept = {f"{(names or {}).get(name, name)}.fused": one for name, one in (results or {}).items()}
    write_launch(folder, compiled.asm["ptx"], launch)
    named = {(names or {}).get(name, name): one for name, one in tensors.items()}
    write_tensors(folder, {**named, **kept})
    if template is not None:
        write_template(folder, _template(launch, compiled, template))


#: Members of a contract that are no tensors.
_SETTINGS = ("kind", "scale", "causal", "window", "softcap", "family", "qk_norm_epsilon")


def _contract(contract: Mapping[str, Any], tensors: Mapping[str, Any]) -> dict[str, Any]:
    """A contract with the shapes of the tensors that it names."""

    def view(member: str, value: Any) -> Any:
        if member in _SETTINGS or not isinstance(value, str):
            return value
        if value not in tensors:
            raise ValueError(
                f"the contract's {member} is {value!r}, which is no tensor among the arguments; "
                f"name one of {', '.join(tensors)}"
            )
        return {"tensor": value, "shape": list(tensors[value].shape)}

    return {member: view(member, value) for member, value in contract.items()}


#: Formats of buffers in launch files, by safetensors' types.
_FORMATS = {
    **{"F64": "fp64", "F32": "fp32", "F16": "fp16", "BF16": "bf16"},
    **{"F8_E4M3": "e4m3", "F8_E5M2": "e5m2"},
}


def _buffer(name: str, array: Array, how: str) -> dict[str, Any]:
    """A tensor that holds nothing, or zeros, as a launch file says it."""
    if array.dtype not in _FORMATS:
        raise ValueError(f"{name} is a buffer of {array.dtype}; give one of {', '.join(_FORMATS)}")
    shape = list(array.shape)
    return {"name": name, "format": _FORMATS[array.dtype], "shape": shape, "zeros": how == "zeros"}


def _renamed(launch: Launch, names: Mapping[str, str]) -> Launch:
    """A launch whose tensors have other names."""

    def named(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {
            member: names.get(one, one) if member == "tensor" else named(one)
            for member, one in value.items()
        }

    return replace(
        launch,
        parameters=[named(one) for one in launch.parameters],
        outputs=[names.get(one, one) for one in launch.outputs],
        buffers=[{**one, "name": names.get(one["name"], one["name"])} for one in launch.buffers],
        contract=named(launch.contract),
    )


def launch_of(
    compiled: Any, grid: Sequence[int], arguments: Mapping[str, Any], outputs: Sequence[str]
) -> Launch:
    """How a kernel that Triton has compiled is started. ValueError for parameters that are not known here."""
    metadata, entry = compiled.metadata, entry_of(compiled.asm["ptx"])
    # A program of a kernel for clusters is one cluster along x.
    ctas = getattr(metadata, "num_ctas", 1)
    axes = [*grid, 1, 1][:3]
    return Launch(
        entry=entry,
        grid=[axes[0] * ctas, *axes[1:]],
        block=[32 * metadata.num_warps, 1, 1],
        parameters=_parameters(compiled, entry, arguments, axes),
        outputs=list(outputs),
        shared_bytes=metadata.shared,
        cluster=[ctas, 1, 1] if ctas > 1 else None,
    )


def _parameters(
    compiled: Any, entry: str, arguments: Mapping[str, Any], axes: Sequence[int]
) -> list[Parameter]:
    """The parameters that a compiled kernel takes; those that the compiler appended are scratch."""
    parameters: list[Parameter] = []
    maps = iter(getattr(compiled.metadata, "tensordesc_meta", None) or ())
    for name, kind in _signature(compiled).items():
        if kind.startswith("*"):
            parameters.append({"tensor": name})
        elif kind.startswith("tensordesc") and is_descriptor(arguments[name]):
            made = next(maps, None)
            if made is None:
                raise ValueError(f"{name} is a descriptor of which the compiler made no tensor map")
            dtype = to_array(arguments[name].base, name).dtype
            parameters += descriptor_parameters(name, dtype, arguments[name], made)
        elif kind in _NUMBERS:
            parameters.append(number_parameter(_NUMBERS[kind], arguments[name]))
        else:
            raise ValueError(f"{name} is {kind}, which this recorder does not know")
    count = parameter_count(compiled.asm["ptx"], entry)
    ctas = axes[0] * axes[1] * axes[2]
    for size in ("global_scratch_size", "profile_scratch_size"):
        if len(parameters) < count:
            parameters.append({"scratch": ctas * (getattr(compiled.metadata, size, 0) or 0)})
    if len(parameters) != count:
        raise ValueError(f"{entry} has {count} parameters, and {len(parameters)} are known")
    return parameters


def _signature(compiled: Any) -> dict[str, str]:
    """Types of the arguments that are none of the compiler's constants, in order."""
    signature = compiled.src.signature
    return {name: kind for name, kind in signature.items() if kind != "constexpr"}


def _template(launch: Launch, compiled: Any, template: Template) -> dict[str, Any]:
    """The launch file with expressions in the place of numbers."""
    parameters = list(launch.parameters)
    for place, name in enumerate(_signature(compiled)):
        if name in template["numbers"]:
            (kind,) = parameters[place]
            parameters[place] = {kind: template["numbers"][name]}
    return {
        **launch.members(),
        "grid": list(template["grid"]),
        "parameters": parameters,
        "outputs": [
            {"name": name, "as": quantity} for name, quantity in template["outputs"].items()
        ],
        "formats": list(template["formats"]),
        "requires": list(template["requires"]),
    }


def _source_type(kernel: Any) -> Any:
    """What takes a kernel to the compiler: Gluon's kernels have their own."""
    import triton

    if getattr(kernel, "is_gluon", lambda: False)():
        from triton.experimental.gluon._runtime import GluonASTSource

        return GluonASTSource
    return triton.compiler.ASTSource


def _stored(value: Any) -> Any:
    """The tensor of a descriptor, and anything else as it is."""
    return value.base if is_descriptor(value) else value


def _copied(name: str, value: Any) -> Any:
    """An argument before the launch: elements are copied."""
    if is_descriptor(value):
        import copy

        before = copy.copy(value)
        before.base = to_array(value.base, name)
        return before
    return to_array(value, name) if _is_tensor(value) else value


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "dtype") and getattr(value, "shape", ()) != ()


def _element_type(name: str, value: Any) -> str:
    dtype = value.dtype if isinstance(value, Array) else dtype_of(str(value.dtype))
    if dtype not in _ELEMENTS:
        raise ValueError(f"{name} is a tensor of {dtype}, for which Triton has no pointers")
    return _ELEMENTS[dtype]


def _number_type(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    if isinstance(value, float):
        return "fp32"
    raise ValueError(f"{name} is {type(value).__name__}: no tensor and no number")
