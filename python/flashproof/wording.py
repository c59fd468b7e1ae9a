"""What the command line says, in the words of Python: arguments in the place of options, and no paths of files that nobody saw."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

#: The command that lists the properties of a contract.
_LISTING = re.compile(r"flashproof check(?: --contract (\w+))? --list")
#: Options of the command line that arguments have other names than.
_ARGUMENTS = {"property": "laws", "regime": "regimes", "dimension": "dimensions"}
#: Options that are premises, with what they declare.
_VALUE = r"\w+=[\w/+-]+(?:\.\d[\w+-]*)?"
_PREMISES = re.compile(rf"--(premise|gradient-premise)\s+({_VALUE}(?:,{_VALUE})*)")
#: Options with a word behind them that is one of an argument's.
_LAYOUTS = re.compile(r"--(layout|state-layout)\s+([bhst]{2,3}d|kv|vk)\b")
#: What a report says of an option that no argument stands for.
_FULL = re.compile(r"--full(?=\s+prints\b)")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")


def near(mistyped: str, known: Iterable[str]) -> str:
    """`; did you mean 'scores'`, behind what is said of a name that is none of the known ones; empty where none is close."""
    found = difflib.get_close_matches(mistyped, list(known), n=1)
    return f"; did you mean {found[0]!r}" if found else ""


def _premises(match: re.Match[str]) -> str:
    pairs = dict(one.split("=", 1) for one in match[2].split(","))
    return f"{match[1].replace('-', '_')}s={pairs!r}"


def report_in_python(text: str) -> str:
    """A report, or a part of it, with arguments in the place of options: `premises={'scores': 'bf16'}` for `--premise scores=bf16`."""
    text = _LAYOUTS.sub(lambda match: f'{match[1].replace("-", "_")}="{match[2]}"', text)
    return _FULL.sub('options=["--full"]', _PREMISES.sub(_premises, text))


def document_in_python(part: Any, told: Callable[[str], str] = report_in_python) -> Any:
    """A document, or a part of one, whose texts say what `told` makes of them."""
    if isinstance(part, str):
        return told(part)
    if isinstance(part, Mapping):
        return {name: document_in_python(one, told) for name, one in part.items()}
    return [document_in_python(one, told) for one in part] if isinstance(part, list) else part


def _arguments_for(option: str) -> tuple[str, ...]:
    """What arguments for an option of the command line are called, the likeliest first."""
    name = option.partition("=")[0].lstrip("-").replace("-", "_")
    return (_ARGUMENTS.get(name, name), name, f"{name}s")


def in_python(said: str, arguments: Iterable[str]) -> str:
    """A refusal with options of the command line as the arguments of a function, where this takes them."""
    said = _LISTING.sub(
        lambda match: f"flashproof.laws({repr(match[1]) if match[1] else ''})", said
    )
    known = set(arguments)

    def argument(match: re.Match[str]) -> str:
        name = next((one for one in _arguments_for(match[0]) if one in known), None)
        return match[0] if name is None else f"{name}="

    return _OPTION.sub(argument, report_in_python(said))


def arguments_of(
    function: Callable[..., Any], options: Sequence[str] = (), *described: type
) -> set[str]:
    """
    The names of the arguments of a function, without those that its caller gave as words of `options` instead.

    `described` are TypedDicts of arguments that it takes besides.
    """
    names = set(inspect.signature(function).parameters)
    names = names.union(*(one.__annotations__ for one in described))
    return names.difference(*map(_arguments_for, options))


def name_of(kernel: Any) -> str:
    """How a kernel is called in a line that its caller may type; `kernel` where it has no name."""
    name = getattr(kernel, "__name__", "")
    return name if name.isidentifier() else "kernel"


def taken_names(function: Callable[..., Any]) -> tuple[dict[str, inspect.Parameter], bool] | None:
    """The parameters of a function that may be given by name, and whether it takes any other; None where nobody can tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    by_name = {
        one.name: one
        for one in parameters
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    }
    return by_name, any(one.kind is one.VAR_KEYWORD for one in parameters)


def misfit(
    kernel: Callable[..., Any], given: Iterable[str], *, complete: bool = True
) -> str | None:
    """
    Why a kernel cannot be called with these arguments by name, which are all that it gets where `complete`.

    None where it can, and where nobody can tell.
    """
    inputs = ("q", "k", "v")
    given = [*inputs, *(name for name in given if name not in inputs)]
    found = taken_names(kernel)
    if found is None:
        return None
    by_name, takes_any = found
    called = f"it is called by name with {', '.join(given)}"
    free = [name for name in by_name if name not in given]
    for name in given:
        if name not in by_name and not takes_any:
            return f"{name_of(kernel)}() takes no argument {name!r}{near(name, free)}; {called}"
    for name in free if complete else []:
        if by_name[name].default is inspect.Parameter.empty:
            return f"{name_of(kernel)}() needs an argument {name!r}{near(name, given)}; {called}"
    return None
