"""A call of attention, what backward gives of it, and the verdict on both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from ..arguments import AuditArguments, FeatureArguments, JudgingArguments, ProblemArguments
from ..audits import audit, audit_on_device, keep_failure, verdict_on
from ..dump import Premises
from ..report import Report
from .backward import Backward
from .judged_call import JudgedCall
from .problem import SdpaArguments, as_posed, check_call, pose


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


class Posed(Protocol):
    """A call as a problem of `audit`."""

    @property
    def options(self) -> tuple[str, ...]:
        """Further words of `flashproof audit`."""

    def words(self) -> str:
        """The problem in a few words."""

    def cloned(self) -> Posed:
        """The same with tensors of its own."""

    def arguments(self) -> ProblemArguments:
        """What `audit` takes besides Q, K, V and outputs."""

    def gradients(
        self, given: Tensor, found: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], list[str]]:
        """dO and the gradients of those that a backward pass gave, as `audit` takes them, and why others are left out."""

    def on_device(
        self, *, has_gradients: bool = False
    ) -> tuple[tuple[Tensor, Tensor, Tensor], FeatureArguments] | None:
        """Q, K and V for `audit_on_device`, and what it takes besides; None where it takes no such problem."""


@dataclass
class RecordedCall:
    """A call that was carried out, with all that its verdict needs."""

    said: JudgedCall
    problem: Posed
    #: Q, K, V, the output and the LSE, by the names of `audit`.
    outputs: Mapping[str, Tensor]
    premises: Premises | None
    backward: Backward | None = None
    _asked: AuditArguments = field(default_factory=lambda: AuditArguments())

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

    def keep(self) -> str:
        """Keep what was judged in the session's folder; the command that judges it again."""
        return keep_failure(self.outputs, self._asked, self.said.number)

    def _gradients(self) -> Mapping[str, Tensor]:
        """dO and the gradients to be judged, in the problem's sizes; none where there are none, for which `said` has a reason."""
        watched = self.backward
        if watched is None:
            return {}
        if "dout" not in watched.given:
            self.said.gradients_not_judged = "no backward pass came through"
            return {}
        found, reasons = self.problem.gradients(watched.given["dout"], watched.found)
        if reasons:
            self.said.gradients_not_judged = "; ".join(reasons)
        return found if len(found) > 1 else {}

    def _report(self, settings: JudgingArguments, gradients: Mapping[str, Tensor]) -> Report:
        """The report, by PyTorch where the tensors lie if that can, else by the command line."""
        given: AuditArguments = {**settings, **self.problem.arguments(), **gradients}  # type: ignore[typeddict-item]
        given["premises"] = self.premises
        own = self.problem.options
        if own:
            given["options"] = [*own, *(settings.get("options") or ())]
        self._asked = given
        asked = {name for name, value in settings.items() if value is not None}
        is_plain = self.premises == "fused" and not own and not asked - {"false_alarm_rate"}
        q = self.outputs["q"]
        plain = self.problem.on_device(has_gradients=bool(gradients)) if is_plain else None
        if plain is None or not lies_on_device(q):
            return verdict_on(self.outputs, given)
        tensors, asked_there = plain
        rate = settings.get("false_alarm_rate") or 1e-9
        out, lse = self.outputs["out"], self.outputs.get("lse")
        try:
            return audit_on_device(
                *tensors, out, lse, false_alarm_rate=rate, **gradients, **asked_there
            )
        except ValueError:
            # What it does not take the command line may, and tells what it is if not.
            return verdict_on(self.outputs, given)


def lies_on_device(x: Tensor) -> bool:
    """Whether PyTorch can judge a tensor where it lies, and faster than the CPU."""
    return str(x.device.type) == "cuda"
