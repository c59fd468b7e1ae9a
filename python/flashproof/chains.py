"""Recording a decode step as a chain of links, and judging it: `record_chain`, `audit_chain`, `assert_chain`."""

from __future__ import annotations

import functools
import inspect
import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, Union

from .arguments import read_report
from .arrays import to_array
from .dump import temporary_folder
from .report import Report, parse_report
from .request import asserted
from .safetensors import Array, write
from .server import shared_server

#: What a link computes.
Contract = Literal["prologue", "cache-write", "selection", "attention", "merge"]

CONTRACTS: tuple[Contract, ...] = ("prologue", "cache-write", "selection", "attention", "merge")

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Result:
    """A place in what a function returns: `result`, `result[0]`, `result["lse"]`."""

    keys: tuple[Any, ...] = ()

    def __getitem__(self, key: Any) -> Result:
        return Result((*self.keys, key))

    def of(self, returned: Any) -> Any:
        """What is there. LookupError or TypeError where nothing is."""
        for key in self.keys:
            returned = returned[key]
        return returned


#: What a watched function returns.
result = Result()

#: Where a tensor of a link is: an argument by its name (`key`, `layer.k_scale`), a function of the arguments, or the tensor itself.
Source = Union[str, Callable[[Mapping[str, Any]], Any], Any]


@dataclass
class _Link:
    name: str
    contract: str
    notes: dict[str, str]
    tensors: dict[str, Array]


def _note(value: Any) -> str:
    """A setting as text, as the command line reads it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _found(source: Source, arguments: Mapping[str, Any], what: str) -> Any:
    """What a source is. TypeError for an argument that the function does not have."""
    if isinstance(source, str):
        name, *attributes = source.split(".")
        if name not in arguments:
            raise TypeError(
                f"{what} is the argument {name!r}, and the function has {', '.join(arguments)}"
            )
        return functools.reduce(getattr, attributes, arguments[name])
    return source(arguments) if callable(source) and not hasattr(source, "shape") else source


class ChainRecorder:
    """
    What each link of one decode step read and wrote, copied when it did.

    Links are recorded with `dump`, where their tensors are at hand, or with `link` and `watch`, which make a function record its own
    calls. The file is written by `save`, or at the end of a `with` statement that raises nothing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._links: list[_Link] = []
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> ChainRecorder:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.unwatch()
        if kind is None:
            self.save()

    def dump(
        self,
        contract: Contract,
        tensors: Mapping[str, Any],
        *,
        name: str | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """
        Record a link: its tensors by the names of its contract, copied now, and its settings. Numbers among the tensors are settings.

        ValueError for another contract, and for a second link of one name. TypeError for what is no array.
        """
        found = {key: value for key, value in tensors.items() if value is not None}
        numbers = {key: value for key, value in found.items() if _is_number(value)}
        link = self._begin(contract, name, {**(notes or {}), **numbers})
        link.tensors.update(
            {
                key: to_array(value, f"{link.name}.{key}")
                for key, value in found.items()
                if key not in numbers
            }
        )

    def link(
        self,
        contract: Contract,
        function: Function,
        *,
        reads: Mapping[str, Source],
        writes: Mapping[str, Source],
        name: str | None = None,
        notes: Mapping[str, Any] | None = None,
        call: int = 0,
    ) -> Function:
        """
        A function that records one of its calls as a link, and is otherwise the one given.

        `reads` are copied before the call and `writes` behind it, by the names of the contract: each an argument by its name, a
        function of all arguments, or a tensor. What is returned is `flashproof.result`, or `result[0]` of it, and for functions of what a
        call writes the item "return". An argument that a call
        writes is copied before it too, as `<name>_before`, where the contract is a cache's. `call` is the number of the call that is
        recorded, from 0: in a model, that of a layer.
        """
        signature = inspect.signature(function)
        calls = 0

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls - 1 != call:
                return function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            link = self._begin(contract, name, notes or {})
            self._copy(link, reads, bound.arguments)
            if contract == "cache-write":
                before = {f"{key}_before": value for key, value in _in_place(writes).items()}
                self._copy(link, before, bound.arguments)
            returned = function(*args, **kwargs)
            behind = {
                key: source.of(returned) if isinstance(source, Result) else source
                for key, source in writes.items()
            }
            self._copy(link, behind, {**bound.arguments, "return": returned})
            return returned

        return recorded  # type: ignore[return-value]

    def watch(self, owner: Any, attribute: str, contract: Contract, **given: Any) -> None:
        """Put a recording `link` in the place of a function of a module, a class or an object, until the recording ends."""
        function = getattr(owner, attribute)
        own = vars(owner).get(attribute, None) if hasattr(owner, "__dict__") else None

        def undo() -> None:
            if own is None:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, own)

        setattr(owner, attribute, self.link(contract, function, **given))
        self._undo.append(undo)

    def unwatch(self) -> None:
        """Put the watched functions back."""
        while self._undo:
            self._undo.pop()()

    def save(self) -> None:
        """Write what was recorded. ValueError where nothing was."""
        if not self._links:
            raise ValueError(f"no link was recorded for {self.path}; call what is watched")
        tensors = {
            f"{link.name}.{key}": array
            for link in self._links
            for key, array in link.tensors.items()
        }
        links = [
            {"name": link.name, "contract": link.contract, "notes": link.notes}
            for link in self._links
        ]
        write(self.path, tensors, {"links": json.dumps(links)})

    def _begin(self, contract: str, name: str | None, notes: Mapping[str, Any]) -> _Link:
        if contract not in CONTRACTS:
            raise ValueError(f"contract is {contract!r}; give one of {', '.join(CONTRACTS)}")
        link = _Link(name or contract, contract, {key: _note(x) for key, x in notes.items()}, {})
        if any(one.name == link.name for one in self._links):
            raise ValueError(f"there are two links {link.name!r}; name them apart")
        self._links.append(link)
        return link

    def _copy(
        self, link: _Link, sources: Mapping[str, Source], arguments: Mapping[str, Any]
    ) -> None:
        for key, source in sources.items():
            what = f"{link.name}.{key}"
            value = _found(source, arguments, what)
            if value is None:
                continue
            if _is_number(value):
                link.notes[key] = _note(value)
            else:
                link.tensors[key] = to_array(value, what)


def _in_place(writes: Mapping[str, Source]) -> dict[str, Source]:
    """The arguments among what a call writes."""
    return {key: source for key, source in writes.items() if not isinstance(source, Result)}


def record_chain(path: str | os.PathLike[str]) -> ChainRecorder:
    """
    A recorder of one decode step, whose file `flashproof audit` judges link by link:

    ```python
    with flashproof.record_chain("step.safetensors") as chain:
        chain.watch(ops, "reshape_and_cache", "cache-write",
                    reads={"k": "key", "v": "value", "slot_mapping": "slot_mapping", "k_scale": "k_scale"},
                    writes={"key_cache": "key_cache", "value_cache": "value_cache"},
                    notes={"scale_rule": "given"})
        model.decode(step)
    ```
    """
    return ChainRecorder(path)


def audit_chain(path: str | os.PathLike[str], *options: str) -> Report:
    """
    Judge a recorded chain: each link by what it read, what one handed to another, and the end against the beginning.

    `options` are further words of `flashproof audit`. RequestError for what is no chain.
    """
    with temporary_folder() as folder:
        document = os.path.join(folder, "report.json")
        said = shared_server().run(["audit", os.fspath(path), "--json", document, *options]).stdout
        report = parse_report(read_report(document, "audit", options), said, None)
    words = ["python", "-m", "flashproof", "audit", os.fspath(path), *options]
    return replace(report, command=shlex.join(words))


def assert_chain(path: str | os.PathLike[str], *options: str) -> Report:
    """Assert that every link of a recorded chain is right; the arguments are those of `audit_chain`."""
    __tracebackhide__ = True
    return asserted(audit_chain(path, *options))
