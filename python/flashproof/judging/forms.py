"""
Candidates as benchmarks have them: KernelBench, GPU MODE's reference-kernels, BackendBench and FlashInfer-Bench.

Each gives a `Candidate` that is called as its benchmark calls it, with what that leaves open of a contract: the contract's own words win.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from .candidate import Candidate, read_source

#: A file, or the document that is in it.
Document = Union[str, "os.PathLike[str]", Mapping[str, Any]]

_PLAIN = {
    "framework": "torch",
    "window": False,
    "scales": ["default"],
    "emptyRows": False,
}


def kernelbench(
    path: str | os.PathLike[str], *, model: str = "ModelNew", init_inputs: Sequence[Any] = ()
) -> Candidate:
    """
    A KernelBench solution: the class `ModelNew`, made with `init_inputs`, called with Q, K and V.

    `init_inputs` are what its problem's `get_init_inputs` gives.
    It has as many queries as keys, as its problem's `get_inputs` makes them, one scale and no mask.
    """
    file = Path(path)
    form = {"name": "kernelbench", "init_inputs": list(init_inputs)}
    limits = {**_PLAIN, "causal": False, "groupedHeads": False, "square": True}
    return Candidate(
        {file.name: read_source(file)}, f"{file.name}::{model}", form, f"{path}:{model}", limits
    )


def gpu_mode(path: str | os.PathLike[str], *, data: Sequence[str] = ("q", "k", "v")) -> Candidate:
    """
    A submission to GPU MODE's reference-kernels: `custom_kernel(data)`, with the tensors that `data` names in a tuple.

    `task.py` beside it comes with it; where there is none, its names are there. With `g` or `beta` it is a recurrence.
    """
    file = Path(path)
    task = file.with_name("task.py")
    types = read_source(task) if task.is_file() else b"input_t = output_t = object\n"
    is_recurrence = not {"g", "beta"}.isdisjoint(data)
    limits = (
        {"framework": "torch", "packed": False, "initialState": [], "normalisation": False}
        if is_recurrence
        else {**_PLAIN, "causal": False, "square": True}
    )
    return Candidate(
        {file.name: read_source(file), "task.py": types},
        f"{file.name}::custom_kernel",
        {"name": "gpu-mode", "data": list(data), "scale": "default"},
        f"{path}:custom_kernel",
        limits,
    )


def backendbench(path: str | os.PathLike[str]) -> Candidate:
    """
    A kernel of BackendBench for scaled_dot_product_attention: a file, or the operator's folder, with a function `…_kernel_impl`.

    It is called with aten's arguments. Where the causal mask is none of its flag's (fewer queries than keys), a boolean mask says so.
    """
    file = Path(path)
    if file.is_dir():
        found = sorted(file.glob("*_implementation*.py"))
        if not found:
            raise ValueError(
                f"{path}: no *_implementation*.py; give an operator's folder of BackendBench"
            )
        file = found[0]
    source = read_source(file)
    names = [one for one in _functions(file, source) if one.endswith("_kernel_impl")]
    if len(names) != 1:
        raise ValueError(f"{file}: {len(names)} functions …_kernel_impl; give a file with one")
    limits = {**_PLAIN, "window": True, "scales": ["default", "odd"]}
    entry = f"{file.name}::{names[0]}"
    return Candidate(
        {file.name: source}, entry, {"name": "backendbench"}, f"{file}:{names[0]}", limits
    )


#: Inputs of the definitions of FlashInfer-Bench that are taken.
_INPUTS = {
    *("q", "k", "v", "k_cache", "v_cache", "qo_indptr", "kv_indptr"),
    *("kv_indices", "kv_last_page_len", "sm_scale"),
}
_FORMATS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def flashinfer_bench(solution: Document, definition: Document) -> Candidate:
    """
    A solution of FlashInfer-Bench for a definition of `gqa_ragged` or `gqa_paged` with pages of one token, in Python or Triton.

    It is called with the definition's inputs in their order, and with its outputs behind them where the solution has
    `destination_passing_style`. Rows are packed, LSEs are in base 2. ValueError for what is none of these.
    """
    solved, defined = _document(solution), _document(definition)
    try:
        spec, inputs, axes = solved["spec"], defined["inputs"], defined["axes"]
        sources = {one["path"]: one["content"].encode() for one in solved["sources"]}
        entry, outputs = spec["entry_point"], list(defined["outputs"])
        sizes = {name: axis["value"] for name, axis in axes.items() if axis["type"] == "const"}
        heads, kv_heads, dim = (
            sizes[name] for name in ("num_qo_heads", "num_kv_heads", "head_dim")
        )
        written = _FORMATS[inputs["q"]["dtype"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"no solution and definition of gqa_ragged or gqa_paged: {error!r} is missing"
        ) from None
    unknown = sorted(set(inputs) - _INPUTS)
    if unknown or sizes.get("page_size", 1) != 1 or not entry.partition("::")[0].endswith(".py"):
        what = (
            f"the inputs {', '.join(unknown)}"
            if unknown
            else "pages of several tokens, or no Python"
        )
        raise ValueError(
            f"{defined.get('name')}: {what} are not called here; audit such kernels (docs/guide/python.md)"
        )
    form = {
        "name": "flashinfer-bench",
        "inputs": list(inputs),
        "outputs": outputs,
        "is_destination_passing": spec.get("destination_passing_style", True),
    }
    name = str(defined.get("name", ""))
    queries = {} if "qo_indptr" in inputs else {"queries": {"min": 1, "max": 1}}
    limits = {
        **_PLAIN,
        "formats": [written],
        "dims": [dim],
        "scales": ["default", "odd"],
        "causal": "only" if "causal" in name else False,
        "groupSizes": [heads // kv_heads],
        "sizes": {"kvHeads": {"min": kv_heads, "max": kv_heads}, **queries},
    }
    return Candidate(sources, entry, form, str(solved.get("name", "the solution")), limits)


def _functions(file: Path, source: bytes) -> list[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{file}: {error}; give Python") from None
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def _document(given: Document) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    try:
        found = json.loads(read_source(Path(given)))
    except ValueError as error:
        raise ValueError(f"{os.fspath(given)}: {error}; give JSON") from None
    if not isinstance(found, Mapping):
        raise ValueError(f"{os.fspath(given)}: not an object; give a document of FlashInfer-Bench")
    return found
