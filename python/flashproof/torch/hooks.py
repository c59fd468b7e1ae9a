"""Functions of other packages, replaced wherever they are imported, and put back again."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import torch


def import_functions(
    names: Mapping[str, object],
) -> tuple[dict[tuple[str, str], Callable[..., Any]], list[str]]:
    """
    The functions that modules have, by module and name, of `names` by module.

    Also a line for each package that is there and cannot be imported. Modules and functions that a release lacks are left out.
    """
    found: dict[tuple[str, str], Callable[..., Any]] = {}
    broken: dict[str, str] = {}
    for path, wanted in names.items():
        package = path.partition(".")[0]
        try:
            module = importlib.import_module(path)
        except Exception as error:
            # Packages of kernels look for a GPU and a compiler as they are imported, and raise what these raise.
            if not _is_absent(error, path):
                said = str(error).partition("\n")[0]
                broken.setdefault(package, f"{package} cannot be imported: {said}")
            continue
        for name in wanted if isinstance(wanted, Mapping) else ():
            function = getattr(module, name, None)
            if callable(function):
                found[path, name] = function
    return found, list(broken.values())


def _is_absent(error: Exception, path: str) -> bool:
    """Whether a module is not there: the one that was asked for, or one that it is in."""
    missing = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
    return missing is not None and (path == missing or path.startswith(f"{missing}."))


def replace_everywhere(replacements: list[tuple[Any, Any]]) -> None:
    """Put the second of each pair where the first is: in modules, and in attributes of modules of PyTorch."""
    by_id = {id(old): new for old, new in replacements}
    for namespace in _namespaces():
        for name, value in list(namespace.items()):
            if id(value) in by_id:
                namespace[name] = by_id[id(value)]


def _namespaces() -> Iterator[MutableMapping[str, Any]]:
    for module in list(sys.modules.values()):
        namespace = getattr(module, "__dict__", None)
        if isinstance(namespace, dict):
            yield namespace
    for one in gc.get_objects():
        if issubclass(type(one), torch.nn.Module):
            yield one.__dict__
