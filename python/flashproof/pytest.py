"""Properties as tests: `test_my_kernel = flashproof.pytest.laws(my_kernel, {"formats": ["bf16"]})`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from . import checks
from .kernel_host import Contract, Kernel
from .pytest_plugin import Flashproof
from .server import RequestError

#: What is said of a property that was tried on no problem: the kernel does not promise what it is about, or declines.
UNTRIED = "nothing was checked"
#: What it says of the one law that a test tries.
_WHY = re.compile(r"no law was tried on any problem \([\w-]+: (.*)\); give promises")


def _reason(said: str) -> str:
    """Why a law is skipped: `gradients are not promised`."""
    found = _WHY.search(said)
    return said if found is None else found[1]


def laws(
    kernel: Kernel,
    promises: checks.Promises | None = None,
    *,
    only: Sequence[str] | None = None,
    runs: int = 20,
    seconds: float = 30,
    contract: Contract = "attention",
    **settings: Any,
) -> Callable[..., None]:
    """
    A test of every property on a kernel, one each: assign it to a name that begins with `test`.

    `runs` and `seconds` are what each property takes at most where neither `--flashproof-runs` nor a marker says it; further
    arguments are those of `check`. A property that the kernel does not promise is skipped. A failure shows the smallest problem
    that was found, and how to try it again.
    """

    @pytest.mark.parametrize("law", checks.laws(contract) if only is None else list(only))
    def test(law: str, flashproof: Flashproof) -> None:
        __tracebackhide__ = True
        try:
            report = checks.check(
                kernel,
                promises,
                laws=[law],
                seed=flashproof.seed,
                runs=runs if flashproof.runs is None else flashproof.runs,
                seconds=seconds if flashproof.seconds is None else flashproof.seconds,
                contract=contract,
                **settings,
            )
        except RequestError as error:
            if not str(error).startswith(UNTRIED):
                raise
            pytest.skip(_reason(str(error)))
        if not report.passed:
            raise AssertionError(report.text.rstrip())

    return test
