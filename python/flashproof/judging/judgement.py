"""What a judge found: `Judgement`."""

from __future__ import annotations

import json
import statistics
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

#: `undecided` where something of the plan was not judged.
Verdict = Literal["pass", "fail", "undecided"]


@dataclass(frozen=True)
class Accuracy:
    """The errors of one problem, for those who rank by accuracy."""

    #: Where the problem belongs, as "on 1×1 heads, …".
    problem: str
    #: Errors in units in the last place of the output's format; None where they were not measured in these.
    max_ulps: float | None
    rms_ulps: float | None
    #: The root mean square error over the one that independent roundings of a correct kernel make; None where none do.
    rms_ratio: float | None


@dataclass(frozen=True)
class Judgement:
    """The verdict on a candidate. True where it passes."""

    verdict: Verdict
    #: The verdict in one sentence.
    sentence: str
    #: Why it fails, by a name of docs/guide/judge.md: `time`, `stale`, `shape`, or a cause of docs/guide/auditing.md; None for a pass.
    cause: str | None
    #: What is wrong, with the numbers; None where nothing is.
    reason: str | None
    #: Where: the part of the plan, the property, and the problem.
    place: str | None
    #: The saved problem that shows it.
    witness: str | None
    #: The line of Python that judges the witness again.
    replay: str | None
    #: What the verdict says nothing about.
    not_judged: tuple[str, ...]
    #: The chance, at most, that the bounds of this judgement refuse a correct kernel.
    false_alarm_rate: float
    profile: tuple[Accuracy, ...]
    #: What the candidate was seen to do besides, which is no verdict.
    observed: tuple[str, ...]
    #: What the problems were drawn by, after the candidate was read.
    seed: int
    #: The hash of what was judged.
    sha256: str
    #: How many times the candidate was called.
    calls: int
    seconds: float

    def __bool__(self) -> bool:
        return self.verdict == "pass"

    @property
    def median_ratio(self) -> float | None:
        """The median error of the profile, over what independent roundings of a correct kernel make; None where none was measured."""
        ratios = [one.rms_ratio for one in self.profile if one.rms_ratio is not None]
        return statistics.median(ratios) if ratios else None

    def to_json(self) -> dict[str, Any]:
        """The judgement as a document (docs/guide/judge.md has its schema)."""
        return {"kind": "judgement", "schemaVersion": 1, **json.loads(json.dumps(asdict(self)))}

    def __str__(self) -> str:
        lines = [self.sentence]
        rows: Mapping[str, str | None] = {
            "Cause": self.cause,
            "Wrong": self.reason,
            "Place": self.place,
            "Witness": self.witness,
            "Again": self.replay,
            "Errors": self._errors(),
            "Seen": "; ".join(self.observed) or None,
            "Not judged": "; ".join(self.not_judged) or None,
        }
        for name, text in rows.items():
            if name == "Again" and text is not None:
                # A line to paste.
                lines.append(f"{name:<12}{text}")
            elif text is not None:
                lines += textwrap.wrap(
                    text,
                    100,
                    initial_indent=f"{name:<12}",
                    subsequent_indent=" " * 12,
                    # A path is copied as a whole.
                    break_on_hyphens=False,
                    break_long_words=False,
                )
        judged = f"{self.calls} calls, seed {self.seed}, sha256 {self.sha256[:16]}…"
        alarms = f"false alarms {self.false_alarm_rate:.0e} at most, {self.seconds:.1f} s"
        lines.append(f"{'Judged':<12}{judged}, {alarms}")
        return "\n".join(lines)

    def _errors(self) -> str | None:
        if self.median_ratio is None:
            return None
        return f"{self.median_ratio:.2g} of what independent roundings make, in the median of {len(self.profile)} problems"
