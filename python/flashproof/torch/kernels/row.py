"""How the calls of a function are read: what each argument is, how tensors lie, and what the function gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...dump import Premises
from .arguments import Words

#: The order of the dimensions of Q, K and V that are not packed.
Layout = Literal["bhsd", "bshd", "sbhd"]


@dataclass(frozen=True)
class Row:
    """How a function's arguments map to a problem of attention."""

    #: The word of each argument. One that is not here, and has another value than its default, is not judged.
    names: Mapping[str, str]
    #: Arguments that change no exact value.
    without_meaning: frozenset[str] = frozenset()
    layout: Layout = "bshd"
    #: Whether it is a function of the caller's own, who says what it means.
    is_own: bool = False
    #: Words that every call has unless it says otherwise.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: What the function gives, in order: `out`, `lse`, None for what is not judged.
    results: tuple[str | None, ...] = ("out", "lse")
    #: Whether an LSE has heads last, and not before its rows.
    lse_has_heads_last: bool = False
    #: 2 for an LSE in base 2.
    lse_base: Literal[2, None] = None
    #: Rows without keys have an LSE of +∞.
    has_lse_of_empty_rows: bool = False
    #: ALiBi under a causal mask goes without the row's own term, and so does the LSE.
    leaves_out_alibi_of_rows: bool = False
    #: Factors of what has more than 8 bits are not read.
    has_factors_of_8_bits_alone: bool = False
    #: How it computes with inputs of 8 bits.
    premises_of_8_bits: Premises = "fused"
    #: What else is to be read of a call, by which its words change; NotJudgedError for what is no problem.
    adapt: Callable[[Words], None] | None = None
    #: What is to be seen once the call was carried out; NotJudgedError for what is no problem.
    check_after: Callable[[Words], None] | None = None
    #: A method of the same class whose arguments are kept for the calls of this one.
    plan: str | None = None
