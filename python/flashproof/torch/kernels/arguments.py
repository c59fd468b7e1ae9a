"""The arguments of a call, each with the word that it has in a problem of attention."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..problem import NotJudgedError

#: How a tensor of a problem is taken of an argument, and its gradient of that argument's.
Take = Callable[[Tensor], Tensor]


def same(x: Tensor) -> Tensor:
    """The tensor itself."""
    return x


@dataclass(frozen=True)
class Given:
    """What a call gives for a word of the problem."""

    value: Any
    #: The argument that it came by; None for what was set elsewhere.
    argument: str | None = None
    take: Take = same

    def then(self, take: Take) -> Given:
        """The same, with one more step to take it by."""
        before = self.take
        return Given(self.value, self.argument, lambda x: take(before(x)))

    @property
    def tensor(self) -> Tensor:
        """What is taken of the argument now."""
        return self.take(self.value.detach())


#: What a call asks for, by the words of docs/guide/python.md.
Words = dict[str, Given]


def bound_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """
    The arguments of a call by name, and the function's own defaults.

    NotJudgedError for a call that the function does not take, and for positional arguments without a name.
    """
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **given)
    except (TypeError, ValueError) as error:
        raise NotJudgedError(f"its arguments are not known here: {error}") from error
    bound.apply_defaults()
    values: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            values.update(bound.arguments[name])
        elif parameter.kind is parameter.VAR_POSITIONAL:
            if bound.arguments[name]:
                raise NotJudgedError(f"*{name} is given, which is not known here")
        else:
            values[name] = bound.arguments[name]
            if parameter.default is not parameter.empty:
                defaults[name] = parameter.default
    return values, defaults


_SIMPLE = (bool, int, float, str, tuple)


def is_usual(name: str, value: Any, defaults: Mapping[str, Any]) -> bool:
    """Whether an argument has the function's own default, or is not set where it has none: what an unknown one may have."""
    default = defaults.get(name)
    if value is None or value is False:
        return default is None or default is False
    if value is default:
        return True
    return isinstance(value, _SIMPLE) and type(value) is type(default) and value == default


def read_words(
    values: Mapping[str, Any],
    defaults: Mapping[str, Any],
    names: Mapping[str, str],
    without_meaning: frozenset[str],
) -> Words:
    """What the arguments of a call give. NotJudgedError for one that is set and that no name is known of."""
    words: Words = {}
    for name, value in values.items():
        if name in without_meaning:
            continue
        word = names.get(name)
        if word is None:
            if not is_usual(name, value, defaults):
                raise NotJudgedError(f"{name} is given, which is not known here")
        elif value is not None:
            if word in words:
                raise NotJudgedError(f"{name} and {words[word].argument} are both given")
            words[word] = Given(value, name)
    return words


def number_word(words: Words, name: str) -> float | None:
    """A number that a call gives, None without; NotJudgedError for what is none."""
    given = words.get(name)
    if given is None:
        return None
    try:
        return float(given.value)
    except (TypeError, ValueError, RuntimeError):
        raise NotJudgedError(f"{given.argument or name} is no single number") from None


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor of PyTorch."""
    return isinstance(value, torch.Tensor)
