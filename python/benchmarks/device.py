"""How long the device takes to judge attention, and how many operations that is.

    python benchmarks/device.py                       # a small problem, on the CPU
    python benchmarks/device.py --device cuda --full  # the two problems of FULL, in bf16
    python benchmarks/device.py --gradients           # with dQ, dK and dV

The output is that of a textbook kernel, computed in blocks of queries. What is wanted of an H100
is 0.15 s for the first of the full problems and 8 s for the second, with gradients 0.4 s and 20 s.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass

import torch

from flashproof.device import AttentionProblem, KernelGradients, KernelOutputs
from flashproof.device.backward import measure_gradients
from flashproof.device.measure import Room, measure

SMALL = (1, 2, 512, 64)
FULL = ((1, 16, 4096, 128), (1, 32, 32768, 128))
FALSE_ALARM_RATE = 1e-9

_DIRECTIONS = 4
_MATRICES_OF_VALUES = 4
"""V, |V|, V² by the weights, and V² by their variances."""
_BYTES_OF_A_SCORE = 170
"""About what all passes of kernels over a block's scores read and write for each: some 20 of fp64."""


@dataclass(frozen=True)
class Estimate:
    """What one problem takes, counted and not measured."""

    scores: int
    multiply_adds: int
    """Of products of fp64 matrices."""
    bytes: int
    """That pass through memory, about."""
    seconds_at_h100: float
    """At 25 · 10^12 multiply-adds and 3 · 10^12 bytes a second, about what was measured."""


def estimate(shape: tuple[int, int, int, int], causal: bool) -> Estimate:
    """Counts what judging a problem of batch, heads, seqlen, dim takes."""
    batch, heads, length, dim = shape
    scores = batch * heads * length * length // (2 if causal else 1)
    each = dim * (1 + _MATRICES_OF_VALUES + _DIRECTIONS)
    # Tiles of keys: two directions a block of queries, with what they are made of.
    multiply_adds = scores * (each + 2 * dim)
    moved = scores * _BYTES_OF_A_SCORE
    return Estimate(scores, multiply_adds, moved, multiply_adds / 25e12 + moved / 3e12)


def textbook(problem: AttentionProblem) -> KernelOutputs:
    """Attention with fp32 scores and P in the format of V, as a correct kernel may compute it."""
    outs, lses = [], []
    keys = problem.k.shape[2]
    for head in range(problem.q.shape[1]):
        k, v = problem.k[0, head].float(), problem.v[0, head]
        for first in range(0, problem.q.shape[2], 512):
            scores = problem.q[0, head, first : first + 512].float() @ k.T * problem.used_scale
            if problem.causal:
                query = torch.arange(first, first + scores.shape[0], device=scores.device)
                key = torch.arange(keys, device=scores.device)
                scores.masked_fill_(key > query[:, None], float("-inf"))
            largest = scores.amax(-1, keepdim=True)
            p = (scores - largest).exp()
            total = p.sum(-1, keepdim=True)
            outs.append((p.to(v.dtype).float() @ v.float() / total).to(v.dtype))
            lses.append((largest + total.log())[:, 0])
    heads = problem.q.shape[1]
    out = torch.cat(outs).view(1, heads, -1, problem.v.shape[3])
    return KernelOutputs(out, torch.cat(lses).view(1, heads, -1))


def textbook_gradients(
    problem: AttentionProblem, outputs: KernelOutputs, dout: torch.Tensor
) -> KernelGradients:
    """The gradients with fp32 scores, and P and dS rounded once, as a correct kernel may compute
    them: D is made of the stored output, P of the stored LSE.
    """
    assert outputs.lse is not None
    gradients = [
        torch.zeros_like(x, dtype=torch.float32) for x in (problem.q, problem.k, problem.v)
    ]
    dq, dk, dv = gradients
    inputs, keys, scale = problem.q.dtype, problem.k.shape[2], problem.used_scale
    for head in range(problem.q.shape[1]):
        k, v = problem.k[0, head].float(), problem.v[0, head].float()
        for first in range(0, problem.q.shape[2], 512):
            rows = slice(first, first + 512)
            q, d = problem.q[0, head, rows].float(), dout[0, head, rows].float()
            p = (q @ k.T * scale - outputs.lse[0, head, rows, None]).exp()
            if problem.causal:
                query = torch.arange(first, first + p.shape[0], device=p.device)
                p.masked_fill_(torch.arange(keys, device=p.device) > query[:, None], 0.0)
            delta = (d * outputs.out[0, head, rows].float()).sum(-1, keepdim=True)
            ds = (p * (d @ v.T - delta)).to(inputs).float()
            dq[0, head, rows] = ds @ k * scale
            dk[0, head] += ds.T @ q * scale
            dv[0, head] += p.to(inputs).float().T @ d
    return KernelGradients(dout, *(x.to(inputs) for x in gradients))


def run(
    shape: tuple[int, int, int, int], device: torch.device, causal: bool, gradients: bool
) -> dict[str, object]:
    """Judges one problem, and says how long that took."""
    generator = torch.Generator(device=device).manual_seed(1)
    if device.type == "cuda":
        # Products of fp32 matrices in fp32, or the kernel is none that is correct.
        torch.backends.cuda.matmul.allow_tf32 = False

    def normal() -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=device).to(torch.bfloat16)

    problem = AttentionProblem(normal(), normal(), normal(), causal=causal)
    outputs = textbook(problem)
    given = textbook_gradients(problem, outputs, normal()) if gradients else None
    times = []
    of_gradients = None
    for _ in range(2):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            torch.cuda.reset_peak_memory_stats(device)
        start = time.perf_counter()
        found = measure(problem, outputs, FALSE_ALARM_RATE)
        if given is not None:
            of_gradients = measure_gradients(problem, given, outputs.out, FALSE_ALARM_RATE)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
    memory = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    return {
        "shape": shape,
        "causal": causal,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "first seconds": times[0],
        "seconds": times[1],
        "peak bytes": memory,
        "queries at once": Room.on(device, "outputs").rows(shape[2]),
        "heads left to the command line": len(found.open_heads),
        "worst element": found.elements.worst.ratio,
        **(
            {}
            if of_gradients is None
            else {
                "groups of gradients left to the command line": len(of_gradients.open_groups),
                "worst element of gradients": of_gradients.worst_ratio,
            }
        ),
        "estimate": asdict(estimate(shape, causal)),
    }


def main() -> None:
    """Prints a line of JSON for each problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--full", action="store_true", help="the two problems of long heads")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--gradients", action="store_true", help="judge dQ, dK and dV as well")
    arguments = parser.parse_args()
    for shape in FULL if arguments.full else (SMALL,):
        device = torch.device(arguments.device)
        print(json.dumps(run(shape, device, arguments.causal, arguments.gradients)), flush=True)


if __name__ == "__main__":
    main()
