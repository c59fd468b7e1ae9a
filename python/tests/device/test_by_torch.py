"""`assert_attention` of PyTorch's tensors on the CPU: PyTorch gives the passes, the command line all else, and both agree.

``DEVICE_OUTPUTS=all`` tries every output of every capture with every damage.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
from problems import CAPTURES, drawn, kernels_of, read_capture, textbook, textbook_gradients
from test_verdicts import DAMAGED, OUTPUTS, damages

import flashproof
from flashproof import audits
from flashproof.arrays import from_array, to_array
from flashproof.device import AttentionProblem, KernelOutputs
from flashproof.device.measure import measure

IS_LONG = os.environ.get("DEVICE_OUTPUTS") == "all"


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(audits.session, "failures", tmp_path / "failures")


def no_server():
    raise AssertionError("the command line was asked")


def arguments(problem: AttentionProblem) -> dict[str, Any]:
    return {
        "scale": problem.scale,
        "causal": problem.causal,
        "window": problem.window,
        "softcap": problem.softcap,
    }


def judged(problem: AttentionProblem, outputs: KernelOutputs, **given: Any) -> flashproof.Report:
    """The report of an assertion, which raises nothing."""
    tensors = {"q": problem.q, "k": problem.k, "v": problem.v}
    made = {**tensors, "out": outputs.out, "lse": outputs.lse}
    return audits.judge_and_keep(made, {**arguments(problem), **given})


def audited(problem: AttentionProblem, outputs: KernelOutputs, **given: Any) -> flashproof.Report:
    named = {**arguments(problem), **given}
    return flashproof.audit(problem.q, problem.k, problem.v, outputs.out, outputs.lse, **named)


@pytest.mark.parametrize(
    "settings",
    [{}, {"causal": True}, {"window": (70, 20)}, {"softcap": 3.0, "false_alarm_rate": 1e-6}],
)
def test_what_passes_is_judged_without_the_command_line(settings, monkeypatch):
    monkeypatch.setattr(audits, "shared_server", no_server)
    rate = {name: settings.pop(name) for name in ("false_alarm_rate",) if name in settings}
    problem = drawn((2, 4, 2, 70, 90, 32), torch.bfloat16, 7, **settings)
    outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
    report = judged(problem, outputs, strict_premises=True, **rate)
    assert (report.passed, report.decided_by, report.status) == (True, "device", "PASS")
    assert report.sentence.startswith("PASS: the output and the LSE stay within")
    assert report.text.endswith("\n\nJudged on cpu, by PyTorch.\n")
    assert (
        flashproof.assert_attention(
            *(x.transpose(1, 2) for x in (problem.q, problem.k, problem.v, outputs.out)),
            outputs.lse,
            layout="bshd",
            **arguments(problem),
            **rate,
        ).decided_by
        == "device"
    )


def test_gradients_that_pass_are_judged_without_it(monkeypatch):
    monkeypatch.setattr(audits, "shared_server", no_server)
    problem = drawn((1, 2, 1, 60, 60, 32), torch.bfloat16, 9, causal=True)
    outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
    generator = torch.Generator().manual_seed(1)
    dout = torch.randn(outputs.out.shape, generator=generator).bfloat16()
    given = vars(textbook_gradients(problem, outputs, dout))
    report = judged(problem, outputs, **given)
    assert report.decided_by == "device"
    assert "dQ, dK and dV stay within" in report.sentence


def test_threads_are_as_they_were(monkeypatch):
    monkeypatch.setattr(audits, "shared_server", no_server)
    problem = drawn((1, 1, 1, 40, 40, 16), torch.float32, 3)
    outputs = textbook(problem, torch.float32, torch.float32)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert judged(problem, outputs).passed
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("damage", "cause"), [("a tile of other rows", None), ("scaled by 1 %", "scale")]
)
def test_a_failure_is_the_command_lines_with_its_cause(damage, cause, tmp_path):
    problem = drawn((1, 2, 2, 90, 120, 32), torch.bfloat16, 5)
    outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
    wrong = damages(outputs.out, outputs.lse)[damage]
    report, exact = judged(problem, wrong), audited(problem, wrong)
    assert (report.passed, report.decided_by) == (False, "command line")
    assert (report.sentence, report.cause, report.findings) == (
        exact.sentence,
        exact.cause,
        exact.findings,
    )
    assert cause is None or cause in report.cause
    assert report.json["verdict"] == exact.json["verdict"]
    assert str(tmp_path / "failures") in report.command


def others(problem: AttentionProblem, outputs: KernelOutputs) -> dict[str, dict[str, Any]]:
    """Arguments that PyTorch's judge does not take, or not as they are here, by a name."""
    queries, keys = problem.q.shape[2], problem.k.shape[2]
    every = torch.arange(keys, dtype=torch.int32).expand(1, queries, 1, keys)
    return {
        "a mask of numbers": {"mask": torch.ones(queries, keys)},
        "a mask of another size": {"mask": torch.ones(queries, keys + 1, dtype=torch.bool)},
        "a mask that hides all": {"mask": torch.zeros(queries, keys, dtype=torch.bool)},
        "lists of keys": {"features": {"kv_index": every}},
        "a sink that is none": {"sink": torch.full((problem.q.shape[1],), torch.nan)},
        "a factor of 0": {"features": {"q_descale": torch.zeros(problem.q.shape[1])}},
        "segments of queries": {
            "features": {"q_segments": torch.zeros(queries, dtype=torch.int32)}
        },
        "premises": {"premises": "eager"},
        "premises that are none": {"premises": None},
        "premises of gradients": {"gradient_premises": "fused"},
        "rows": {"rows": "all"},
        "a seed": {"seed": 3},
        "threads": {"threads": 1},
        "options": {"options": ["--full"]},
        "another order of bytes": {"out": outputs.out.float().numpy().astype(">f4")},
        "a subclass": {"v": problem.v.as_subclass(type("Wrapped", (torch.Tensor,), {}))},
        "another format": {"v": problem.v.half(), "k": problem.k, "q": problem.q},
        "a flat LSE": {"lse": outputs.lse.reshape(-1, *outputs.lse.shape[-1:])},
        "no batch": {
            **{name: getattr(problem, name)[0] for name in "qkv"},
            "out": outputs.out[0],
            "lse": None,
        },
        "one gradient": {
            "dout": outputs.out,
            "dv": textbook_gradients(problem, outputs, outputs.out).dv,
        },
    }


NAMES = list(
    others(
        drawn((1, 1, 1, 2, 2, 2), torch.bfloat16, 1),
        KernelOutputs(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2)),
    )
)


@pytest.mark.parametrize("name", NAMES)
def test_what_it_does_not_take_is_the_command_lines(name):
    problem = drawn((1, 2, 2, 40, 40, 32), torch.bfloat16, 5)
    outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
    given = {**arguments(problem), **others(problem, outputs)[name]}
    made = {"q": problem.q, "k": problem.k, "v": problem.v, "out": outputs.out, "lse": outputs.lse}
    made |= {one: given.pop(one) for one in list(made) if one in given}
    try:
        expected: Any = flashproof.audit(*made.values(), **given).sentence
    except flashproof.RequestError as error:
        expected = error
    if isinstance(expected, flashproof.RequestError):
        with pytest.raises(flashproof.RequestError) as told:
            audits.judge_and_keep(made, given)
        assert str(told.value) == str(expected)
        return
    report = audits.judge_and_keep(made, given)
    assert (report.sentence, report.decided_by) == (expected, "command line")


def test_a_page_of_every_audit_is_the_command_lines(monkeypatch, tmp_path):
    monkeypatch.setattr(audits.session, "html", tmp_path)
    problem = drawn((1, 1, 1, 40, 40, 16), torch.float32, 3)
    outputs = textbook(problem, torch.float32, torch.float32)
    assert judged(problem, outputs).decided_by == "command line"
    assert [path.suffix for path in tmp_path.iterdir()] == [".html"]


def test_a_shorter_output_is_refused_where_premises_are_strict():
    problem = drawn((1, 1, 1, 40, 40, 16), torch.float32, 3)
    outputs = textbook(problem, torch.bfloat16, torch.float32)
    with pytest.raises(flashproof.RequestError, match="shorter than fp32"):
        judged(problem, outputs, strict_premises=True)


def test_subnormal_numbers_that_are_flushed_are_the_command_lines():
    problem = drawn((1, 1, 1, 40, 40, 16), torch.float32, 3)
    outputs = textbook(problem, torch.float32, torch.float32)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor flushes nothing")
    try:
        assert judged(problem, outputs).decided_by == "command line"
    finally:
        torch.set_flush_denormal(False)


def as_numpy(x: torch.Tensor) -> np.ndarray:
    """The same elements as an array that is not to be written, of ml_dtypes where NumPy has no such format."""
    array = from_array(to_array(x), "numpy")
    array.flags.writeable = False
    return array


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_arrays_of_numpy_have_the_report_of_tensors(dtype, is_mixed, monkeypatch):
    monkeypatch.setattr(audits, "shared_server", no_server)
    problem = drawn((1, 2, 1, 40, 60, 16), dtype, 3, causal=True)
    outputs = textbook(problem, dtype, torch.float32)
    expected = judged(problem, outputs)
    made = {"q": problem.q, "k": problem.k, "v": problem.v, "out": outputs.out, "lse": outputs.lse}
    arrays = {name: as_numpy(x) for name, x in made.items() if not is_mixed or name != "q"}
    assert audits.judge_and_keep({**made, **arrays}, arguments(problem)) == expected
    # Strides of any kind are no other numbers.
    turned = {
        name: np.flip(np.flip(as_numpy(x), 1).copy(), 1) if name != "lse" else as_numpy(x)
        for name, x in made.items()
    }
    assert audits.judge_and_keep(turned, arguments(problem)) == expected


def test_wrong_arrays_of_numpy_have_the_verdict_of_the_command_line():
    problem = drawn((1, 1, 1, 60, 40, 16), torch.float32, 3)
    outputs = textbook(problem, torch.float32, torch.float32)
    q, k, v, out = map(as_numpy, (problem.q, problem.k, problem.v, outputs.out * 1.01))
    with pytest.raises(AssertionError, match="FAIL"):
        flashproof.assert_attention(q, k, v, out)


def test_threads_that_share_the_blocks_find_what_one_finds(monkeypatch):
    monkeypatch.setattr("flashproof.device.measure._CPU_BLOCK_NUMBERS", 2**15)
    problem = drawn((1, 4, 2, 300, 700, 32), torch.bfloat16, 7, causal=True)
    outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(measure(problem, outputs, 1e-9))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    one, several = found
    assert one.elements.elements == outputs.out.numel()
    assert several == one


@pytest.mark.parametrize(("capture", "kernel"), OUTPUTS if IS_LONG else OUTPUTS[::4])
def test_captures_have_the_verdict_of_the_command_line(capture, kernel):
    problem, outputs = read_capture(capture, kernel)
    assert judged(problem, outputs).passed == audited(problem, outputs).passed


@pytest.mark.parametrize("capture", CAPTURES if IS_LONG else DAMAGED[::3])
def test_damages_have_the_verdict_of_the_command_line(capture):
    problem, outputs = read_capture(capture, kernels_of(capture)[-1])
    wrong = damages(outputs.out, outputs.lse)
    for name in wrong if IS_LONG else list(wrong)[::3]:
        report, exact = judged(problem, wrong[name]), audited(problem, wrong[name])
        assert (report.passed, report.cause) == (exact.passed, exact.cause), name
