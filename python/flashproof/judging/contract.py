"""What a kernel has to compute, and how it is judged: `KernelContract`. The one who judges writes it; the candidate has no say."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Union

from ..arrays import Framework
from ..dump import Premises
from ..kernel_host import RESULTS, Contract

#: How a contract may be given: a mapping, a file of JSON, or None for attention in fp32 of NumPy.
ContractLike = Union["KernelContract", Mapping[str, Any], str, "os.PathLike[str]", None]


@dataclass(frozen=True)
class Shape:
    """The sizes of one problem of attention."""

    queries: int
    keys: int
    dim: int
    batch: int = 1
    heads: int = 1
    #: Heads of K and V; None for as many as of Q.
    kv_heads: int | None = None
    #: The head dimension of V; None for that of Q and K.
    v_dim: int | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"shape {one.name} is {value!r}; give a whole number from 1")
        if self.heads % (self.kv_heads or self.heads):
            raise ValueError(
                f"shape heads is {self.heads}; give a multiple of kv_heads, {self.kv_heads}"
            )

    def __str__(self) -> str:
        sizes = [f"{self.queries} queries × {self.keys} keys"]
        sizes.append(
            f"dim {self.dim}" if self.v_dim is None else f"dims {self.dim} and {self.v_dim}"
        )
        if self.heads > 1:
            sizes.append(f"{self.heads} heads" + (f" on {self.kv_heads}" if self.kv_heads else ""))
        if self.batch > 1:
            sizes.append(f"batch {self.batch}")
        return ", ".join(sizes)

    def promises(self) -> dict[str, Any]:
        """The promises that leave these sizes alone."""
        kv_heads = self.kv_heads or self.heads
        sizes = {
            "batch": self.batch,
            "kvHeads": kv_heads,
            "groupSize": self.heads // kv_heads,
            "queries": self.queries,
            "keys": self.keys,
            "qkDim": self.dim,
            "vDim": self.v_dim or self.dim,
        }
        return {"sizes": {name: {"min": size, "max": size} for name, size in sizes.items()}}


@dataclass(frozen=True)
class KernelContract:
    """What a kernel has to compute, and how."""

    kind: Contract = "attention"
    #: The library of the arrays that it is called with, and the device that they lie on: "cpu" or "cuda".
    framework: Framework = "numpy"
    device: str = "cpu"
    #: Shapes that are announced to who writes the kernel, of attention.
    shapes: tuple[Shape, ...] = ()
    #: Whether there are as many queries as keys in every problem.
    square: bool = False
    #: The largest problem that is tried; None for twice the announced keys, and 2048 keys at least.
    largest: Shape | None = None
    #: How the kernel may compute, of attention; None as any correct one does.
    premises: Premises | None = None
    #: "returned", or "preallocated" where the kernel writes to `out=`.
    output: str = "returned"
    #: The function that gives dQ, dK and dV, `file.py::name`, where neither autograd does.
    backward: str | None = None
    #: The properties to try; None for all that a kernel of these promises has.
    properties: tuple[str, ...] | None = None
    #: The promises of docs/reference/properties.md, as `formats`, `dims`, `causal`, `gradients`.
    promises: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in RESULTS:
            raise ValueError(f"contract is {self.kind!r}; give one of {', '.join(RESULTS)}")
        if self.framework not in ("numpy", "torch"):
            raise ValueError(f"framework is {self.framework!r}; give numpy or torch")
        if self.device != "cpu" and self.framework != "torch":
            raise ValueError(
                f"device is {self.device!r}, which {self.framework} has not; give framework torch"
            )
        if self.output not in ("returned", "preallocated"):
            raise ValueError(f"output is {self.output!r}; give returned or preallocated")
        if self.kind == "recurrent" and (
            self.shapes or self.largest or self.square or self.premises
        ):
            raise ValueError(
                "shapes, largest, square and premises are of attention; give a recurrence promises, as dims and declared"
            )

    @staticmethod
    def of(given: ContractLike, limits: Mapping[str, Any] | None = None) -> KernelContract:
        """
        The contract that is given; what is none of its own words is a promise. `limits` are a benchmark's form's: they hold where
        the contract, unless it is a `KernelContract`, says nothing. ValueError with what to give.
        """
        if isinstance(given, KernelContract):
            return given
        document = {} if given is None else given if isinstance(given, Mapping) else _read(given)
        return _parse({**(limits or {}), **document})


def _read(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    try:
        document = json.loads(Path(path).read_text())
    except OSError as error:
        raise ValueError(f"{os.fspath(path)}: {error.strerror}; give a contract's file") from None
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}; give JSON") from None
    if not isinstance(document, Mapping):
        raise ValueError(f"{os.fspath(path)}: not an object; give a contract")
    return document


_OWN = tuple(one.name for one in fields(KernelContract) if one.name not in ("promises", "kind"))


def _parse(given: Mapping[str, Any]) -> KernelContract:
    own = {name: given[name] for name in _OWN if name in given}
    promises = {name: value for name, value in given.items() if name not in (*_OWN, "contract")}
    if given.get("contract", "attention") == "attention":
        promises.setdefault("formats", ["fp32"])
    if "shapes" in own:
        own["shapes"] = tuple(_shape(one) for one in own["shapes"])
    if own.get("largest") is not None:
        own["largest"] = _shape(own["largest"])
    if own.get("properties") is not None:
        own["properties"] = tuple(own["properties"])
    return KernelContract(kind=given.get("contract", "attention"), promises=promises, **own)


def _shape(given: Any) -> Shape:
    if isinstance(given, Shape):
        return given
    names = [one.name for one in fields(Shape)]
    if (
        not isinstance(given, Mapping)
        or set(given) - set(names)
        or not {"queries", "keys", "dim"} <= set(given)
    ):
        raise ValueError(
            f"shape is {given!r}; give queries, keys, dim, and any of {', '.join(names[3:])}"
        )
    return Shape(**given)
