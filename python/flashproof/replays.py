"""A report of a check in the words of Python, with the line that tries a saved problem again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .kernel_host import Kernel
from .wording import document_in_python, name_of, report_in_python

#: A line of a report that shows the command by which a problem is tried again, with its continuation.
_REPLAY = re.compile(r"^(  Replay +)\S.*(?:\n {12}.*)*", re.MULTILINE)
#: The line of a report that says which process the kernel was.
_KERNEL = re.compile(r"^(Kernel +)\S.*(?:\n {8}.*)*", re.MULTILINE)
_REPORTED = re.compile(
    r"the\s+kernel's\s+process\s+(reported\s+an\s+error|declined\s+the\s+problem):"
)


def _saved_problems(document: Mapping[str, Any]) -> list[str]:
    """The paths of the problems that a check has saved."""
    return [
        words[words.index("--replay") + 1]
        for violation in (one.get("violation") for one in document["properties"])
        if violation is not None
        for words in [violation.get("replay") or []]
        if "--replay" in words
    ]


def spoken(said: str) -> str:
    """What a report says of the kernel: it is no process of its own here."""
    verbs = {"r": "the kernel raised:", "d": "the kernel declined the problem:"}
    return report_in_python(_REPORTED.sub(lambda match: verbs[match[1][0]], said))


def check_in_python(text: str, document: Mapping[str, Any], kernel: str, replay: str) -> str:
    """The report with the line that tries a problem again from Python: the command that it shows needs this process."""
    saved = _saved_problems(document)

    def again(match: re.Match[str]) -> str:
        shown = "".join(match[0].replace("\\\n", "").split())
        paths = [path for path in saved if "".join(path.split()) in shown]
        path = max(paths, key=len, default="")
        return f"{match[1]}{replay.replace('<path>', repr(path))}" if path else match[0]

    return of_this_process(_REPLAY.sub(again, text), kernel)


def of_this_process(text: str, kernel: str) -> str:
    """A report whose kernel is one of this process, and no command."""
    return spoken(_KERNEL.sub(lambda match: match[1] + kernel, text))


def check_document_in_python(document: Any, kernel: str, replay: str) -> dict[str, Any]:
    """The document of a check: the kernel is one of this process, and a problem is tried again by a line of Python."""
    found: dict[str, Any] = document_in_python(document, spoken)
    found["kernel"]["command"] = kernel
    for one in found["properties"]:
        violation = one.get("violation")
        if violation is not None and violation.get("saved"):
            violation["replay"] = [replay.replace("<path>", repr(violation["saved"]))]
    return found


def replay_line(
    kernel: Kernel,
    promises: Mapping[str, Any] | None,
    settings: Mapping[str, tuple[object, object]],
) -> str:
    """The call that tries a saved problem again, its path as <path>; `settings` are keywords with their values and their defaults."""
    words = [name_of(kernel), "<path>"]
    if promises is not None:
        words.append(repr(dict(promises)))
    words += [
        f"{name}={name_of(value) if callable(value) else repr(value)}"
        for name, (value, default) in settings.items()
        if value != default
    ]
    return f"flashproof.replay({', '.join(words)})"
