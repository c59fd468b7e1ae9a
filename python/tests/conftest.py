"""Where tests keep what fails, and which tests of PyTorch's device judge are run: none where there is no PyTorch, which is
said; else all of them, or, with ``DEVICE_TESTS=first``, the first case of each.
"""

import os
from importlib.util import find_spec

import pytest

from flashproof.request import session

HAS_TORCH = find_spec("torch") is not None

collect_ignore = [] if HAS_TORCH else ["device"]


def pytest_terminal_summary(terminalreporter):
    if not HAS_TORCH:
        terminalreporter.write_line("LEFT OUT: tests/device need torch, which is not installed")


def pytest_collection_modifyitems(config, items):
    if os.environ.get("DEVICE_TESTS") != "first":
        return
    seen, chosen, left = set(), [], []
    for item in items:
        function = (item.path, item.originalname)
        is_later = item.path.parent.name == "device" and function in seen
        (left if is_later else chosen).append(item)
        seen.add(function)
    items[:] = chosen
    config.hook.pytest_deselected(items=left)


@pytest.fixture(autouse=True)
def kept(tmp_path):
    """The folder of problems that fail, one for each test."""
    before, session.failures = session.failures, tmp_path / "failures"
    yield session.failures
    session.failures = before
