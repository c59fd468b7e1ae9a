"""The arguments of a call of any function, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def values_of(
    function: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name, with the function's own defaults. TypeError where the function does not take them."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **given)
    bound.apply_defaults()
    values: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            values.update(bound.arguments[name])
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            values[name] = bound.arguments[name]
    return values


def replaced(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    given: Mapping[str, Any],
    values: Mapping[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same call with some arguments replaced by name, positional ones staying positional."""
    names = list(inspect.signature(function).parameters)
    positional = tuple(values.get(names[i], one) for i, one in enumerate(args))
    return positional, {name: values.get(name, one) for name, one in given.items()}
