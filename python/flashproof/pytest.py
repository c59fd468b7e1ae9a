"""Properties as tests: `test_my_kernel = flashproof.pytest.laws(my_kernel, {"formats": ["bf16"]})`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from . import check as checks
from .pytest_plugin import Flashproof

#: A property that no problem was drawn for: the kernel does not promise what it is about.
UNTRIED = ("untried", "not-promised", "skipped")


def laws(
    kernel: checks.Kernel,
    promises: checks.Promises | None = None,
    *,
    only: Sequence[str] | None = None,
    runs: int = 20,
    seconds: float = 30,
    **settings: Any,
) -> Callable[..., None]:
    """
    A test of every property on a kernel, one each: assign it to a name that begins with `test`.

    `runs` and `seconds` are what each property takes at most where neither `--flashproof-runs` nor a marker says it; further arguments are those of `check`.
    A property that the kernel does not promise is skipped. A failure shows the smallest problem that was found, and how to try it again.
    """

    @pytest.mark.parametrize("law", checks.laws() if only is None else list(only))
    def test(law: str, flashproof: Flashproof) -> None:
        __tracebackhide__ = True
        report = checks.check(
            kernel,
            promises,
            laws=[law],
            seed=flashproof.seed,
            runs=runs if flashproof.runs is None else flashproof.runs,
            seconds=seconds if flashproof.seconds is None else flashproof.seconds,
            **settings,
        )
        if not report.passed:
            raise AssertionError(report.text.rstrip())
        if report.result(law) != "holds":
            pytest.skip(f"{law}: {report.result(law)}")

    return test
