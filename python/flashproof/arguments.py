"""The arguments that functions of the package share: each is described here once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from .dump import Premises, Settings, premise_words
from .mamba2 import Mamba2Arguments


class ScoreArguments(TypedDict, total=False):
    """What becomes of q·k."""

    scale: float | None
    causal: bool
    window: tuple[int, int] | None
    softcap: float | None


class FeatureArguments(ScoreArguments, total=False):
    """What a problem has besides Q, K and V."""

    layout: str
    mask: Any
    bias: Any
    alibi_slopes: Any
    sink: Any
    #: Further tensors, by their names in docs/guide/problems.md.
    features: Mapping[str, Any] | None


class ProblemArguments(FeatureArguments, total=False):
    """What a problem has besides Q, K and V, and how the kernel computes."""

    premises: Premises | None


class JudgingArguments(TypedDict, total=False):
    """How it is judged."""

    gradient_premises: Premises | None
    #: The judge alone says what may be coarse: no hint of other premises is told.
    strict_premises: bool
    false_alarm_rate: float | None
    rows: int | str | None
    seed: int | None
    threads: int | None
    options: Sequence[str] | None


class AuditArguments(ProblemArguments, JudgingArguments, total=False):
    """What may be judged besides an output and its LSE, and how."""

    dout: Any
    dq: Any
    dk: Any
    dv: Any
    dbias: Any
    dsink: Any


class KeptAuditArguments(AuditArguments, total=False):
    """The same, with where the problem is kept."""

    keep: str | os.PathLike[str] | None


class RecurrentJudgingArguments(TypedDict, total=False):
    """How a recurrence is judged."""

    false_alarm_rate: float | None
    rows: int | str | None
    seed: int | None
    options: Sequence[str] | None


class RecurrentArguments(Mamba2Arguments, RecurrentJudgingArguments, total=False):
    """What a recurrence of linear attention has besides Q, K and V, what may be judged besides its results, and how."""

    g: Any
    beta: Any
    A_log: Any
    a: Any
    b: Any
    initial_state: Any
    cu_seqlens: Any
    scale: float | None
    normalisation: float | bool | None
    layout: str
    state_layout: str
    premises: Premises | None
    dout: Any
    dfinal_state: Any
    dq: Any
    dk: Any
    dv: Any
    dg: Any
    dbeta: Any
    dinitial_state: Any


class KeptRecurrentArguments(RecurrentArguments, total=False):
    """The same, with where the problem is kept."""

    keep: str | os.PathLike[str] | None


#: Tensors of a problem besides Q, K and V.
FEATURES = ("mask", "bias", "alibi_slopes", "sink")
#: dO, and the gradients that are judged.
GRADIENTS = ("dout", "dq", "dk", "dv", "dbias", "dsink")
#: The same of a recurrence.
RECURRENT_FEATURES = ("g", "beta", "A_log", "a", "dt_bias", "b", "initial_state", "cu_seqlens")
RECURRENT_GRADIENTS = ("dout", "dq", "dk", "dv", "dg", "dbeta", "dinitial_state")
_NUMBERS = {
    "false_alarm_rate": "--false-alarm-rate",
    "rows": "--rows",
    "seed": "--seed",
    "threads": "--threads",
}


#: What arguments are called elsewhere.
_OTHER_NAMES = {
    "scale": ("softmax_scale", "sm_scale", "attn_scale"),
    "causal": ("is_causal", "causal_mask"),
    "window": ("window_size", "sliding_window"),
    "softcap": ("soft_cap", "logits_soft_cap", "logit_cap"),
    "mask": ("attn_mask", "attention_mask"),
    "bias": ("attn_bias", "attention_bias"),
    "sink": ("sinks", "s_aux"),
    "dout": ("do", "grad_out", "grad_output"),
    "g": ("gk", "log_decay"),
    "initial_state": ("h0",),
    "normalisation": ("use_qk_l2norm_in_kernel", "use_qk_l2norm", "normalization"),
    "dfinal_state": ("dht",),
    "dinitial_state": ("dh0",),
}


def check_names(function: str, given: Mapping[str, Any], described: type) -> None:
    """TypeError, as Python itself raises it, for an argument that `described`, a TypedDict, does not have."""
    known = described.__optional_keys__  # type: ignore[attr-defined]
    for name in given:
        if name not in known:
            meant = next((one for one, others in _OTHER_NAMES.items() if name in others), None)
            raise TypeError(
                f"{function}() got an unexpected keyword argument {name!r}; "
                + (f"call it {meant}" if meant in known else f"it takes {', '.join(sorted(known))}")
            )


def check_gradients(given: Mapping[str, Any], names: Sequence[str] = GRADIENTS) -> None:
    """ValueError for gradients without what they are judged by, and for that without them."""
    judged = [name for name in names[1:] if given.get(name) is not None]
    if judged and given.get("dout") is None:
        raise ValueError(
            f"{', '.join(judged)} is given without dout, the gradient of out; give it as well"
        )
    if given.get("dout") is not None and not judged:
        raise ValueError(
            f"dout is given without a gradient to judge; give {', '.join(names[1:])}, those that there are"
        )


def settings_of(given: Mapping[str, Any]) -> Settings:
    """The settings of a problem among arguments."""
    return Settings(
        **{name: given[name] for name in Settings.__dataclass_fields__ if name in given}
    )


def words_of(given: Mapping[str, Any], usual: Premises | None = "fused") -> list[str]:
    """The words of a command line that arguments come to, besides tensors, settings and `options`; `usual` are premises that none gives."""
    premises = given.get("premises", usual)
    words = [] if premises is None else premise_words(premises)
    if given.get("gradient_premises") is not None:
        words += premise_words(given["gradient_premises"], gradients=True)
    if given.get("strict_premises"):
        words.append("--strict-premises")
    for name, option in _NUMBERS.items():
        if given.get(name) is not None:
            words += [option, str(given[name])]
    return words


_NOTHING = ", which judges nothing; leave it out"
_PART = ", which makes a part of a campaign; run campaigns on the command line"
#: Options with which a command makes no report of what was given, and what is said of each.
_REFUSED = {
    "--help": _NOTHING,
    "-h": _NOTHING,
    "--version": _NOTHING,
    "-V": _NOTHING,
    "--list": _NOTHING,
    "--shard": _PART,
    "--journal": _PART,
    "--json": "; the report that is returned has .json",
    "--promises": "; give them as promises=",
    "--replay": ", which makes no report; call flashproof.replay",
}
_KERNELS = ("--exec", "--kernel", "--launch")


def option_words(options: Sequence[str] | None, *, has_kernel: bool) -> list[str]:
    """
    Further words of a command line; `has_kernel` where they may not name one.

    TypeError and ValueError for what would be no words, or would lead the report elsewhere.
    """
    if options is None:
        return []
    words = [] if isinstance(options, str) or not isinstance(options, Iterable) else list(options)
    if not words and options not in ([], ()) or not all(isinstance(word, str) for word in words):
        raise TypeError(f"options is {options!r}; give a list of words, as ['--full']")
    for word in words:
        name = word.partition("=")[0]
        if name in _REFUSED:
            raise ValueError(f"options has {word}{_REFUSED[name]}")
        if has_kernel and name in _KERNELS:
            raise ValueError(f"options has {word}, which names another kernel; leave it out")
    return words


#: What the report of a command has, and no other document of it.
_MARKS = {"audit": "warnings", "check": "verdict", "invariance": "dimensions"}


def read_report(path: str, command: str, options: Sequence[str]) -> Any:
    """The report that `audit`, `check` or `invariance` wrote. ValueError where its options kept it from one."""
    try:
        report = json.loads(Path(path).read_text())
    except FileNotFoundError:
        report = {}
    if _MARKS[command] not in report:
        raise ValueError(
            f"options is {options!r}, which makes no report of this {command}; give options that it has"
        )
    return report
