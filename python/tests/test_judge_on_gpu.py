"""The judge on candidates that run on a GPU; skipped where there is none."""

import re
from pathlib import Path

import pytest

import flashproof

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

SOURCE = Path(__file__).with_name("candidates") / "on_gpu.py"
BUDGET = flashproof.Budget(
    problems=2, seconds=600, call_seconds=60, load_seconds=120, memory=8 << 30
)
SMALL = {
    **{"framework": "torch", "device": "cuda", "formats": ["fp16"], "square": True},
    **{"window": False, "causal": False, "groupedHeads": False, "emptyRows": False},
    "shapes": [{"queries": 512, "keys": 512, "dim": 64, "heads": 2}],
}
#: As KernelBench's scaled dot product attention, with fewer heads.
WIDE = {
    **SMALL,
    "shapes": [{"queries": 512, "keys": 512, "dim": 1024, "heads": 32, "batch": 4}],
    "largest": {"queries": 600, "keys": 600, "dim": 64},
}


def judged(name, contract, seed=7):
    candidate = flashproof.Candidate({SOURCE.name: SOURCE.read_bytes()}, f"{SOURCE.name}::{name}")
    found = flashproof.judge(candidate, contract, budget=BUDGET, seed=seed)
    print(found)
    return found


@pytest.mark.parametrize("contract", [SMALL, WIDE], ids=["small", "wide"])
@pytest.mark.parametrize("name", ["eager", "of_the_library", "in_triton"])
def test_correct_kernels_pass(name, contract):
    assert judged(name, contract).verdict == "pass"


@pytest.mark.parametrize("contract", [SMALL, WIDE], ids=["small", "wide"])
@pytest.mark.parametrize(
    ("name", "causes", "reason"),
    [
        ("zeros", {"rows-not-written"}, "zero"),
        ("drops_late_keys", {"key-tile-missing", "tail-dropped", "unexplained"}, ""),
        ("leaves_late_rows", {"non-finite"}, "NaN or infinite"),
        ("replayed", {"stale"}, "bit for bit, what was right for earlier ones"),
        ("one_head_of_all", {"unexplained", "wrong-query-head"}, ""),
        ("in_fp8", {"unexplained"}, ""),
        ("in_place", {"input-changed"}, "it writes to its inputs: q"),
    ],
)
def test_cheats_are_refused(name, causes, reason, contract):
    found = judged(name, contract)
    assert found.verdict == "fail", str(found)
    assert re.search(reason, found.reason), str(found)
    assert found.cause in causes, str(found)


def test_a_solution_of_kernelbench_is_judged_on_its_shape():
    candidate = flashproof.forms.kernelbench(SOURCE)
    shape = {"queries": 512, "keys": 512, "dim": 1024, "heads": 32, "batch": 32}
    small = {"queries": 600, "keys": 600, "dim": 64}
    contract = {"device": "cuda", "formats": ["fp16"], "shapes": [shape], "largest": small}
    found = flashproof.judge(candidate, contract, budget=BUDGET, seed=7)
    print(found)
    assert found.verdict == "pass", str(found)
