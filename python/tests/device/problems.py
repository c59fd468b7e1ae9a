"""Problems and outputs that the device is tried on: the captures of the repository, and drawn
ones.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from flashproof.device import KernelGradients
from flashproof.device.addends import addends_of
from flashproof.device.command_line import write_dump
from flashproof.device.masks import hidden_keys, visible_keys
from flashproof.device.problem import AttentionProblem, KernelOutputs, batched, fitted, shape_of

ROOT = Path(__file__).parents[3]
DIST = ROOT / "dist"

CAPTURES = [
    f"attention/{path.name}" for path in sorted((ROOT / "fixtures/attention").glob("*.safetensors"))
] + [
    f"features/{name}.safetensors"
    for name in (
        "flash-window",
        "grouped-heads",
        "mla-192-128",
        "mla-576-512",
        "mqa-128",
        "plain-fp32",
        "plain-large",
        "plain-long",
        "softcap",
        "window",
    )
]
"""Captures of real kernels whose problems have causal and window masks, softcaps and grouped heads
alone.
"""


def kernels_of(capture: str) -> list[str]:
    """The kernels whose outputs a capture holds."""
    with safe_open(ROOT / "fixtures" / capture, "pt") as file:
        return [name.removesuffix(".out") for name in list(file.keys()) if name.endswith(".out")]


ALL_OUTPUTS = [(capture, kernel) for capture in CAPTURES for kernel in kernels_of(capture)]


def read_capture(capture: str, kernel: str) -> tuple[AttentionProblem, KernelOutputs]:
    """A capture's problem, and what one kernel gave."""
    with safe_open(ROOT / "fixtures" / capture, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in list(file.keys())}
        metadata = file.metadata()
    swap = metadata.get("layout") == "bshd"
    q, k, v, out = (
        tensors[name].transpose(1, 2) if swap else tensors[name]
        for name in ("q", "k", "v", f"{kernel}.out")
    )
    window = metadata.get("window")
    left, right = (int(x) for x in window.split(",")) if window else (-1, -1)
    problem = batched(
        AttentionProblem(
            q,
            k,
            v,
            float(metadata["scale"]),
            metadata.get("causal") == "true",
            (left, right) if window else None,
            float(metadata["softcap"]) if "softcap" in metadata else None,
        )
    )
    shape = shape_of(problem)
    lse = tensors.get(f"{kernel}.lse")
    if lse is not None and lse.numel() != math.prod(out.shape[:-1]):
        # CUTLASS pads rows; the padding is no part of the output.
        lse = lse.reshape(shape.batch, shape.heads, -1)[..., : shape.queries]
    return problem, fitted(KernelOutputs(out, lse), shape)


def save(problem: AttentionProblem, outputs: KernelOutputs, path: Path) -> None:
    """Writes a dump that the command line reads."""
    if not problem.features.is_plain:
        write_dump(problem, outputs, path)
        return
    tensors = {"q": problem.q, "k": problem.k, "v": problem.v, "out": outputs.out}
    if outputs.lse is not None:
        tensors["lse"] = outputs.lse
    metadata = {"scale": repr(problem.used_scale), "causal": str(problem.causal).lower()}
    if problem.window is not None:
        metadata["window"] = ",".join(str(x) for x in problem.window)
    if problem.softcap is not None:
        metadata["softcap"] = repr(problem.softcap)
    save_file({name: x.contiguous() for name, x in tensors.items()}, path, metadata=metadata)


def _run(command: list[str], accepted: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in accepted, done.stderr


def needs_library() -> None:
    """Skips a test where there is no library to compare with."""
    if shutil.which("node") is None or not (DIST / "src/index.js").exists():
        pytest.skip("needs Node.js and the built library (npm run build)")


def element_bounds(
    problem: AttentionProblem, outputs: KernelOutputs, folder: Path
) -> dict[str, torch.Tensor]:
    """What the library judges each element by."""
    needs_library()
    save(problem, outputs, folder / "dump.safetensors")
    # The outputs as the device has them, whatever lies in the dump.
    outputs_file = folder / "outputs.safetensors"
    given = {"out": outputs.out, "lse": outputs.lse}
    save_file({name: x.contiguous() for name, x in given.items() if x is not None}, outputs_file)
    words = [] if problem.features.is_plain else ["features"]
    return _bounds("element-bounds.mjs", folder, words)


def gradient_bounds(
    problem: AttentionProblem,
    outputs: KernelOutputs | None,
    gradients: KernelGradients,
    folder: Path,
) -> dict[str, torch.Tensor]:
    """What the library judges each element of gradients by; without outputs none was stored."""
    needs_library()
    given = KernelOutputs(gradients.dout) if outputs is None else outputs
    write_dump(problem, given, folder / "dump.safetensors", gradients)
    tensors = {name: x.clone() for name, x in {**vars(gradients), "out": given.out}.items()}
    save_file(tensors, folder / "outputs.safetensors")
    words = [] if outputs is None else ["out"]
    if not problem.features.is_plain:
        words.append("features")
    return _bounds("gradient-bounds.mjs", folder, words)


def _bounds(script: str, folder: Path, words: list[str] | None = None) -> dict[str, torch.Tensor]:
    program, target = Path(__file__).with_name(script), folder / "bounds.safetensors"
    dump = folder / "dump.safetensors"
    _run(["node", str(program), str(DIST), str(dump), str(target), *(words or [])])
    return load_file(target)


def audit(problem: AttentionProblem, outputs: KernelOutputs, folder: Path) -> dict[str, object]:
    """The report of ``flashproof audit --json``."""
    needs_library()
    save(problem, outputs, folder / "dump.safetensors")
    command = [
        "node",
        str(DIST / "src/cli/main.js"),
        "audit",
        str(folder / "dump.safetensors"),
        "--quiet",
    ]
    _run([*command, "--json", str(folder / "report.json")], (0, 1))
    report: dict[str, object] = json.loads((folder / "report.json").read_text())
    return report


def textbook(
    problem: AttentionProblem, out_type: torch.dtype, weight_type: torch.dtype
) -> KernelOutputs:
    """Attention as a plain kernel computes it: scores and sums in fp32, P relative to the largest,
    rounded once.
    """
    shape = shape_of(problem)
    groups = shape.heads // shape.kv_heads
    q, k, v = (
        x.float() * (1.0 if by is None else by)
        for x, by in zip((problem.q, problem.k, problem.v), problem.features.factors, strict=True)
    )
    k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * problem.used_scale
    if problem.softcap is not None:
        scores = (scores / problem.softcap).tanh() * problem.softcap
    features = problem.features
    every = range(shape.batch * shape.heads)
    rows, columns = slice(0, shape.queries), slice(0, shape.keys)
    if (added := addends_of(problem, shape, every, rows, columns)) is not None:
        scores = scores + added.value.float().view_as(scores)
    for head in every:
        seen = visible_keys(problem, shape, q.device, head)
        hidden = hidden_keys(seen, 0, shape.keys)
        if hidden is not None:
            scores.flatten(0, 1)[head].masked_fill_(hidden, -math.inf)
    largest = scores.amax(-1, keepdim=True)
    largest = torch.where(largest > -math.inf, largest, 0.0)
    sink = torch.zeros(shape.heads) if features.sink is None else features.sink.float()
    if features.sink is not None:
        largest = torch.maximum(largest, sink[:, None, None])
    p = (scores - largest).exp()
    total = own = p.sum(-1, keepdim=True)
    if features.sink is not None:
        total = own + (sink[:, None, None] - largest).exp()
    raised = 2.0**8 if weight_type == torch.float8_e4m3fn else 1.0
    rounded = (p * raised).to(weight_type).float() / raised
    out = (rounded @ v) / torch.where(total > 0, total, 1.0)
    logarithm = (total if features.is_sink_in_lse else own).log()
    return KernelOutputs(out.to(out_type), (largest + logarithm)[..., 0])


def drawn(
    shape: tuple[int, int, int, int, int, int],
    dtype: torch.dtype,
    seed: int,
    *,
    size: float = 1.0,
    causal: bool = False,
    window: tuple[int, int] | None = None,
    softcap: float | None = None,
) -> AttentionProblem:
    """A problem of normal numbers; ``shape`` is batch, heads, heads of K and V, queries, keys,
    dim.
    """
    batch, heads, kv_heads, queries, keys, dim = shape
    generator = torch.Generator().manual_seed(seed)

    def normal(*sizes: int) -> torch.Tensor:
        return torch.randn(*sizes, generator=generator)

    q, k = normal(batch, heads, queries, dim) * size, normal(batch, kv_heads, keys, dim) * size
    v = normal(batch, kv_heads, keys, dim)
    return AttentionProblem(
        q.to(dtype), k.to(dtype), v.to(dtype), dim**-0.5, causal, window, softcap
    )


__all__ = [
    "ALL_OUTPUTS",
    "CAPTURES",
    "audit",
    "drawn",
    "element_bounds",
    "kernels_of",
    "read_capture",
    "save",
    "textbook",
]


def textbook_gradients(
    problem: AttentionProblem, outputs: KernelOutputs, dout: torch.Tensor
) -> KernelGradients:
    """Gradients as a plain kernel computes them: scores and sums in fp32, P and dS rounded once, D of
    the stored output.
    """
    shape = shape_of(problem)
    groups = shape.heads // shape.kv_heads
    inputs, scale = problem.q.dtype, problem.used_scale
    q, d = problem.q.float(), dout.float()
    k, v = (x.float().repeat_interleave(groups, 1) for x in (problem.k, problem.v))
    scores = q @ k.transpose(-1, -2) * scale
    for head in range(shape.batch * shape.heads):
        seen = visible_keys(problem, shape, q.device, head)
        hidden = hidden_keys(seen, 0, shape.keys)
        if hidden is not None:
            scores.flatten(0, 1)[head].masked_fill_(hidden, -math.inf)
    largest = scores.amax(-1, keepdim=True)
    p = (scores - torch.where(largest > -math.inf, largest, 0.0)).exp()
    total = p.sum(-1, keepdim=True)
    p = p / torch.where(total > 0, total, 1.0)
    delta = (d * outputs.out.float()).sum(-1, keepdim=True)
    ds = (p * (d @ v.transpose(-1, -2) - delta)).to(inputs).float()
    dq = ds @ k * scale

    def of_groups(x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(1, (shape.kv_heads, groups)).sum(2).to(inputs)

    dk = of_groups(ds.transpose(-1, -2) @ q * scale)
    dv = of_groups(p.to(inputs).float().transpose(-1, -2) @ d)
    return KernelGradients(dout, dq.to(inputs), dk, dv)
