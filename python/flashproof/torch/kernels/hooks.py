"""Kernels of other packages, and functions of your own, hooked while a context lasts."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from ..hooks import replace_everywhere
from ..problem import NotJudgedError
from .arguments import bound_arguments, is_tensor, read_words
from .functions import JudgedFunction, Kernel
from .kernel_call import KernelCall, read_kernel_call
from .row import Row
from .table import PUBLIC_KERNELS

if TYPE_CHECKING:
    from ..judged_calls import JudgedAttentionCalls

#: What a function is replaced by, and where a class has it: the class and the name, None for a function of modules.
_Hook = tuple[Any, Any, "tuple[type, str] | None"]


class KernelHooks:
    """The functions that are hooked: those of packages that are imported, now or later, and those that a caller names."""

    def __init__(
        self, owner: JudgedAttentionCalls, functions: Iterable[Callable[..., Any] | Kernel]
    ) -> None:
        self._owner = owner
        self._own = [_as_kernel(one) for one in functions]
        self._hooks: list[_Hook] = []
        self._names: list[str] = []
        self._is_active = False
        self._within = threading.local()
        self._plans: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
        self._finder = _Finder(frozenset(PUBLIC_KERNELS), self._hook_module)
        #: What keeps kernels from being seen, a line each.
        self.broken: list[str] = []
        self._called: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The functions that are hooked, by module and name."""
        return tuple(self._names)

    @property
    def unseen(self) -> list[str]:
        """The functions that a caller names and of which no call was seen, a line each."""
        where = "what a closure, a list or a functools.partial holds is not replaced"
        missed = [kernel.name for kernel in self._own if kernel.name not in self._called]
        return [f"{name}: no call was seen; {where}" for name in missed]

    @property
    def is_within(self) -> bool:
        """Whether this thread is within a call that is judged: what it calls in turn is part of it."""
        return bool(getattr(self._within, "call", False))

    def begin(self) -> None:
        """Hook what is there; packages that are imported from now on as they are."""
        self._is_active = True
        for kernel in self._own:
            function, place = kernel.function, _class_of(kernel.function)
            self._add(function, self._hooked(function, kernel.name, kernel.row, place), place)
            self._names.append(kernel.name)
        for path in PUBLIC_KERNELS:
            module = sys.modules.get(path)
            if module is not None:
                self._find(module)
        self._replace()
        sys.meta_path.insert(0, self._finder)

    def end(self) -> None:
        """Put everything back, in modules that were imported within too."""
        self._is_active = False
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        replace_everywhere([(hook, old) for old, hook, owner in self._hooks if owner is None])
        for old, _, owner in self._hooks:
            if owner is not None:
                setattr(*owner, old)
        self._hooks, self._names = [], []

    def _hook_module(self, module: ModuleType) -> None:
        if self._is_active:
            before = len(self._hooks)
            self._find(module)
            self._replace(before)

    def _find(self, module: ModuleType) -> None:
        """Make hooks of the functions of a module that the table has."""
        for name, row in PUBLIC_KERNELS[module.__name__].items():
            owner_name, _, attribute = name.rpartition(".")
            owner = getattr(module, owner_name, None) if owner_name else module
            found = vars(owner).get(attribute) if isinstance(owner, (type, ModuleType)) else None
            if found is None or any(found is old for old, _, _ in self._hooks):
                continue
            place = (owner, attribute) if isinstance(owner, type) else None
            full = f"{module.__name__}.{name}"
            self._names.append(full)
            if row.plan is not None and place is not None:
                self._hook_plan(place[0], row.plan)
            self._add(found, self._hooked(found, full, row, place), place)

    def _add(self, old: Any, hook: Any, owner: tuple[type, str] | None = None) -> None:
        self._hooks.append((old, hook, owner))

    def _replace(self, start: int = 0) -> None:
        """Put hooks in the places of functions, those from `start` on."""
        new = self._hooks[start:]
        if any(owner is None for _, _, owner in new):
            replace_everywhere([(old, hook) for old, hook, owner in new if owner is None])
        for _, hook, owner in new:
            if owner is not None:
                setattr(*owner, hook)

    def _hook_plan(self, owner: type, name: str) -> None:
        """Keep the arguments of a method, for the calls of others."""
        plan = vars(owner).get(name)
        if plan is None or any(plan is old for old, _, _ in self._hooks):
            return

        @functools.wraps(plan)
        def keep(wrapper: Any, *args: Any, **given: Any) -> Any:
            if self._is_active:
                self._plans[wrapper] = _copied_plan(plan, (wrapper, *args), given)
            return plan(wrapper, *args, **given)

        self._add(plan, keep, (owner, name))

    def _hooked(self, function: Any, name: str, row: Row, place: tuple[type, str] | None) -> Any:
        if isinstance(function, functools.partialmethod):
            inner = self._hooked(function.func, name, row, place)
            return functools.partialmethod(inner, *function.args, **function.keywords)

        def call(*args: Any, **given: Any) -> Any:
            __tracebackhide__ = True
            # torch.compile traces this; what it counts is counted whenever the graph runs.
            if torch.compiler.is_compiling():
                if self._is_active:
                    self._owner.compiled += 1
                    self._called.add(name)
                return function(*args, **given)
            self._called.add(name)
            # What outlives the context is as it was.
            if not self._is_active or self.is_within:
                return function(*args, **given)

            def read() -> KernelCall:
                beside = None if row.plan is None else self._planned(args[0], row)
                return read_kernel_call(name, function, row, args, given, beside)

            return self._owner.meet(read, lambda: function(*args, **given), self._inside)

        return functools.update_wrapper(call, function)

    def _planned(self, wrapper: Any, row: Row) -> dict[str, Any]:
        """The words of the plan that a call goes by. NotJudgedError where it was not seen."""
        plan = self._plans.get(wrapper)
        if plan is None:
            raise NotJudgedError(f"its {row.plan} was called before the context began")
        if "error" in plan:
            raise NotJudgedError(f"of its {row.plan} {plan['error']}")
        words = read_words(plan["values"], plan["defaults"], row.names, row.without_meaning)
        return {name: given.value for name, given in words.items() if name != "wrapper"}

    @contextmanager
    def _inside(self) -> Iterator[None]:
        self._within.call = True
        try:
            yield
        finally:
            self._within.call = False


def _as_kernel(one: Any) -> Kernel:
    if isinstance(one, Kernel):
        return one
    if isinstance(one, JudgedFunction):
        raise ValueError(f"{one.kernel.name} is judged as it is; give the function itself")
    return Kernel(one)


def _class_of(function: Any) -> tuple[type, str] | None:
    """The class that a function is a method of, and its name there; None for one of a module."""
    owner: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    *path, name = getattr(function, "__qualname__", "").split(".")
    for one in path:
        owner = getattr(owner, one, None)
    if not path or not isinstance(owner, type) or vars(owner).get(name) is not function:
        return None
    return owner, name


def _copied_plan(
    plan: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a plan as they are now: their tensors are used again for the next."""
    try:
        values, defaults = bound_arguments(plan, tuple(args), given)
    except NotJudgedError as error:
        return {"error": str(error)}
    copied = {
        name: one.detach().to("cpu", copy=True) if is_tensor(one) else one
        for name, one in values.items()
        # It would live as long as what is kept of it.
        if name != "self"
    }
    return {"values": copied, "defaults": defaults}


class _Finder(importlib.abc.MetaPathFinder):
    """Sees modules of some names as they are imported, and calls `on_import` once each is."""

    def __init__(self, names: frozenset[str], on_import: Callable[[ModuleType], None]) -> None:
        self._names = names
        self._on_import = on_import

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """What the others find, with a loader that tells."""
        if fullname not in self._names:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Telling(spec.loader, self._on_import)
                return spec
        return None


class _Telling(importlib.abc.Loader):
    """A loader that calls `on_import` with the module that it has carried out, and gives way to its own then."""

    def __init__(self, loader: Any, on_import: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._on_import = on_import

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """What the loader makes."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Carry the module out as the loader does, and tell."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._on_import(module)
