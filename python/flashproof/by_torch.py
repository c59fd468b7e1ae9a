"""Tensors and arrays on the CPU, judged by PyTorch where that is imported: passes of `assert_attention` without the command line."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .arguments import FEATURES, AuditArguments, settings_of
from .arrays import DTYPES
from .report import Report

if TYPE_CHECKING:
    from .device import AttentionProblem, DeviceVerdict, PosedProblem

#: Arguments that PyTorch's judge takes; any other is the command line's, and so is the verdict.
_TAKEN = frozenset(
    ("scale", "causal", "window", "softcap", "layout", "premises", "strict_premises")
    + ("mask", "bias", "alibi_slopes", "sink", "features")
    + ("dout", "dq", "dk", "dv", "false_alarm_rate")
)
#: Multiply-adds of Q·K and P·V above which the command line judges a sample of the rows: `mostMultiplyAdds` of src/audit/rows.
_MOST_MULTIPLY_ADDS = 1e12
#: Pairs of a query and a key from which on several threads are worth their waiting for one another: half a second of one.
_PAIRS_FOR_THREADS = 2**22
#: Processes that want to run, for each core, from which on a thread that waits for another waits for long, and spins.
_BUSY = 1.5


@dataclass(frozen=True)
class Open:
    """Why the command line has to judge, in a clause."""

    reason: str
    #: Pairs of a query and a key of a problem that PyTorch has judged, and that does not surely pass; None where it has not.
    doubted: int | None = None


def pass_by_torch(outputs: Mapping[str, Any], given: AuditArguments) -> Report | Open:
    """
    The report of outputs that surely pass; else why the command line has to judge them.

    `outputs` has Q, K, V, `out` and `lse` by name. Nothing fails here, and nothing is refused: the command line says why.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return Open("there is no PyTorch")
    given_tensors = {**outputs, **{one: given.get(one) for one in ("dout", "dq", "dk", "dv")}}
    tensors = {
        name: _shared_with_torch(torch, x) for name, x in given_tensors.items() if x is not None
    }
    features = {name: _shared_with_torch(torch, x) for name, x in feature_tensors(given).items()}
    reason = _why_other_arguments(given) or _why_other_tensors(torch, {**features, **tensors})
    if reason is not None:
        return Open(reason)
    try:
        posed = pose_for_device({**tensors, **features}, given)
        reason = (
            _why_other_formats(posed, given)
            or _why_too_long(posed.problem)
            or _why_other_arithmetic(torch)
        )
        if reason is not None:
            return Open(reason)
        verdict = _verdict(torch, posed, given)
    except ValueError as error:
        return Open(str(error))
    if isinstance(verdict, str):
        q, k = posed.problem.q, posed.problem.k
        return Open(verdict, q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2])
    text = f"{verdict.sentence}\n\nJudged on {verdict.device}, by PyTorch.{posed.beside}\n"
    return Report(True, verdict.sentence, None, (), text, {}, decided_by="device")


def feature_tensors(given: Mapping[str, Any]) -> dict[str, Any]:
    """The further tensors of a problem among arguments, by name."""
    beside = {name: given.get(name) for name in FEATURES}
    found = {**beside, **(given.get("features") or {})}
    return {name: x for name, x in found.items() if x is not None}


def pose_for_device(tensors: Mapping[str, Any], given: Mapping[str, Any]) -> PosedProblem:
    """
    The problem of tensors by name, those of `feature_tensors` among them or among `given`, as the device judges it.

    NotPosedError, a ValueError, for what it does not take; ValueError for numbers that are none, as the command line tells them.
    """
    import torch

    from .device import AttentionProblem, NotPosedError, posed_problem

    features = {name: tensors.get(name, x) for name, x in feature_tensors(given).items()}
    q, k, v = (tensors[name] for name in ("q", "k", "v"))
    for name, x in features.items():
        if not isinstance(x, torch.Tensor):
            raise NotPosedError(f"{name} is no tensor of PyTorch's own")
    features = {name: x.detach().to(q.device) for name, x in features.items()}
    score = settings_of(given).metadata()
    window = score.get("window")
    left, right = (None, None) if window is None else map(int, window.split(","))
    problem = AttentionProblem(
        q,
        k,
        v,
        float(score["scale"]) if "scale" in score else None,
        score["causal"] == "true",
        None if left is None or right is None else (left, right),
        float(score["softcap"]) if "softcap" in score else None,
    )
    own = {name: x for name, x in tensors.items() if name not in features}
    return posed_problem(own, features, score["layout"], problem)


def _verdict(torch: Any, posed: PosedProblem, given: AuditArguments) -> DeviceVerdict | str:
    from .device import USUAL_FALSE_ALARM_RATE, judge_here

    rate = given.get("false_alarm_rate")
    q, k = posed.problem.q, posed.problem.k
    pairs = q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2]
    with _threads_for(torch, pairs), torch.inference_mode(), _made_on(torch, q.device):
        return judge_here(
            posed.problem,
            posed.outputs,
            posed.gradients,
            false_alarm_rate=USUAL_FALSE_ALARM_RATE if rate is None else rate,
        )


def _made_on(torch: Any, device: Any) -> AbstractContextManager[Any]:
    """Makes new tensors there. Where they are anyway nothing is entered: that slows every operation down."""
    return nullcontext() if torch.empty(0).device == device else device


@contextmanager
def _threads_for(torch: Any, pairs: int) -> Iterator[None]:
    """Leaves small problems, and all on a busy machine, to one thread: others would wait for one another, some of them by spinning."""
    before = torch.get_num_threads()
    if before == 1 or pairs >= _PAIRS_FOR_THREADS and not _is_busy():
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _is_busy() -> bool:
    # Windows knows no such number.
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    cores = os.cpu_count() or 1
    return load > _BUSY * cores and _running() > cores


def _running() -> float:
    """How many threads want to run now, this one too, where Linux says it: the load is that of the last minute."""
    try:
        with open("/proc/loadavg", encoding="ascii") as numbers:
            return int(numbers.read().split()[3].partition("/")[0])
    except OSError:
        return math.inf


def _shared_with_torch(torch: Any, x: Any) -> Any:
    """An array of NumPy as a tensor of the same elements, copied only where PyTorch cannot share them; anything else as it is."""
    numpy = sys.modules.get("numpy")
    # A subclass may be anything, as a masked array.
    if numpy is None or type(x) is not numpy.ndarray:
        return x
    dtype = getattr(torch, x.dtype.name, None) if x.dtype.name in DTYPES else None
    if dtype is None or not x.dtype.isnative:
        return x
    # PyTorch knows neither the dtypes of ml_dtypes nor strides below 0, and warns of arrays that are not to be written.
    own = x.copy() if min(x.strides, default=0) < 0 else numpy.require(x, requirements="CW")
    bits = own.view(f"i{x.dtype.itemsize}")
    return torch.from_numpy(bits).view(dtype)


def _why_other_arguments(given: AuditArguments) -> str | None:
    asked = sorted(name for name, value in given.items() if value is not None)
    others = [name for name in asked if name not in _TAKEN]
    if others:
        return f"{' and '.join(others)} {'is' if len(others) == 1 else 'are'} given"
    # What is said to be unknown is judged by the command line's own rules.
    if given.get("premises", "fused") != "fused":
        return "the premises are others than of a fused kernel"
    if given.get("layout", "bhsd") not in ("bhsd", "bshd"):
        return "the layout is none"
    return None


def _why_other_tensors(torch: Any, tensors: Mapping[str, Any]) -> str | None:
    missing = [name for name in ("q", "k", "v", "out") if name not in tensors]
    if missing:
        return f"{' and '.join(missing)} is not given"
    for name, x in tensors.items():
        # A subclass may be anything, and so are its elements.
        if type(x) not in (torch.Tensor, torch.nn.Parameter):
            return f"{name} is no tensor of PyTorch's own"
        if x.layout is not torch.strided or x.is_nested or x.device.type != "cpu":
            return f"{name} is not dense, or not on the CPU"
    return None


def _why_other_formats(posed: PosedProblem, given: AuditArguments) -> str | None:
    """As posed, [batch, heads, seqlen, dim] each."""
    problem, lse = posed.problem, posed.outputs.lse
    gradients = {} if posed.gradients is None else vars(posed.gradients)
    tensors = {
        "q": problem.q,
        "k": problem.k,
        "v": problem.v,
        "out": posed.outputs.out,
        **gradients,
    }
    tensors = {name: x for name, x in tensors.items() if x is not None}
    for name, x in tensors.items():
        if x.dim() != 4:
            return f"{name} has {x.dim()} dimensions"
    if problem.v.dtype != problem.q.dtype:
        return "q and v have different formats"
    if lse is not None and lse.shape != tensors["out"].shape[:3]:
        return f"lse has shape {list(lse.shape)}"
    if given.get("strict_premises"):
        others = [name for name, x in tensors.items() if x.dtype != problem.q.dtype]
        if others:
            return f"{others[0]} has another format than q, and premises are strict"
    return None


def _why_too_long(problem: AttentionProblem) -> str | None:
    batch, heads, queries, dim = problem.q.shape
    keys, v_dim = problem.v.shape[2:]
    if batch * heads * queries * keys * (dim + v_dim) > _MOST_MULTIPLY_ADDS:
        return "a sample of the rows is judged"
    return None


def _why_other_arithmetic(torch: Any) -> str | None:
    # torch.set_flush_denormal: the bounds are proven for fp64 with subnormal numbers.
    least = torch.tensor(2.0**-1074, dtype=torch.float64, device="cpu")
    return "PyTorch flushes subnormal numbers" if bool(least * 1.0 == 0) else None
