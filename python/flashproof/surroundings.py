"""What changes a row's bits: `invariance` searches for the smallest change of a row's surroundings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .arguments import (
    FEATURES,
    FeatureArguments,
    check_names,
    option_words,
    read_report,
    settings_of,
)
from .arrays import Framework
from .checks import carry_out
from .dump import gather, temporary_folder, write_dump
from .kernel_host import Kernel, KernelHost
from .replays import of_this_process
from .report import Told
from .server import RequestError, Server
from .wording import arguments_of, in_python, name_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, repr=False)
class InvarianceReport(Told):
    """What a search found. True where nothing that was tried changed a bit."""

    passed: bool
    sentence: str
    #: The report as the command line prints it, whose kernel is one of this process.
    text: str
    #: The report of `--json` (its schema is invariance.schema.json of the npm package).
    json: Mapping[str, Any]

    def result(self, dimension: str) -> str:
        """What came of a dimension: `invariant` over what was tried, `differs`, `fails` or `untried`."""
        return str(self._of(dimension)["result"])

    def change(self, dimension: str) -> tuple[int | None, int] | None:
        """The smallest change of a dimension that was found, (from, to); None where none was."""
        change = self._of(dimension)["change"]
        return None if change is None else (change["from"], change["to"])

    def _of(self, dimension: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = next(
            one for one in self.json["dimensions"] if one["name"] == dimension
        )
        return found


def invariance(
    kernel: Kernel,
    q: Any,
    k: Any,
    v: Any,
    *,
    framework: Framework = "numpy",
    dimensions: Sequence[str] | None = None,
    up_to: Mapping[str, int] | None = None,
    every: bool = False,
    sequence: int | None = None,
    takes: Sequence[str] = (),
    splits: Sequence[int] | None = None,
    runs: int | None = None,
    timeout: float | None = None,
    options: Sequence[str] | None = None,
    server: Server | None = None,
    **given: Unpack[FeatureArguments],
) -> InvarianceReport:
    """
    Search for the smallest change of a problem's surroundings that changes the bits of its rows.

    The kernel is called in this process as in `check`, and the problem is given as in `audit`. `dimensions` are those to
    change, all by default (docs/reference/properties.md); `up_to` has their largest values, and with `every` no value is
    left out. `sequence` is the one whose rows are compared. `takes` names features that the kernel takes besides those that
    the problem has, as "packed", which neighbours of other lengths need. With `splits` the kernel is called with
    `splits=`, each of these numbers. RequestError where the kernel has no output of the problem itself.
    """
    check_names("invariance", given, FeatureArguments)
    further = option_words(options, has_kernel=True)
    words: list[str] = ["--every"] if every else []
    for option, value in {"--sequence": sequence, "--runs": runs, "--timeout": timeout}.items():
        if value is not None:
            words += [option, str(value)]
    if dimensions is not None:
        words += ["--dimension", ",".join(dimensions)]
    for name, most in (up_to or {}).items():
        words += ["--up-to", f"{name}={most}"]
    if takes:
        words += ["--features", ",".join(takes)]
    if splits is not None:
        words += ["--splits", ",".join(map(str, splits))]
    beside = {name: given.get(name) for name in FEATURES}
    tensors = gather({"q": q, "k": k, "v": v, **beside, **(given.get("features") or {})})
    with temporary_folder() as folder:
        path = write_dump(folder, "problem", tensors, settings_of(given).metadata())
        document = os.path.join(folder, "invariance.json")
        words += ["--json", document, *further]
        host = KernelHost(kernel, None, framework, stops_at_misfit=True)
        try:
            answer = carry_out(host, folder, None, words, server, ("invariance", path))
        except RequestError as error:
            said = str(error).replace(f"{path}: ", "")
            raise RequestError(
                in_python(said, arguments_of(invariance, further, FeatureArguments))
            ) from None
        report = read_report(document, "invariance", further)
    verdict = report["verdict"]
    text = of_this_process(answer.stdout, name_of(kernel))
    report["kernel"]["command"] = name_of(kernel)
    return InvarianceReport(bool(verdict["pass"]), verdict["sentence"], text, report)
