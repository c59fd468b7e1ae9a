import pytest

pytest_plugins = ["pytester"]

FILE = """
import numpy as np
import pytest
import flashproof.pytest

def attention(q, k, v, *, scale, causal, window, softcap):
    s = np.einsum("bhqd,bhkd->bhqk", q, k) * np.float32(scale)
    p = np.exp(s - s.max(-1, keepdims=True))
    return (p @ v) / p.sum(-1, keepdims=True) * FACTOR

PROMISES = {"formats": ["fp32"], "causal": False, "window": False, "groupedHeads": False, "emptyRows": False}
test_laws = flashproof.pytest.laws(attention, PROMISES, only=["within-bound", "determinism"], runs=2)

@pytest.mark.flashproof(runs=1)
def test_fixture(flashproof):
    q = np.ones((1, 1, 4, 8), np.float32)
    flashproof.assert_attention(q, q, q, q * FACTOR)
    assert flashproof.runs == 1
"""


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_laws_and_fixture_pass(pytester, options):
    if options:
        pytest.importorskip("xdist")
    pytester.makepyfile(FILE.replace("FACTOR", "np.float32(1)"))
    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "--flashproof-seed", "5", "--flashproof-html", "pages", *options
    )
    result.assert_outcomes(passed=3)
    assert list((pytester.path / "pages").glob("test_fixture*.html"))


def test_failures_are_shown_and_kept(pytester):
    pytester.makepyfile(FILE.replace("FACTOR", "np.float32(1.01)"))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--flashproof-seed", "5")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*FAIL: *", "*Again: python -m flashproof audit *test_fixture*"])
    kept = [path.name for path in (pytester.path / "flashproof-failures").iterdir()]
    assert any("test_fixture" in name for name in kept)
