"""Judging recurrences where their tensors lie: `audit_recurrent_on_device`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..arguments import RECURRENT_GRADIENTS, RecurrentArguments, check_names
from ..arrays import check_tensors
from ..dump import number_of
from ..mamba2 import Mamba2Arguments
from ..recurrences import audit_recurrent
from ..report import Report

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..device.recurrent import Findings, RecurrentProblem

_USUAL_RATE = 1e-9
_PER_HEAD = ("q", "k", "v", "out", "g", "beta")
_STATES = ("initial_state", "final_state")


def audit_recurrent_on_device(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    final_state: Any = None,
    *,
    family: str,
    **given: Unpack[RecurrentArguments],
) -> Report:
    """
    Judge tensors of PyTorch of a recurrence where they lie: for problems that take minutes on the CPU.

    The arguments are those of `audit_recurrent`. Exact values with a radius, and draws of a kernel in chunks of 64 tokens, are made
    there in fp64, and every limit is below that of `audit_recurrent` but for what chance makes of its draws
    (docs/theory/bounds-recurrent.md, "On the device"). Heads that are not surely within all limits are judged by `audit_recurrent` on
    the CPU, which alone says FAIL; the text says how many.

    The CPU judges the whole of what the device does not: `mamba2`, gradients, `options`, `premises` other than `"chunked"` and
    `"fla"`, infinities and NaNs, and formats other than bf16, fp16 and fp32, of which Q, K and V have one. The report of what the
    device decided has the sentence and no document. RequestError for what cannot be judged, with one line that says why.
    """
    check_names("audit_recurrent_on_device", given, RecurrentArguments)
    tensors = {"q": q, "k": k, "v": v, "out": out, "final_state": final_state}
    if family != "mamba2":
        tensors.update({name: given.get(name) for name in ("g", "beta", "initial_state")})
        check_tensors({name: x for name, x in tensors.items() if x is not None})
    outputs = {name: tensors[name] for name in ("q", "k", "v", "out", "final_state")}
    everything: dict[str, Any] = {**outputs, "family": family, **given}
    place = str(getattr(v, "device", "the CPU"))
    problem = _posed(tensors, family, given)
    if isinstance(problem, str):
        report = audit_recurrent(**everything)
        return _told(report, f"Judged on the CPU: {problem}.")
    from ..device.recurrent import judge_recurrence

    rate = given.get("false_alarm_rate") or _USUAL_RATE
    is_any = given.get("premises") is None
    findings = judge_recurrence(problem, rate, may_be_recurrent=is_any)
    heads = sorted(findings.open_heads)
    if not heads:
        text = f"{_passed(findings)}\n\n{_how(problem, place)}.\n"
        return Report(True, _passed(findings), None, (), text, {}, decided_by="device")
    of = f"{len(heads)} of {problem.heads} heads are not surely within their limits"
    if len(heads) == problem.heads or family == "retention":
        report = audit_recurrent(**everything)
        return _told(report, f"{_how(problem, place)}; {of}, so that all went to the CPU.")
    part = _part(problem, heads)
    # Each head's own share of the rate.
    share = rate * len(heads) / problem.heads
    report = audit_recurrent(**part, false_alarm_rate=share, premises=given.get("premises"))
    if report.passed and len(findings.ratios) > len(heads):
        report = replace(report, sentence=_passed(findings))
    return _told(report, f"{_how(problem, place)}; {of} and went to the CPU, in this order: {_named(problem, heads)}.")  # fmt: skip


def _told(report: Report, line: str) -> Report:
    return replace(report, text=f"{report.text.rstrip()}\n\n{line}\n")


def _passed(findings: Findings) -> str:
    used = 100 * findings.worst_ratio
    return (
        "PASS: the results stay within what rounding explains; "
        f"the worst element that the device judged uses {used:.3g} % of its limit there."
    )


def _how(problem: RecurrentProblem, place: str) -> str:
    from ..device.recurrent import DRAWS

    return (
        f"Judged on {place}, by {DRAWS} draws of a kernel in chunks of 64 tokens with half of an audit's margin, "
        f"{'the output' if problem.final_state is None else 'the output and the final state'} of {problem.heads} heads"
    )


def _named(problem: RecurrentProblem, heads: list[int]) -> str:
    count = problem.v.shape[2]
    named = [f"batch {head // count} head {head % count}" for head in heads[:8]]
    return ", ".join([*named, *(["…"] if len(heads) > 8 else [])])


def _posed(
    tensors: Mapping[str, Any], family: str, given: Mapping[str, Any]
) -> RecurrentProblem | str:
    """The problem as the device judges it; or why it does not, in a clause."""
    import torch

    from ..device.recurrent import LAWS, NORMALISATION, RecurrentProblem

    if family not in LAWS:
        return f"the device does not judge {family}"
    if any(given.get(name) is not None for name in (*RECURRENT_GRADIENTS, "dfinal_state")):
        return "the device judges no gradients"
    if given.get("options"):
        return "options are those of the command line"
    if given.get("premises") not in (None, "chunked", "fla"):
        return f"the device judges no premises {given.get('premises')!r}"
    if any(given.get(name) is not None for name in ("A_log", "a", "b")):
        return "the device judges no kernels that make their gates"
    if any(given.get(name) is not None for name in Mamba2Arguments.__optional_keys__):
        return "it has arguments of mamba2"
    posed = _canonical(tensors, given)
    reason = _why_not(posed, family, given)
    if reason is not None:
        return reason
    epsilon = given.get("normalisation")
    if epsilon is None or epsilon is False:
        epsilon = None
    elif epsilon is True:
        epsilon = NORMALISATION
    scale, ends = given.get("scale"), given.get("cu_seqlens")
    own = {name: posed[name] for name in (*_PER_HEAD, *_STATES)}
    return RecurrentProblem(
        **own,
        family=family,
        ends=None if ends is None else tuple(int(x) for x in torch.as_tensor(ends).tolist()),
        scale=posed["q"].shape[-1] ** -0.5 if scale is None else number_of("scale", scale),
        epsilon=None if epsilon is None else number_of("normalisation", epsilon),
    )


def _canonical(tensors: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors as [batch, tokens, heads, …], and states with the key dimension first."""
    turn_rows = given.get("layout") == "bhtd"
    turn_states = given.get("state_layout") == "vk"
    found = {}
    for name, x in tensors.items():
        turned = x
        if x is not None and x.dim() > 2 and turn_rows and name in _PER_HEAD:
            turned = x.transpose(1, 2)
        if x is not None and x.dim() == 4 and turn_states and name in _STATES:
            turned = x.transpose(2, 3)
        found[name] = None if turned is None else turned.detach()
    return found


def _why_not(posed: Mapping[str, Any], family: str, given: Mapping[str, Any]) -> str | None:
    """What keeps tensors from being judged on the device, in a clause. What does not fit together the command line refuses."""
    import torch

    if not _fits(posed, family, given):
        return "its tensors are not of the sizes of the family"
    known = (torch.bfloat16, torch.float16, torch.float32)
    there = [x for x in posed.values() if x is not None]
    if any(x.dtype not in known for x in there):
        return "a tensor is of another format than bf16, fp16 and fp32"
    if len({posed[name].dtype for name in ("q", "k", "v")}) > 1:
        return "Q, K and V have several formats"
    if len({x.device for x in there}) > 1:
        return "its tensors lie on several devices"
    if any(not bool(torch.isfinite(posed[name]).all()) for name in posed if posed[name] is not None):  # fmt: skip
        return "a tensor has infinities or NaNs"
    # Larger numbers leave fp32's range in a kernel, about which the device knows nothing.
    if any(float(x.abs().max()) > 1e15 for x in there if x.numel() > 0):
        return "a tensor has numbers above 1e15"
    g = posed["g"]
    return "g has gates above 0" if g is not None and float(g.max()) > 0 else None


def _fits(posed: Mapping[str, Any], family: str, given: Mapping[str, Any]) -> bool:
    from ..device.recurrent import LAWS

    q, k, v, out, g, beta = (posed[name] for name in _PER_HEAD)
    if any(x.dim() != 4 or x.numel() == 0 for x in (q, k, v)) or q.shape != k.shape:
        return False
    if q.shape[:2] != v.shape[:2] or v.shape[2] % q.shape[2] != 0 or out.shape != v.shape:
        return False
    decay, is_delta = LAWS[family]
    rows = tuple(v.shape[:3])
    wanted = {"head": rows, "dim": (*rows, q.shape[3])}.get(decay or "")
    if family == "retention":
        wanted = None
    if (wanted is None) != (g is None) or g is not None and tuple(g.shape) != wanted:
        return False
    if is_delta != (beta is not None) or beta is not None and tuple(beta.shape) != rows:
        return False
    ends = given.get("cu_seqlens")
    sequences = v.shape[0] if ends is None else len(ends) - 1
    if ends is not None and not _are_ends([int(x) for x in ends], v.shape):
        return False
    state = (sequences, v.shape[2], q.shape[3], v.shape[3])
    words = ("layout", ("bthd", "bhtd")), ("state_layout", ("kv", "vk"))
    if any(given.get(name) not in (None, *values) for name, values in words):
        return False
    return all(posed[x] is None or tuple(posed[x].shape) == state for x in _STATES)


def _are_ends(ends: list[int], shape: tuple[int, ...]) -> bool:
    is_whole = len(ends) > 1 and ends[0] == 0 and ends[-1] == shape[1] and shape[0] == 1
    # A sequence without tokens leaves its state as it was, which is the command line's to judge.
    return is_whole and all(first < end for first, end in zip(ends, ends[1:]))


def _part(problem: RecurrentProblem, heads: list[int]) -> dict[str, Any]:
    """The arguments of `audit_recurrent` for some heads: as entries of a batch, or as heads of packed sequences."""
    import torch

    count = problem.v.shape[2]
    numbers = torch.tensor(heads, device=problem.v.device)
    entry, head = numbers // count, numbers % count
    key_head = head // (count // problem.k.shape[2])
    is_packed = problem.ends is not None

    def rows(x: Any, at: Any) -> Any:
        return x[:, :, at] if is_packed else x[entry, :, at][:, :, None]

    found: dict[str, Any] = {"family": problem.family, "scale": problem.scale}
    for name in _PER_HEAD:
        x = getattr(problem, name)
        if x is not None:
            found[name] = rows(x, key_head if name in ("q", "k") else head)
    for name in _STATES:
        x = getattr(problem, name)
        if x is not None:
            found[name] = x[:, head] if is_packed else x[entry, head][:, None]
    if problem.epsilon is not None:
        found["normalisation"] = problem.epsilon
    if problem.ends is not None:
        found["cu_seqlens"] = torch.tensor(problem.ends)
    return found
