"""What is judged, in order: shapes that were announced, their neighbours, large ones, then the properties."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .budget import Budget
from .contract import KernelContract, Shape
from .large import is_large

#: Why a part is in the plan.
Kind = Literal["announced", "neighbour", "large", "drawn"]

#: Of a fixed shape: that it is right, on several problems in the same memory, and gives the same bits again.
SHAPE_PROPERTIES = ("within-bound", "determinism")
GRADIENT_PROPERTIES = ("gradients-within-bound",)

#: The fewest keys of the large problems.
_MANY_KEYS = 2048
#: The shape that is tried where none is announced.
_USUAL = Shape(queries=33, keys=49, dim=16)


@dataclass(frozen=True)
class Part:
    """Problems of one kind that are judged together."""

    kind: Kind
    #: In words, as in "on 1×1 heads, …".
    words: str
    properties: tuple[str, ...] | None
    runs: int
    promises: Mapping[str, Any] = field(default_factory=dict)
    shape: Shape | None = None

    @property
    def is_large(self) -> bool:
        """Whether its problems are drawn by the judge, and their rows not all judged on the CPU."""
        return is_large(self.shape)


def plan(contract: KernelContract, budget: Budget, seed: int) -> list[Part]:
    """The parts of a judgement. The same seed draws the same shapes."""
    drawn = Part("drawn", "on problems of the contract", contract.properties, budget.problems)
    if contract.kind == "recurrent":
        return [drawn]
    chance = random.Random(f"shapes {seed}")
    shapes = list(_shapes(contract, chance))
    parts = [_part(kind, _with_keys(shape, contract), contract, budget) for kind, shape in shapes]
    # A property makes problems of other sizes of one, which a kernel of as many queries as keys does not take.
    return parts if contract.square else [*parts, drawn]


def _shapes(contract: KernelContract, chance: random.Random) -> Iterator[tuple[Kind, Shape]]:
    announced = contract.shapes or (_usual(contract),)
    for shape in announced:
        yield "announced", shape
    for shape in announced:
        for _ in range(3 if contract.square and not is_large(shape) else 1):
            yield "neighbour", _neighbour(shape, contract, chance)
    if contract.largest is not None:
        yield "large", contract.largest
        return
    base = max(announced, key=lambda shape: shape.keys)
    heads, kv_heads = _heads(contract)
    one = replace(base, batch=1, heads=heads, kv_heads=kv_heads)
    if contract.square:
        size = _fit("keys", max(512, 2 * base.keys), contract)
        yield "large", replace(one, queries=size, keys=size)
        return
    keys = _fit("keys", max(_MANY_KEYS, 2 * base.keys) + chance.randrange(1, 64), contract)
    yield (
        "large",
        replace(one, queries=_fit("queries", chance.randrange(1, 9), contract), keys=keys),
    )
    queries = _fit(
        "queries", max(_MANY_KEYS // 2, 2 * base.queries) + chance.randrange(1, 64), contract
    )
    yield (
        "large",
        replace(one, queries=queries, keys=_fit("keys", chance.randrange(33, 65), contract)),
    )


def _usual(contract: KernelContract) -> Shape:
    dims = contract.promises.get("dims") or [_USUAL.dim]
    keys = _fit("keys", _USUAL.keys, contract)
    queries = keys if contract.square else _fit("queries", _USUAL.queries, contract)
    heads, kv_heads = _heads(contract)
    return Shape(queries, keys, dims[0], heads=heads, kv_heads=kv_heads)


def _heads(contract: KernelContract) -> tuple[int, int | None]:
    """The fewest query heads that the contract has, and the heads of K and V where these are fewer."""
    (group, *_) = contract.promises.get("groupSizes") or [1]
    kv_heads = _fit("kvHeads", 1, contract)
    return kv_heads * group, None if group == 1 else kv_heads


def _neighbour(shape: Shape, contract: KernelContract, chance: random.Random) -> Shape:
    """A shape near another: a few rows more or fewer, as no table of tested shapes has it."""

    def near(name: str, size: int) -> int:
        steps = [step for step in range(-9, 10) if step and size + step > 0]
        return _fit(name, size + chance.choice(steps), contract)

    keys = near("keys", shape.keys)
    return replace(
        shape, keys=keys, queries=keys if contract.square else near("queries", shape.queries)
    )


def _fit(name: str, size: int, contract: KernelContract) -> int:
    """The nearest size that the contract has."""
    multiple = (contract.promises.get("multiples") or {}).get(name, 1)
    limits = (contract.promises.get("sizes") or {}).get(name, {})
    aligned = max(1, round(size / multiple)) * multiple
    return int(min(max(aligned, limits.get("min", 1)), limits.get("max", aligned)))


def _with_keys(shape: Shape, contract: KernelContract) -> Shape:
    """The shape with as many keys as queries at least, where a query without keys is none of the contract's."""
    promises = contract.promises
    if promises.get("causal") != "only" or promises.get("emptyRows", True):
        return shape
    return replace(shape, keys=max(shape.keys, shape.queries))


def _part(kind: Kind, shape: Shape, contract: KernelContract, budget: Budget) -> Part:
    properties: tuple[str, ...] = SHAPE_PROPERTIES
    if contract.promises.get("gradients"):
        properties += GRADIENT_PROPERTIES
    promises: dict[str, Any] = {"sizes": shape.promises()["sizes"], "multiples": {}}
    if shape.v_dim in (None, shape.dim):
        promises["dims"] = [shape.dim]
    few = 1 if is_large(shape) and kind != "announced" else 2
    runs = min(few, budget.problems) if kind == "large" or is_large(shape) else budget.problems
    return Part(kind, f"on {shape}", properties, runs, promises, shape)
