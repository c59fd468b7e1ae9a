"""Judging what a kernel of linear attention gave: `audit_recurrent`, `assert_recurrent`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .arguments import (
    RECURRENT_FEATURES,
    RECURRENT_GRADIENTS,
    KeptRecurrentArguments,
    RecurrentArguments,
    check_gradients,
    check_names,
    option_words,
    words_of,
)
from .dump import gather, number_of
from .mamba2 import MAMBA2_GRADIENTS, mamba2_metadata, mamba2_tensors, refuse_mamba2_names
from .report import Report
from .request import Request, asserted

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _metadata(family: str, given: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a recurrence as a file's metadata. ValueError for what is none, with what to give."""
    found = {
        "family": str(family),
        "layout": str(given.get("layout", "bthd")),
        "state_layout": str(given.get("state_layout", "kv")),
    }
    if given.get("scale") is not None:
        found["scale"] = repr(number_of("scale", given["scale"]))
    normalisation = given.get("normalisation")
    if isinstance(normalisation, bool):
        found["normalisation"] = str(normalisation).lower()
    elif normalisation is not None:
        found["normalisation"] = repr(number_of("normalisation", normalisation))
    return found


def _mamba2_request(outputs: Mapping[str, Any], given: Mapping[str, Any]) -> Request:
    """The request of a Mamba-2 problem, by its own names."""
    tensors = mamba2_tensors(outputs, given)
    check_gradients(given, MAMBA2_GRADIENTS)
    judged = [tensors[name] for name in ("out", "final_states", "dout")]
    is_judged = any(one is not None for one in judged)
    options = option_words(given.get("options"), has_kernel=is_judged)
    if not is_judged and not options:
        raise ValueError("out is None; give the kernel's output")
    words = words_of(given, usual=None)
    return Request(gather(tensors), mamba2_metadata(given), words, options, kind="recurrence")


def _request(
    outputs: Mapping[str, Any],
    family: str,
    given: Mapping[str, Any],
    function: str,
    described: type,
) -> Request:
    """The request of Q, K, V, results and arguments; TypeError and ValueError for what is none of these."""
    check_names(function, given, described)
    if str(family) == "mamba2":
        return _mamba2_request(outputs, given)
    refuse_mamba2_names(family, given)
    for name in ("q", "k", "v"):
        if outputs[name] is None:
            raise ValueError(f"{name} is None; give it")
    check_gradients(given, RECURRENT_GRADIENTS)
    dout, dfinal_state = given.get("dout"), given.get("dfinal_state")
    if dfinal_state is not None and dout is None:
        raise ValueError("dfinal_state is given without dout, the gradient of out; give it as well")
    is_judged = outputs["out"] is not None or outputs["final_state"] is not None or dout is not None
    options = option_words(given.get("options"), has_kernel=is_judged)
    if not is_judged and not options:
        raise ValueError("out is None; give the kernel's output")
    beside = {name: given.get(name) for name in (*RECURRENT_FEATURES, *RECURRENT_GRADIENTS)}
    tensors = gather({**outputs, **beside, "dfinal_state": dfinal_state})
    words = words_of(given, usual=None)
    return Request(tensors, _metadata(family, given), words, options, kind="recurrence")


def audit_recurrent(
    q: Any = None,
    k: Any = None,
    v: Any = None,
    out: Any = None,
    final_state: Any = None,
    *,
    family: str,
    **given: Unpack[KeptRecurrentArguments],
) -> Report:
    """
    Judge what a kernel of linear attention or of a delta rule gave against the exact recurrence.

    `family` is `linear`, `retention`, `simple-gla`, `gla`, `delta`, `gated-delta`, `kda` or `mamba2`. Arrays are of NumPy, PyTorch, JAX or
    CuPy, [batch, tokens, heads, dim], or [batch, heads, tokens, dim] with `layout="bhtd"`, in the format that the kernel read and
    wrote them in. States are [sequences, heads, key dim, value dim], or […, value dim, key dim] with `state_layout="vk"`.

    - The problem: `scale` (1/√(key dim)); `g`, logarithms of decays, and `beta`, as the family has them, or what a kernel makes them
      of: `A_log`, `a` and `dt_bias` for −exp(A_log) softplus(a + dt_bias), `b` for σ(b); `initial_state`;
      `cu_seqlens`, ends of packed sequences, an array; `normalisation`, the epsilon beside Σ² by which Q and K are divided,
      True for 1e-6.
    - Gradients: `dout` and `dfinal_state`, and those of `dq`, `dk`, `dv`, `dg`, `dbeta`, `dinitial_state` that are to be judged.
    - Of `mamba2`, instead of Q, K and V, by the names of mamba_ssm: `C`, `B`, `x`, `dt`, `A`, and where they are there `D`, `z`,
      `dt_bias`, `initial_states` and `seq_idx`; `dt_softplus` (False) and `dt_limit` (0 and ∞); of results `final_states`, and of
      gradients `dx`, `ddt`, `dA`, `dB`, `dC`, `dD`, `ddt_bias` and `dinitial_states`, with `dout` and `dfinal_states`. States are
      [sequences, heads, head dim, state dim].
    - How the kernel computes: `premises`, `"recurrent"`, `"chunked"`, `"fla"`, or `{"form": "chunked", "chunk": 64}`; those of any
      correct kernel by default.
    - How it is judged: `false_alarm_rate`; `rows`, a sample of so many tokens, drawn by `seed`; `options` are further words of
      `flashproof audit`. With `keep` the file of the problem is kept there.

    Returns the report. RequestError for what cannot be judged, with one line that says why.
    """
    outputs = {"q": q, "k": k, "v": v, "out": out, "final_state": final_state}
    keep = given.pop("keep", None)
    request = _request(outputs, family, given, "audit_recurrent", RecurrentArguments)
    return request.report_and_keep(keep)


def recurrent_verdict_on(given: Mapping[str, Any]) -> Report:
    """`audit_recurrent` of arguments by name."""
    return _request_by_name(given).report()


def keep_recurrent_failure(given: Mapping[str, Any], call: int | None = None) -> str:
    """Keep a problem that failed elsewhere in the session's folder, by its call's number; the command that audits it."""
    return _request_by_name(given).keep_failure(call)


def _request_by_name(given: Mapping[str, Any]) -> Request:
    results = ("q", "k", "v", "out", "final_state")
    outputs = {name: given.get(name) for name in results}
    beside = {name: value for name, value in given.items() if name not in (*results, "family")}
    return _request(outputs, given["family"], beside, "assert_recurrent", RecurrentArguments)


def assert_recurrent(
    q: Any = None,
    k: Any = None,
    v: Any = None,
    out: Any = None,
    final_state: Any = None,
    *,
    family: str,
    **given: Unpack[RecurrentArguments],
) -> Report:
    """
    Assert that the output of linear attention, its final state and gradients are as near to the exact ones as rounding lets them be.

    The arguments are those of `audit_recurrent`. Where something is wrong the problem is kept in `flashproof-failures`, and the
    AssertionError says what is wrong, and the command that gives the report again. Returns the report of a kernel that passes.
    """
    __tracebackhide__ = True
    named = {"q": q, "k": k, "v": v, "out": out, "final_state": final_state, "family": family}
    return asserted(_request_by_name({**named, **given}).report_or_keep())
