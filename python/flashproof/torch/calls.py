"""One call of `scaled_dot_product_attention`, what backward gives of it, and the verdict on both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..arguments import AuditArguments, JudgingArguments, ProblemArguments
from ..audits import audit, audit_on_device, judge_and_keep, keep_failure
from ..dump import Premises
from ..report import Report
from .backward import Backward
from .problem import NotJudgedError, Problem, SdpaArguments, as_posed, check_call, pose
from .verdicts import JudgedCall

#: Gradients by the tensor that each is of, and that tensor by PyTorch's name.
GRADIENTS = {"query": "dq", "key": "dk", "value": "dv", "attn_mask": "dbias"}


def watch_inputs(watched: Backward, call: SdpaArguments) -> SdpaArguments:
    """The call with tensors whose gradients `watched` meets."""
    views = {
        name: watched.watch_input(GRADIENTS[name], one)
        for name, one in call.tensors().items()
        if one.requires_grad
    }
    return replace(call, **views)


def chosen_premises(call: SdpaArguments) -> Premises:
    """How the backend computes that PyTorch chooses for a call: its math backend in the inputs' format, or a fused kernel."""
    choose = getattr(torch, "_fused_sdp_choice", None)
    if choose is None:
        return "fused"
    beside = {"scale": call.scale, "enable_gqa": call.enable_gqa}
    mask = call.attn_mask
    choice = choose(
        call.query, call.key, call.value, mask, call.dropout_p, call.is_causal, **beside
    )
    if choice != torch.nn.attention.SDPBackend.MATH.value:
        return "fused"
    # Of short formats it makes fp32 first, unless it was told not to.
    is_short = call.query.dtype in (torch.bfloat16, torch.float16)
    may_reduce = getattr(torch.backends.cuda, "fp16_bf16_reduction_math_sdp_allowed", None)
    return "fused" if is_short and may_reduce is not None and not may_reduce() else "torch-math"


def audit_call(
    out: Tensor,
    *args: Any,
    lse: Tensor | None = None,
    premises: Premises | None = "fused",
    **call: Any,
) -> Report:
    """
    Judge what a kernel gave for a call of `scaled_dot_product_attention`, by the arguments of that.

    Tensors and settings mean what they mean there, `is_causal` from the first key on too. `lse` has natural logarithms. ValueError,
    with one line that says why, for a call that cannot be judged.
    """
    arguments = SdpaArguments(*args, **call)
    check_call(arguments)
    problem = pose(arguments)
    given = {"q": problem.q, "k": problem.k, "v": problem.v, "out": as_posed(out.detach(), problem)}
    if lse is not None:
        given["lse"] = lse.detach()
    asked: ProblemArguments = {**problem.arguments(), "premises": premises}
    return audit(**given, **asked)


@dataclass
class RecordedCall:
    """A call that was carried out, with all that its verdict needs."""

    said: JudgedCall
    problem: Problem
    out: Tensor
    backward: Backward | None
    premises: Premises | None

    @staticmethod
    def of(
        said: JudgedCall,
        call: SdpaArguments,
        out: Tensor,
        backward: Backward | None,
        premises: Premises | None,
    ) -> RecordedCall:
        """The record; NotJudgedError where the call is not judged. With `backward` tensors are copied, for what follows may change them."""
        problem = pose(call)
        said.problem = problem.words()
        if out.dtype != call.query.dtype:
            raise NotJudgedError(f"the output is {out.dtype} of inputs in {call.query.dtype}")
        shaped = as_posed(out.detach(), problem)
        if backward is not None:
            names = ("q", "k", "v", "mask", "bias")
            own = {name: getattr(problem, name) for name in names}
            problem = replace(
                problem, **{name: one.clone() for name, one in own.items() if one is not None}
            )
            shaped = shaped.clone()
        return RecordedCall(said, problem, shaped, backward, premises)

    def judge(self, settings: JudgingArguments) -> None:
        """Say in `said` what comes of it."""
        try:
            gradients = self._gradients()
            try:
                report = self._report(settings, gradients)
            except ValueError as error:
                if not gradients:
                    raise
                self.said.gradients_not_judged = str(error)
                gradients = {}
                report = self._report(settings, gradients)
        except (ValueError, TypeError) as error:
            self.said.not_judged = str(error)
            return
        if report.status == "NOT JUDGED":
            self.said.not_judged = report.sentence
            return
        self.said.report = report
        self.said.gradients = tuple(name for name in gradients if name != "dout")

    def _gradients(self) -> Mapping[str, Tensor]:
        """dO and the gradients to be judged, in the problem's sizes; none where there are none, for which `said` has a reason."""
        watched = self.backward
        if watched is None:
            return {}
        if "dout" not in watched.given:
            self.said.gradients_not_judged = "no backward pass came through"
            return {}
        problem, reasons = self.problem, []
        found = {"dout": as_posed(watched.given["dout"], problem)}
        shapes = {"dq": problem.q, "dk": problem.k, "dv": problem.v, "dbias": problem.bias}
        for name, grad in watched.found.items():
            like = shapes[name]
            if name[1:] in problem.repeated:
                reasons.append(f"{name} is a sum over what {name[1:].upper()} is repeated for")
            elif like is None or grad.numel() != like.numel():
                reasons.append(f"{name} has {list(grad.shape)}")
            else:
                found[name] = grad.reshape(like.shape)
        if watched.runs > 1:
            reasons.append(f"backward ran {watched.runs} times, of which the first is judged")
        if reasons:
            self.said.gradients_not_judged = "; ".join(reasons)
        return found if len(found) > 1 else {}

    def _report(self, settings: JudgingArguments, gradients: Mapping[str, Tensor]) -> Report:
        problem = self.problem
        outputs = {"q": problem.q, "k": problem.k, "v": problem.v, "out": self.out}
        given: AuditArguments = {**settings, **problem.arguments(), **gradients}  # type: ignore[typeddict-item]
        given["premises"] = self.premises
        plain = problem.on_device() if self.premises == "fused" else None
        # Keys that no query sees are left out there, and so would be their gradients.
        if plain is not None and gradients and plain[0][1] is not problem.k:
            plain = None
        asked = {name for name, value in settings.items() if value is not None}
        if plain is None or not lies_on_device(problem.q) or asked - {"false_alarm_rate"}:
            return judge_and_keep(outputs, given)
        tensors, score = plain
        rate = settings.get("false_alarm_rate") or 1e-9
        report = audit_on_device(*tensors, self.out, false_alarm_rate=rate, **gradients, **score)
        return report if report.passed else replace(report, command=keep_failure(outputs, given))


def lies_on_device(x: Tensor) -> bool:
    """Whether PyTorch can judge a tensor where it lies, and faster than the CPU."""
    return str(x.device.type) == "cuda"
