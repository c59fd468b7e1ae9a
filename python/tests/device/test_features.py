"""Masks, biases, ALiBi, sinks, factors and packed sequences on the device, against the library, element by
element.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from problems import CAPTURES, ROOT, drawn, kernels_of, textbook
from safetensors import safe_open
from test_bounds import compare

import flashproof
from flashproof import audits
from flashproof.arguments import FEATURES as FEATURES_GIVEN
from flashproof.device import judge
from flashproof.device.command_line import some_heads
from flashproof.device.features import Features
from flashproof.device.measure import measure
from flashproof.device.problem import AttentionProblem, shape_of

IS_LONG = os.environ.get("DEVICE_OUTPUTS") == "all"
SHAPE = (2, 4, 2, 150, 200, 32)
GENERATOR = torch.Generator().manual_seed(11)


def _random_mask(*sizes: int) -> torch.Tensor:
    return torch.rand(*sizes, generator=GENERATOR) < 0.6


def _normal(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=GENERATOR)


def _padding() -> torch.Tensor:
    """[B, 1, 1, keys]: the first keys of one entry are padding, and the last ones of the other."""
    mask = torch.ones(2, 1, 1, 200, dtype=torch.bool)
    mask[0, ..., :37] = False
    mask[1, ..., 170:] = False
    return mask


def _documents(length: int) -> torch.Tensor:
    return (torch.arange(length) // 60).expand(2, -1).to(torch.int32)


FEATURES: dict[str, tuple[Features, dict[str, Any]]] = {
    "padding": (Features(mask=_padding()), {"causal": True}),
    "random mask": (Features(mask=_random_mask(150, 200)), {}),
    "mask of heads": (Features(mask=_random_mask(1, 4, 150, 200)), {"window": (90, 20)}),
    "mask of batches": (Features(mask=_random_mask(2, 1, 150, 200)), {"causal": True}),
    "bias": (Features(bias=_normal(1, 4, 150, 200)), {}),
    "bias of keys": (Features(bias=4 * _normal(2, 1, 1, 200)), {"causal": True, "softcap": 5.0}),
    "additive mask": (
        Features(bias=torch.where(_padding(), 0.0, torch.finfo(torch.float32).min)),
        {},
    ),
    "bias that hides": (Features(bias=torch.where(_random_mask(150, 200), 0.5, -torch.inf)), {}),
    "alibi": (Features(alibi_slopes=2.0 ** -torch.arange(1, 5).float()), {"causal": True}),
    "alibi of batches": (Features(alibi_slopes=_normal(2, 4).abs()), {}),
    "alibi and bias": (
        Features(alibi_slopes=2.0 ** -torch.arange(1, 5).float(), bias=_normal(1, 1, 150, 200)),
        {"window": (100, 0)},
    ),
    "sink": (Features(sink=torch.tensor([0.5, -3.0, 6.0, -torch.inf])), {"causal": True}),
    "sink above all": (Features(sink=torch.tensor([30.0, 12.0, 9.0, 60.0])), {}),
    "sink beside the LSE": (
        Features(sink=torch.tensor([0.5, -3.0, 6.0, 14.0]), is_sink_in_lse=False),
        {"window": (40, 0)},
    ),
    "sink and alibi": (
        Features(sink=torch.tensor([0.5, -3.0, 6.0, 2.0]), alibi_slopes=_normal(4).abs()),
        {"causal": True},
    ),
    "documents": (Features(segments=(_documents(150), _documents(200))), {}),
    "prefix": (Features(prefix=30), {"causal": True}),
    "prefix beside a window": (Features(prefix=30), {"window": (20, 5)}),
}


def _usual(features: Features) -> bool:
    """Whether bounds are those of the library, and not smaller: by a sink's sums are made in fp32 there, and a factor
    is rounded with its element.
    """
    return features.sink is None and all(x is None for x in features.factors)


def _with(problem: AttentionProblem, features: Features) -> AttentionProblem:
    return replace(problem, features=features)


@pytest.mark.parametrize("name", FEATURES)
def test_features_have_the_bounds_of_the_library(name: str, tmp_path: Path) -> None:
    features, settings = FEATURES[name]
    problem = _with(drawn(SHAPE, torch.bfloat16, 5, **settings), features)
    outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
    compare(problem, outputs, tmp_path, usual=_usual(features))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.bfloat16])
def test_factors_have_the_bounds_of_the_library(dtype: torch.dtype, tmp_path: Path) -> None:
    by = tuple(0.02 * (1 + _normal(2, heads, 1, 1).abs()) for heads in (4, 2, 2))
    problem = drawn(SHAPE, dtype, 6, size=4.0, causal=True)
    problem = _with(problem, Features(factors=by))  # type: ignore[arg-type]
    compare(problem, textbook(problem, torch.bfloat16, dtype), tmp_path, usual=False)


SEQUENCES = (
    (0, 70, 0, 100),
    (70, 0, 100, 5),
    (70, 64, 105, 64),
    (134, 1, 169, 300),
    (135, 90, 469, 20),
)


BESIDE = ["nothing", "alibi", "sink", "factors", "prefix"]
SETTINGS: list[dict[str, Any]] = [{}, {"causal": True}, {"window": (30, 3)}]
PACKED = [(beside, settings) for beside in BESIDE for settings in SETTINGS]


@pytest.mark.parametrize(("beside", "settings"), PACKED if IS_LONG else PACKED[::4], ids=str)
def test_sequences_have_the_bounds_of_the_library(
    beside: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    if beside == "prefix" and "window" in settings:
        pytest.skip("is the command line's")
    features = {
        "nothing": Features(),
        "alibi": Features(alibi_slopes=_normal(4).abs()),
        "sink": Features(sink=_normal(4)),
        "factors": Features(factors=(None, 1 + _normal(1, 2, 489, 1).abs(), None)),
        "prefix": Features(prefix=7),
    }[beside]
    problem = drawn((1, 4, 2, 225, 489, 32), torch.bfloat16, 8, **settings)
    problem = _with(problem, replace(features, sequences=SEQUENCES))
    outputs = textbook(problem, torch.bfloat16, torch.bfloat16)
    compare(problem, outputs, tmp_path, usual=_usual(features))


def _stored(path: Path, kernel: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Q, K, V and outputs of a capture as they lie, and the further arguments of `audit`."""
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in list(file.keys())}
        notes = file.metadata()
    outputs = {name: tensors[name] for name in "qkv"}
    outputs |= {"out": tensors[f"{kernel}.out"], "lse": tensors.get(f"{kernel}.lse")}
    if tensors["q"].dim() == 3 and not any("cu_seqlens" in name for name in tensors):
        outputs = {name: None if x is None else x[None] for name, x in outputs.items()}
    own = {*"qkv", "dout"}
    beside = {name: x for name, x in tensors.items() if "." not in name and name not in own}
    given: dict[str, Any] = {name: beside.pop(name) for name in FEATURES_GIVEN if name in beside}
    given |= {"layout": notes.get("layout", "bhsd"), "causal": notes.get("causal") == "true"}
    given |= {name: float(notes[name]) for name in ("scale", "softcap") if name in notes}
    if "window" in notes:
        given["window"] = tuple(int(x) for x in notes["window"].split(","))
    return outputs, {**given, "features": beside} if beside else given


CAPTURED = [
    (path, kernel)
    for path in sorted((ROOT / "fixtures/features").glob("*.safetensors"))
    # Those of dropout, of blocks and of a prefix have notes that are no arguments.
    if path.stem not in ("flash-dropout", "block-mask", "prefix-lm")
    for kernel in kernels_of(f"features/{path.name}")
]
OWN = [one for one in CAPTURED if f"features/{one[0].name}" not in CAPTURES]


@pytest.mark.parametrize(("path", "kernel"), OWN, ids=lambda x: getattr(x, "stem", x))
def test_captures_with_features_pass_here_as_on_the_command_line(path: Path, kernel: str) -> None:
    outputs, given = _stored(path, kernel)
    assert flashproof.audit(**outputs, **given).passed
    report = audits.verdict_on(outputs, given)
    assert (report.passed, report.decided_by) == (True, "device"), report.text


@pytest.mark.parametrize(
    ("path", "kernel"), OWN if IS_LONG else OWN[::5], ids=lambda x: getattr(x, "stem", x)
)
def test_damaged_captures_with_features_have_the_verdict_of_the_command_line(
    path: Path, kernel: str
) -> None:
    outputs, given = _stored(path, kernel)
    out = outputs["out"]
    row = out.clone()
    row[(0,) * (out.dim() - 2)] = 2 * row[(0,) * (out.dim() - 2)]
    wrong = {"1 % large": (out.double() * 1.01).to(out.dtype), "a row twice": row}
    for name, damaged in wrong.items():
        made = {**outputs, "out": damaged}
        report, exact = audits.verdict_on(made, given), flashproof.audit(**made, **given)
        assert (report.passed, report.cause) == (exact.passed, exact.cause), name
    # Of a kernel whose own roundings are coarser a factor of 1 % is one.
    assert not report.passed


# A mask that each problem has in another form: the same pairs are seen.
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "causal as a mask": ({"causal": True}, {"mask": torch.ones(150, 200).tril(50).bool()}),
    "a window as a bias": (
        {"window": (40, 10)},
        {"bias": torch.where(torch.ones(150, 200).tril(60).triu(10).bool(), 0.0, -torch.inf)},
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_one_mask_in_two_forms_has_one_oracle(name: str) -> None:
    plain, formed = FORMS[name]
    problem = drawn(SHAPE, torch.float16, 9, **plain)
    other = _with(drawn(SHAPE, torch.float16, 9), Features(**formed))
    outputs = textbook(problem, torch.float16, torch.float16)
    one, two = (measure(x, outputs, 1e-9) for x in (problem, other))
    assert one.elements.worst.ratio == pytest.approx(two.elements.worst.ratio, rel=1e-9)
    assert not one.open_heads and not two.open_heads


def test_rows_that_belong_to_no_sequence_are_said_to_be_left_out() -> None:
    q, k, v = (torch.randn(2, 30, 2, 16, generator=GENERATOR) for _ in range(3))
    lengths = torch.tensor([30, 11], dtype=torch.int32)
    out = torch.full_like(q, torch.nan)
    for entry, length in enumerate(lengths.tolist()):
        own = (x[entry, :length].transpose(0, 1).double() for x in (q, k, v))
        scores = next(own) @ next(own).mT / 4
        out[entry, :length] = (scores.softmax(-1) @ next(own)).transpose(0, 1).float()
    report = flashproof.assert_attention(
        q, k, v, out, layout="bshd", features={"seqused_q": lengths, "seqused_k": lengths}
    )
    assert report.decided_by == "device"
    assert "19 rows belong to no sequence: not judged." in report.text
    out[1, 10, 1, 3] += 0.01
    with pytest.raises(AssertionError, match="FAIL"):
        flashproof.assert_attention(
            q, k, v, out, layout="bshd", features={"seqused_q": lengths, "seqused_k": lengths}
        )


def _plain(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=GENERATOR)


def _int(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


Q, PAGES = _plain(2, 4, 2, 16), _plain(3, 8, 2, 16)
PACKED_Q = _plain(8, 2, 16)
LYING = {"block_table": torch.tensor([[0], [1]], dtype=torch.int32), "seqused_k": _int(8, 5)}
UNFIT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "one segment of keys": ({}, {"q_segments": _int(0, 0, 1, 1), "k_segments": _int(0)}),
    "segments that are no integers": (
        {},
        {"q_segments": torch.zeros(4), "k_segments": torch.zeros(4)},
    ),
    "lengths that are no integers": (
        dict.fromkeys(("q", "k", "v", "out"), PACKED_Q),
        {"cu_seqlens": torch.tensor([0.0, 4.5, 8.0])},
    ),
    "sequences that begin late": (
        dict.fromkeys(("q", "k", "v", "out"), PACKED_Q),
        {"cu_seqlens": _int(3, 5, 8)},
    ),
    "lengths of too few sequences": ({}, {"seqused_q": _int(4), "seqused_k": _int(4)}),
    "padding below 0": ({}, {"seqused_k": _int(4, 4), "leftpad_k": _int(-1, 0)}),
    "an output with other slots": ({"out": _plain(2, 6, 2, 16)}, {"seqused_q": _int(4, 2)}),
    "pages of V of another size": ({"k": PAGES, "v": _plain(6, 4, 2, 16)}, LYING),
    "a page that is none": (
        {"k": PAGES, "v": PAGES},
        {**LYING, "block_table": torch.tensor([[0], [7]], dtype=torch.int32)},
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_does_not_fit_is_refused_as_by_the_command_line(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object) -> None:
        raise AssertionError("it was judged")

    # The package's own ``judge`` has the module's name.
    monkeypatch.setattr(sys.modules[judge.__module__], "measure", measured)
    tensors, features = UNFIT[name]
    made = {**dict.fromkeys(("q", "k", "v", "out"), Q), **tensors}
    given: dict[str, Any] = {"layout": "bshd", "features": features}
    with pytest.raises(flashproof.RequestError) as refused:
        flashproof.audit(**made, **given)
    with pytest.raises(flashproof.RequestError) as told:
        audits.verdict_on(made, given)
    assert str(told.value) == str(refused.value)


def test_slopes_of_one_head_in_several_entries_go_with_the_heads_that_are_open() -> None:
    slopes = torch.tensor([0.25])
    problem = _with(drawn((3, 1, 1, 30, 30, 16), torch.float32, 4), Features(alibi_slopes=slopes))
    outputs = textbook(problem, torch.float32, torch.float32)
    shape = shape_of(problem)
    part, own, _ = some_heads(problem, outputs, None, shape, [0, 2])
    assert part.features.alibi_slopes is not None
    assert part.features.alibi_slopes.tolist() == [0.25, 0.25]
    whole, some = (measure(x, y, 1e-9) for x, y in ((problem, outputs), (part, own)))
    assert not whole.open_heads and not some.open_heads
