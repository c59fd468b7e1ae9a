"""Weaknesses of libraries that are known, by the names that `known` accepts them by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..report import Report


@dataclass(frozen=True)
class Subject:
    """Whose call a report is of."""

    #: The function's name with its module.
    function: str
    #: The kind of device that the tensors lie on: `cpu`, `cuda`.
    device: str
    #: The format of Q, as PyTorch names it: `bfloat16`.
    format: str
    #: What its caller may have left unsaid, in a sentence, by the cause that is found then.
    advice: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Weakness:
    """A weakness of a library, and how a report shows that it is this and nothing else."""

    name: str
    #: What the library does, in a sentence.
    said: str
    function: str
    device: str
    formats: frozenset[str]
    #: The cause that the audit names; it names one only where that explains all that it found.
    cause: str
    #: What may be wrong by it.
    quantities: frozenset[str]

    def explains(self, report: Report, subject: Subject) -> bool:
        """Whether a report that fails shows this weakness, and nothing besides."""
        wrong = {one.quantity for one in report.findings}
        return (
            (subject.function, subject.device) == (self.function, self.device)
            and subject.format in self.formats
            and report.cause == self.cause
            and len(wrong) > 0
            and wrong <= self.quantities
        )


#: docs/reference/findings.md shows each.
WEAKNESSES = (
    Weakness(
        name="torch-cpu-narrow-sums",
        said="PyTorch's flash kernel for the CPU adds up dK and dV in the inputs' format",
        function="torch.nn.functional.scaled_dot_product_attention",
        device="cpu",
        formats=frozenset(("bfloat16", "float16")),
        cause="narrow-sums",
        quantities=frozenset(("dk", "dv")),
    ),
)


def check_known(names: Iterable[str] | None) -> frozenset[str]:
    """The names as a set. ValueError for one that no weakness has."""
    known = (names,) if isinstance(names, str) else tuple(names or ())
    there = [one.name for one in WEAKNESSES]
    for name in known:
        if name not in there:
            raise ValueError(f"known has {name!r}; it takes {', '.join(there)}")
    return frozenset(known)


def weakness_of(report: Report, subject: Subject) -> Weakness | None:
    """The known weakness that a report shows and nothing besides; None where it passes or shows another fault."""
    if report.passed:
        return None
    return next((one for one in WEAKNESSES if one.explains(report, subject)), None)
