"""A problem with what a kernel gave, as the command line takes it, and where problems are kept."""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .arguments import KeptAuditArguments, KeptRecurrentArguments, read_report
from .dump import temporary_folder, write_dump
from .report import Report, parse_report_in_python
from .safetensors import Array
from .server import Answer, RequestError, shared_server
from .wording import arguments_of, in_python


@dataclass
class Session:
    """What a test session asks of every audit: see the pytest plugin."""

    #: A folder for a page of each audit; None for none.
    html: Path | None = None
    #: Where problems of failed assertions are kept.
    failures: Path = field(default_factory=lambda: Path("flashproof-failures"))
    #: What stands in the names of kept files.
    test: str = ""


session = Session()

#: The arguments of the functions that ask about a problem.
_ARGUMENTS = (KeptAuditArguments, KeptRecurrentArguments)


def answer_about(path: str, words: Sequence[str], options: Sequence[str] = ()) -> Answer:
    """The answer to a command about a file that its caller never saw: no error names the file."""
    try:
        return shared_server().run(words)
    except RequestError as error:
        # Arguments are what its metadata are made of.
        said = str(error).replace(f"{path}: metadata ", "").replace(f"{path}: ", "")
        raise RequestError(
            in_python(said, arguments_of(answer_about, options, *_ARGUMENTS))
        ) from None


@dataclass(frozen=True)
class Request:
    """A problem with what a kernel gave, and how it is judged."""

    tensors: Mapping[str, Array]
    #: The settings, as a file notes them.
    metadata: Mapping[str, str]
    words: Sequence[str]
    options: Sequence[str]
    #: What stands in the names of kept files outside of tests.
    kind: str = "attention"

    def report(self) -> Report:
        """What `flashproof audit` says."""
        with temporary_folder() as folder:
            path = write_dump(folder, "problem", self.tensors, self.metadata)
            document = os.path.join(folder, "report.json")
            page = (
                [] if session.html is None else ["--html", str(self._unused(session.html, ".html"))]
            )
            words = ["audit", path, "--json", document, *self.words, *page, *self.options]
            try:
                said = answer_about(path, words, self.options).stdout
            except RequestError as error:
                # What is wrong with one of several problems stands in the report of all.
                if str(error) != "":
                    raise
                said = ""
            found = read_report(document, "audit", self.options)
            report = parse_report_in_python(found, said)
        # Whatever was given was to count: no pass without it.
        warnings = report.json["warnings"]
        if warnings:
            raise RequestError(
                "; ".join(f"{', '.join(one['names'])}: {one['statement']}" for one in warnings)
            )
        return report

    def report_and_keep(self, keep: str | os.PathLike[str] | None) -> Report:
        """The report, and the problem kept in a file where one is named."""
        report = self.report()
        return report if keep is None else replace(report, command=self.keep(Path(keep)))

    def report_or_keep(self) -> Report:
        """The report; a problem that fails is kept in the session's folder."""
        report = self.report()
        return report if report.passed else replace(report, command=self.keep_failure())

    def keep_failure(self, call: int | None = None) -> str:
        """
        Keep the problem in the session's folder; the command that judges it again.

        `call` is the number of the judged call that failed, by which the file is named.
        """
        # Of several processes, as those of one training, each has files of its own.
        session.failures.mkdir(parents=True, exist_ok=True)
        while True:
            path = self._unused(session.failures, ".safetensors", call)
            try:
                path.touch(exist_ok=False)
            except FileExistsError:
                continue
            return self.keep(path)

    def keep(self, path: Path) -> str:
        """Keep the problem in a file; the command that judges it again."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_dump(path.parent, path.name.removesuffix(".safetensors"), self.tensors, self.metadata)
        words = [*self.words, *self.options]
        return shlex.join(["python", "-m", "flashproof", "audit", str(path), *words])

    def _unused(self, folder: Path, suffix: str, call: int | None = None) -> Path:
        """The path of a file that is not there yet, numbered as the call that it is of where that has a number."""
        stem = (
            "".join(one if one.isalnum() or one in "-_." else "-" for one in session.test)[-120:]
            or self.kind
        )
        for number in itertools.count(1):
            again = f"-{number}" if call is None or number > 1 else ""
            of_call = "" if call is None else f"-call-{call}"
            path = folder / f"{stem}{of_call}{again}{suffix}"
            if not path.exists():
                return path
        raise AssertionError


def asserted(report: Report) -> Report:
    """The report of what passes. AssertionError with it, and the command that gives it again, for what does not."""
    __tracebackhide__ = True
    if not report.passed:
        raise AssertionError(f"{report.text.rstrip()}\n\nAgain: {report.command}")
    return report
