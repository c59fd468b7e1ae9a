"""Leaves out the tests of PyTorch's device judge where there is no PyTorch, and says so."""

from importlib.util import find_spec

HAS_TORCH = find_spec("torch") is not None

collect_ignore = [] if HAS_TORCH else ["device"]


def pytest_terminal_summary(terminalreporter):
    if not HAS_TORCH:
        terminalreporter.write_line("LEFT OUT: tests/device need torch, which is not installed")
