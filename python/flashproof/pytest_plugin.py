"""The pytest plugin: its options, its fixture and its marker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .arguments import AuditArguments
from .audits import assert_attention
from .checks import CheckReport, Promises, assert_kernel
from .kernel_host import Kernel
from .report import Report
from .request import session

if TYPE_CHECKING:
    from typing_extensions import Unpack


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register `--flashproof-html`, `--flashproof-seed`, `--flashproof-runs` and `--flashproof-failures`."""
    group = parser.getgroup("flashproof", "numerics of attention kernels")
    group.addoption(
        "--flashproof-html", metavar="FOLDER", help="write a page of every audit into a folder"
    )
    group.addoption(
        "--flashproof-seed",
        type=int,
        metavar="N",
        help="draw the same problems as a run with that seed",
    )
    group.addoption(
        "--flashproof-runs", type=int, metavar="N", help="problems for each property (default: 100)"
    )
    group.addoption(
        "--flashproof-failures",
        metavar="FOLDER",
        default="flashproof-failures",
        help="where problems that fail are kept (default: flashproof-failures)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Take the options, and register the marker."""
    config.addinivalue_line(
        "markers", "flashproof(runs=N, seconds=S): how long properties are tried in this test"
    )
    page = config.getoption("--flashproof-html")
    session.failures = Path(config.getoption("--flashproof-failures"))
    if page is not None:
        session.html = Path(page)
        session.html.mkdir(parents=True, exist_ok=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Files that are kept in a test are named after it."""
    session.test = item.name
    try:
        return (yield)
    finally:
        session.test = ""


@dataclass(frozen=True)
class Flashproof:
    """Audits and checks with the options of this run of pytest."""

    seed: int | None
    runs: int | None
    seconds: float | None

    def assert_attention(
        self, q: Any, k: Any, v: Any, out: Any, lse: Any = None, **given: Unpack[AuditArguments]
    ) -> Report:
        """`flashproof.assert_attention`, with the run's seed."""
        __tracebackhide__ = True
        given.setdefault("seed", self.seed)
        return assert_attention(q, k, v, out, lse, **given)

    def assert_kernel(
        self, kernel: Kernel, promises: Promises | None = None, **settings: Any
    ) -> CheckReport:
        """`flashproof.assert_kernel`, with the run's seed and number of problems, and those of the marker."""
        __tracebackhide__ = True
        own = {"seed": self.seed, "runs": self.runs, "seconds": self.seconds}
        return assert_kernel(kernel, promises, **{**own, **settings})


@pytest.fixture
def flashproof(request: pytest.FixtureRequest) -> Flashproof:
    """Audits and checks with this run's options; `@pytest.mark.flashproof(runs=…, seconds=…)` sets them for a test."""
    marker = request.node.get_closest_marker("flashproof")
    given = {} if marker is None else marker.kwargs
    runs = request.config.getoption("--flashproof-runs")
    return Flashproof(
        seed=request.config.getoption("--flashproof-seed"),
        runs=given.get("runs") if runs is None else runs,
        seconds=given.get("seconds"),
    )
