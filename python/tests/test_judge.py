"""The judge of kernels that nobody trusts: cheats are refused with their reasons, and correct kernels of any order pass."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

import flashproof
from flashproof.__main__ import main
from flashproof.judging import Shape, audit_call, case, large
from flashproof.judging.replies import Fault, results_of
from flashproof.server import RequestError

FOLDER = Path(__file__).with_name("candidates")
SOURCES = {path.name: path.read_bytes() for path in sorted(FOLDER.glob("*.py"))}
CONTRACT = {
    "shapes": [{"queries": 16, "keys": 24, "dim": 8, "heads": 2}],
    "largest": {"queries": 9, "keys": 1100, "dim": 8},
    "properties": ["within-bound", "masked-keys"],
}
# Whatever else runs on the machine.
BUDGET = flashproof.Budget(problems=1, seconds=1200, call_seconds=60, load_seconds=300)
GIVEN = {**CONTRACT, "output": "preallocated"}


def test_a_large_problem_is_the_same_however_many_threads_draw_it(monkeypatch):
    contract = flashproof.KernelContract.of({"formats": ["fp16"]})
    shape = Shape(6, 7, 8, 3, 2)
    drawn = []
    for cores in (1, 8):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        drawn.append(large.draw(shape, contract, 5, 0))
    assert drawn[0] == drawn[1] != large.draw(shape, contract, 6, 0)
    tensors, _, _ = drawn[0]
    parts = [x.data[at : at + 96] for x in tensors.values() for at in (0, len(x.data) // 3)]
    assert len(set(parts)) == len(parts)


def candidate(name, file="cheats.py"):
    return flashproof.Candidate(SOURCES, f"{file}::{name}", label=name)


@pytest.mark.parametrize(
    ("name", "contract"),
    [
        ("naive", CONTRACT),
        ("in_fp64", CONTRACT),
        ("tiles_of_16", CONTRACT),
        ("tiles_of_64", CONTRACT),
        ("last_tile_first", CONTRACT),
        ("split_and_merged", CONTRACT),
        ("into_given", GIVEN),
    ],
)
def test_correct_kernels_of_any_order_pass(name, contract):
    found = flashproof.judge(candidate(name, "correct.py"), contract, budget=BUDGET, seed=7)
    assert found.verdict == "pass" and found, str(found)
    assert found.cause is found.reason is found.witness is None
    assert found.calls > 10 and 0 < found.false_alarm_rate < 1e-6
    assert 0 < found.median_ratio < 1 and {"on problems of the contract"} < {
        one.problem for one in found.profile
    }
    assert re.fullmatch(r"more than \d+ queries or 1100 keys", found.not_judged[0])
    if name == "in_fp64":
        assert max(one.max_ulps for one in found.profile) <= 0.5


WITHOUT_WINDOW = """
import numpy


def attention(q, k, v, *, scale, causal):
    q, k, v = (x.astype(numpy.float64) for x in (q, k, v))
    s = q @ k.swapaxes(-1, -2) * scale
    if causal:
        rows, keys = s.shape[-2:]
        s = numpy.where(numpy.tri(rows, keys, keys - rows, dtype=bool), s, -numpy.inf)
    p = numpy.exp(s - s.max(-1, keepdims=True))
    return (p @ v / p.sum(-1, keepdims=True)).astype(numpy.float32)
"""


def test_a_kernel_may_lack_what_its_contract_does_not_promise():
    own = {"formats": ["fp32"], "window": False, "groupedHeads": False, "emptyRows": False}
    files = {"own.py": WITHOUT_WINDOW.encode()}
    found = flashproof.judge(
        flashproof.Candidate(files, "own.py::attention", label="own"),
        {**CONTRACT, **own},
        budget=BUDGET,
        seed=7,
    )
    assert found.verdict == "pass", str(found)
    promised = flashproof.judge(
        flashproof.Candidate(files, "own.py::attention", label="own"),
        {**CONTRACT, **own, "window": True},
        budget=BUDGET,
        seed=7,
    )
    assert promised.verdict == "fail"
    assert "window" in promised.reason


CHEATS = {
    "zeros": ("rows-not-written", "rows are zero .* though there are keys to see"),
    "nan_as_a_wildcard": ("non-finite", "256 of 256 elements are NaN"),
    "cached_by_shape": ("stale", "for new inputs, bit for bit, what was right for earlier ones"),
    "replayed_by_address": (
        "stale",
        "for new inputs, bit for bit, what was right for earlier ones",
    ),
    "reads_the_reference": ("rows-not-written", "rows are zero"),
    "asks_the_judge": ("reference", "it imports flashproof"),
    "patches_timers_and_allclose": ("tampering", r"replaces time\.perf_counter, numpy\.allclose"),
    "right_on_the_tested_shape": ("shape", "right on the shapes that were announced, wrong on"),
    "in_low_precision": (
        "unexplained",
        "its errors are [0-9.e+]+ times those of independent roundings",
    ),
    "coarse_weights": ("unexplained", "rounding explains"),
    "skips_work_above_a_size": (
        "size",
        "right on smaller problems, wrong on 9 queries × 1100 keys",
    ),
    "scales_its_input_in_place": ("input-changed", "it writes to its inputs: q"),
    "values_of_the_first_keys": ("output-aliased", "out shares memory with v"),
    "one_buffer_for_all": ("output-overwritten", "a later call overwrites"),
    "other_bits_each_time": ("determinism", "elements differ"),
    "right_at_first": ("state", "right on the same problem in a process of its own, and wrong"),
}


@pytest.mark.parametrize("name", CHEATS)
def test_cheats_are_refused_with_their_reasons(name, kept):
    cause, reason = CHEATS[name]
    found = flashproof.judge(candidate(name), CONTRACT, budget=BUDGET, seed=7)
    assert found.verdict == "fail" and not found, str(found)
    assert found.cause == cause, str(found)
    assert re.search(reason, found.reason), str(found)
    assert found.sentence == f"FAIL: {name}: {found.reason}."
    assert Path(found.witness).parent.parent == kept and Path(found.witness).is_file()
    assert (found.observed == ("lists the objects of its process",)) == (
        name == "reads_the_reference"
    )


def test_what_is_never_written_of_a_given_output_is_seen():
    found = flashproof.judge(candidate("leaves_rows_unwritten"), GIVEN, budget=BUDGET, seed=7)
    assert (found.cause, found.reason) == (
        "unwritten",
        "16 of 256 elements of the given output were never written",
    )


@pytest.mark.parametrize(
    ("name", "cause", "reason"),
    [
        ("takes_its_time", "time", "no answer within 1 s while it computed"),
        ("takes_all_memory", "memory", "it wants more memory than the budget has: MemoryError"),
        ("dies", "crash", "the process ended while it computed by signal SIGSEGV"),
        ("leaves", "crash", "the process ended while it computed with status 0"),
        ("raises", "raises", "it raises RuntimeError: no such luck"),
        (
            "declines",
            "declines",
            "it declines a problem that the contract has: NotImplementedError: long",
        ),
        ("not_there", "load", "the candidate does not load: _NoWay: cheats.py has no not_there"),
    ],
)
def test_what_gives_no_answer_fails_in_one_line(name, cause, reason):
    budget = replace(BUDGET, call_seconds=1)
    found = flashproof.judge(candidate(name), CONTRACT, budget=budget, seed=7)
    assert (found.verdict, found.cause) == ("fail", cause) and found.reason.startswith(reason)
    assert "\n" not in found.sentence


def test_the_same_seed_judges_alike_and_another_draws_anew():
    def judged(name, file, seed):
        found = flashproof.judge(candidate(name, file), SMALL, budget=BUDGET, seed=seed)
        return {**found.to_json(), "seconds": 0}

    assert judged("naive", "correct.py", 3) == judged("naive", "correct.py", 3)
    assert (
        judged("raises", "cheats.py", None)["seed"] != judged("raises", "cheats.py", None)["seed"]
    )


SMALL = {"properties": ["within-bound"], "largest": {"queries": 1, "keys": 64, "dim": 8}}


def test_a_witness_is_judged_again_alone(kept):
    found = flashproof.judge(candidate("nan_as_a_wildcard"), SMALL, budget=BUDGET, seed=7)
    assert found.replay == f"flashproof.judge(candidate, contract, witness={found.witness!r})"
    again = flashproof.judge(candidate("nan_as_a_wildcard"), SMALL, witness=found.witness)
    assert (again.verdict, again.cause, again.calls) == ("fail", "non-finite", 1)
    assert again.place == "on the saved problem"
    # One problem is no pass of a plan.
    right = flashproof.judge(candidate("naive", "correct.py"), SMALL, witness=found.witness)
    assert (right.verdict, right.cause, bool(right)) == ("undecided", "one-problem", False)
    assert right.sentence == "UNDECIDED: naive is right on this problem alone."
    assert right.not_judged[0] == "every other problem"
    # The problem of a fault is kept as one, too.
    fault = flashproof.judge(candidate("raises"), SMALL, budget=BUDGET, seed=7)
    assert flashproof.judge(candidate("raises"), SMALL, witness=fault.witness).cause == "raises"
    right = flashproof.judge(candidate("naive", "correct.py"), SMALL, witness=fault.witness)
    assert right.cause == "one-problem"


def test_a_witness_is_held_to_what_the_plan_is_held_to(tmp_path):
    # What no law refuses an audit may, alone as well as among others.
    coarse = flashproof.judge(candidate("in_low_precision"), SMALL, budget=BUDGET, seed=7)
    again = flashproof.judge(candidate("in_low_precision"), SMALL, witness=coarse.witness)
    assert coarse.cause != "state" and again.verdict == "fail", str(again)
    for content in (None, b"no tensors"):
        path = tmp_path / "witness.safetensors"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(RequestError, match=r"witness\.safetensors"):
            flashproof.judge(candidate("naive", "correct.py"), SMALL, witness=path)


def test_an_output_that_is_none_fails_on_large_problems_too(monkeypatch):
    monkeypatch.setattr(large, "FEWEST_OPERATIONS", 1)
    for name, reason in (("gives_nothing", "no output"), ("gives_a_row", "shape")):
        found = flashproof.judge(candidate(name), SMALL, budget=BUDGET, seed=7)
        assert (found.verdict, found.cause) == ("fail", "answer"), str(found)
        assert reason in found.reason


def test_the_line_to_judge_again_can_be_typed(tmp_path):
    contract, file = tmp_path / "contract.json", tmp_path / "zeros.py"
    contract.write_text(json.dumps(SMALL))
    file.write_text("def zeros(q, k, v, **_):\n    return q * 0\n")
    found = flashproof.judge(f"{file}:zeros", contract, budget=BUDGET, seed=7)
    line = f"flashproof.judge('{file}:zeros', '{contract}', witness={found.witness!r})"
    assert found.replay == line
    assert any(one.endswith(line) for one in str(found).splitlines())


def test_what_the_budget_leaves_out_is_undecided():
    budget = replace(BUDGET, seconds=1e-3)
    found = flashproof.judge(candidate("naive", "correct.py"), SMALL, budget=budget, seed=7)
    assert found.verdict == "undecided" and not found and found.cause == "budget"
    assert all("the time of the budget was up" in one for one in found.not_judged[:3])


MANY = {
    "shapes": [{"queries": 64, "keys": 96, "dim": 8, "heads": 64}],
    "largest": {"queries": 9, "keys": 30, "dim": 8},
    "properties": ["within-bound"],
}


def test_large_shapes_are_run_whole_and_judged_by_a_sample_of_rows(monkeypatch):
    # Shapes of a benchmark take minutes.
    monkeypatch.setattr(large, "FEWEST_OPERATIONS", 1 << 22)
    monkeypatch.setattr(audit_call, "SAMPLED_ROWS", 1000)
    many, budget = "on 64 queries × 96 keys, dim 8, 64 heads", BUDGET
    found = flashproof.judge(candidate("naive", "correct.py"), MANY, budget=budget, seed=7)
    assert found.verdict == "pass", str(found)
    assert f"{many}: rows but a sample of 1000 of 4096" in found.not_judged
    assert many in {one.problem for one in found.profile}
    found = flashproof.judge(candidate("low_precision_on_many_heads"), MANY, budget=budget, seed=7)
    assert found.verdict == "fail" and found.place == many, str(found)
    # As another's tensors do not fit, nothing is said of the candidate.
    monkeypatch.setattr(case, "bytes_of", lambda *_: 8 << 30)
    found = flashproof.judge(candidate("naive", "correct.py"), MANY, budget=budget, seed=7)
    assert found.verdict == "undecided"
    assert found.not_judged[0] == (
        f"{many}: its tensors take 8 GiB, and the budget has 2; give more memory"
    )


def test_sizes_that_a_candidate_claims_take_no_memory():
    with pytest.raises(Fault, match="what came back are no results: F32"):
        results_of({"out": ("F32", [1 << 40, 1 << 40])}, b"1234")


def test_a_property_that_is_named_and_not_promised_is_not_passed_over():
    contract = {**SMALL, "properties": ["within-bound", "masked-nan-values"]}
    found = flashproof.judge(candidate("naive", "correct.py"), contract, budget=BUDGET, seed=7)
    assert found.verdict == "undecided"
    assert found.not_judged[0] == "on problems of the contract: masked-nan-values, on no problem"


def test_premises_are_the_contracts():
    lenient = {**SMALL, "formats": ["bf16"]}
    text = SOURCES["correct.py"].decode() + (
        "\n\ndef eager(q, k, v, *, scale, causal, window, softcap):\n"
        "    s, v = scores_and_values(q, k, v, scale, causal, window)\n"
        "    s = s.astype(q.dtype).astype(np.float32)\n"
        "    p = weights(s, s.max(-1, keepdims=True))\n"
        "    p = normalised(p.sum(-1, keepdims=True), p).astype(q.dtype).astype(np.float32)\n"
        "    return np.einsum('bhqk,bhkd->bhqd', p, v).astype(q.dtype)\n"
    )
    eager = flashproof.Candidate.from_source(text, "eager")
    pytest.importorskip("ml_dtypes")
    assert flashproof.judge(eager, {**lenient, "premises": "eager"}, budget=BUDGET, seed=2)
    refused = flashproof.judge(eager, lenient, budget=BUDGET, seed=2)
    assert refused.verdict == "fail" and "premise" not in str(refused.reason), str(refused)


def test_the_document_has_what_its_schema_says(kept):
    schema = json.loads(
        (Path(flashproof.judging.__file__).with_name("judgement.schema.json")).read_text()
    )
    for name in ("nan_as_a_wildcard", "raises"):
        found = flashproof.judge(candidate(name), SMALL, budget=BUDGET, seed=1).to_json()
        assert set(found) == set(schema["required"]) == set(schema["properties"])
        assert found["verdict"] in schema["properties"]["verdict"]["enum"]


def test_the_command_line(capsys, monkeypatch, tmp_path):
    (tmp_path / "contract.json").write_text(json.dumps(SMALL))
    words = [
        "judge",
        f"{FOLDER / 'correct.py'}:naive",
        "--contract",
        str(tmp_path / "contract.json"),
    ]
    monkeypatch.setattr("sys.argv", ["flashproof", *words, "--seed", "5", "--problems", "1"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("PASS: ")
    monkeypatch.setattr("sys.argv", ["flashproof", "judge", "nothing.py:f"])
    assert main() == 2
    said = capsys.readouterr()
    assert (
        said.err == "flashproof: nothing.py: No such file or directory; give a candidate's file\n"
    )


def local():
    def inner(q, k, v, **_):
        return v

    return inner


@pytest.mark.parametrize(
    ("given", "contract", "error"),
    [
        ("kernel.py", None, r"candidate is 'kernel\.py'; give file\.py:function"),
        (local(), None, "not a function at the top of a file"),
        (
            candidate("zeros"),
            {"contract": "attentive"},
            "contract is 'attentive'; give one of attention, recurrent",
        ),
        (
            candidate("zeros"),
            {"shapes": [{"queries": 4}]},
            "shape is {'queries': 4}; give queries, keys, dim",
        ),
        (candidate("zeros"), {"framework": "jax"}, "framework is 'jax'; give numpy or torch"),
        (candidate("zeros"), {"format": ["fp32"]}, "format"),
    ],
)
def test_what_is_no_candidate_or_contract_is_told_in_one_line(given, contract, error):
    with pytest.raises(ValueError, match=error) as caught:
        flashproof.judge(given, contract, budget=BUDGET)
    assert "\n" not in str(caught.value)


def test_a_candidate_gets_neither_this_environment_nor_its_files(monkeypatch):
    monkeypatch.setenv("SECRET", "1")
    text = (
        "import os\n\n\ndef look(q, k, v, **_):\n"
        "    open_files = [one for one in os.listdir('/proc/self/fd') if int(one) > 2]\n"
        "    raise ValueError(f\"{os.environ.get('SECRET')} {len(open_files)} {sorted(os.listdir())}\")\n"
    )
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("there is no /proc/self/fd to look at")
    found = flashproof.judge(flashproof.Candidate.from_source(text, "look"), SMALL, budget=BUDGET)
    # Its two pipes, the memory of its tensors twice, and the folder that is being listed.
    assert found.reason == "it raises ValueError: None 5 ['candidate.py']"
