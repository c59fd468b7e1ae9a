"""A call of a kernel that is hooked, carried out and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ...dump import Premises
from ...recurrent.arguments import replaced
from ...wording import name_of
from ..backward import is_within_transform
from ..problem import NotJudgedError
from .arguments import Given, Words, bound_arguments, number_word, read_words
from .kernel_problem import KernelProblem
from .pose import pose
from .row import Row

_EIGHT_BITS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


@dataclass(frozen=True)
class KernelCall:
    """A call that can be judged."""

    #: The function's name with its module.
    name: str
    function: Callable[..., Any]
    row: Row
    args: tuple[Any, ...]
    given: Mapping[str, Any]
    words_given: Words
    premises: Premises | None
    results_not_judged: str | None = None

    @property
    def advice(self) -> Mapping[str, str]:
        """What a caller may have left unsaid of a function, in a sentence, by the cause that is found then."""
        if not self.row.is_own or "causal" in self.words_given:
            return {}
        kernel = f"Kernel({name_of(self.function)}, causal=True)"
        said = f"If it is causal by itself, say so: {kernel}, or judged(causal=True)."
        return {"causal-mask-unasked": said}

    def differentiable(self) -> Mapping[str, Tensor]:
        """The tensors whose gradients are to come, by argument."""
        found = {}
        for word in ("q", "k", "v", "qkv", "kv", "bias", "attn_mask"):
            given = self.words_given.get(word)
            if given is None or given.argument is None or not _is_differentiable(given.value):
                continue
            found[given.argument] = given.value
        return found

    def run(self, views: Mapping[str, Tensor]) -> Any:
        """What the function gives, with some arguments replaced."""
        args, given = replaced(self.function, self.args, self.given, views)
        return self.function(*args, **given)

    def output(self, made: Any) -> Tensor:
        """The output, of what the function gave."""
        out: Tensor = self._results(made)[self.row.results.index("out")]
        return out

    def _results(self, made: Any) -> tuple[Any, ...]:
        """What the function gave; what it wrote into an argument where it returned nothing."""
        written = self.words_given.get("out")
        if made is None and written is not None:
            return (written.value,)
        return tuple(made) if isinstance(made, (tuple, list)) else (made,)

    def viewed(self, made: Any) -> Any:
        """The same, with a node of this call's own behind the output: what comes to it is what the caller brings."""
        if made is None:
            return None
        place = self.row.results.index("out")
        own = list(self._results(made))
        own[place] = own[place].view_as(own[place])
        if not isinstance(made, (tuple, list)):
            return own[0]
        return own if isinstance(made, list) else tuple(own)

    def posed(self, made: Any) -> tuple[KernelProblem, dict[str, Tensor]]:
        """The problem, and Q, K, V, the output and the LSE by the names of `audit`; NotJudgedError for what is none."""
        results = dict(zip(self.row.results, self._results(made)))
        out = results["out"]
        if not isinstance(out, torch.Tensor):
            raise NotJudgedError(f"its output is a {type(out).__name__}, no tensor")
        if self.row.check_after is not None:
            self.row.check_after(self.words_given)
        problem = pose(self.words_given, self.row, out)
        outputs = {"q": problem.q, "k": problem.k, "v": problem.v}
        outputs["out"] = problem.take_output(out.detach())
        lse = results.get("lse")
        if isinstance(lse, torch.Tensor) and self.results_not_judged is None:
            outputs["lse"] = self._lse(lse.detach(), outputs["out"])
            if self.row.lse_base is not None:
                problem = replace(problem, options=("--lse-base", str(self.row.lse_base)))
        return problem, outputs

    def _lse(self, lse: Tensor, out: Tensor) -> Tensor:
        """An LSE as `audit` has it: [batch, heads, queries], or [heads, rows] of packed queries."""
        if self.row.lse_has_heads_last and lse.dim() > 1:
            lse = lse.transpose(-1, -2)
        if lse.dim() < out.dim() - 1:
            # One query, or one sequence.
            lse = lse[:, None] if lse.dim() == 1 else lse
            lse = lse[None] if out.dim() == 4 else lse
        if self.row.has_lse_of_empty_rows:
            # Of rows with keys −∞ is as wrong.
            lse = torch.where(lse == torch.inf, -torch.inf, lse)
        return lse


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def read_kernel_call(
    name: str,
    function: Callable[..., Any],
    row: Row,
    args: tuple[Any, ...],
    given: Mapping[str, Any],
    beside: Mapping[str, Any] | None = None,
) -> KernelCall:
    """What a call asks for; `beside` are words that it does not give itself. NotJudgedError for one that is not judged."""
    if is_within_transform():
        raise NotJudgedError("it is within a transform of torch.func")
    values, defaults = bound_arguments(function, args, given)
    words = read_words(values, defaults, row.names, row.without_meaning)
    for word, value in {**row.defaults, **(beside or {})}.items():
        words.setdefault(word, Given(value))
    if row.adapt is not None:
        row.adapt(words)
    dropout = number_word(words, "dropout")
    if dropout is not None and dropout > 0:
        raise NotJudgedError(f"dropout is {dropout}, and which weights it dropped is not known")
    call = KernelCall(name, function, row, args, given, words, _premises(words, row))
    return replace(call, results_not_judged=_why_no_lse(call))


def _premises(words: Words, row: Row) -> Premises:
    formats = {str(getattr(given.value, "dtype", "")) for given in words.values()}
    is_short = any(f"torch.{name}" in formats for name in _EIGHT_BITS)
    return row.premises_of_8_bits if is_short else "fused"


def _why_no_lse(call: KernelCall) -> str | None:
    """Why an LSE is not judged; None where it is, or where there may be none."""
    words, row = call.words_given, call.row
    is_causal = "causal" in words and bool(words["causal"].value)
    if row.leaves_out_alibi_of_rows and "alibi_slopes" in words and is_causal:
        return "the LSE goes without the row's own term of ALiBi"
    if "sink" in words:
        return "whether the LSE holds the sink is not known"
    return None
