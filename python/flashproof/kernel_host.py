"""A kernel of this process that answers the process protocol: `KernelHost`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from .arrays import Framework, from_array, to_array
from .safetensors import Array, read, write
from .wording import misfit, taken_names

#: Whose laws are tried: softmax attention's, or those of a recurrence.
Contract = Literal["attention", "recurrent"]

#: The names of what a kernel returns as a tuple, by contract.
RESULTS: Mapping[Contract, tuple[str, str]] = {
    "attention": ("out", "lse"),
    "recurrent": ("out", "final_state"),
}

#: The values of arguments that change nothing: a kernel that does not take the argument is called without.
_NEUTRAL = {"causal": False, "window": None, "softcap": None, "normalisation": None}


def promised_arguments(contract: Contract, promises: Mapping[str, Any]) -> list[str]:
    """The arguments that a kernel has to take, by what it promises; docs/reference/properties.md has what it promises by default."""
    if contract == "recurrent":
        return ["q", "k", "v"]
    is_promised = {
        "scale": promises.get("scales") != ["default"],
        "causal": promises.get("causal", True) is True,
        "window": promises.get("window", True),
        "softcap": promises.get("softcap", False),
    }
    return ["q", "k", "v", *(name for name, is_one in is_promised.items() if is_one)]


#: A kernel: `kernel(q, k, v, *, scale, causal, window, softcap, **features)` gives the output, or the output and the LSE. A recurrence:
#: `kernel(q, k, v, *, family, scale, normalisation, **features)` gives the output, or the output and the final state.
Kernel = Callable[..., Any]


class Declined(Exception):
    """A kernel raises it for a problem that it does not take; NotImplementedError does as well."""


class Host(Protocol):
    """What answers the process protocol."""

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry a request of the process protocol out; the answer to it."""


@dataclass(frozen=True)
class KernelHost:
    """Runs a kernel on problems that come as files."""

    kernel: Kernel
    backward: Callable[..., Any] | None
    framework: Framework
    contract: Contract = "attention"
    #: Makes the array that the kernel gets of a tensor's name and elements; None for a new one each time.
    place: Callable[[str, Array], Any] | None = None
    #: Whether a kernel that cannot be called with the arguments of a problem is called no more: `misfits` says why then.
    stops_at_misfit: bool = False
    misfits: list[str] = field(default_factory=list)
    #: Arguments with the value that every problem of its promises has: `{"causal": True}` of a kernel that is causal only.
    implied: Mapping[str, Any] = field(default_factory=dict)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry a request of the process protocol out; the answer to it. Never raises what the kernel raises."""
        try:
            if self.misfits:
                raise TypeError(self.misfits[0])
            write(request["output"], self.run(request))
        except (Declined, NotImplementedError) as error:
            return {
                "id": request["id"],
                "ok": False,
                "unsupported": True,
                "error": str(error) or "it declines",
            }
        except Exception as error:
            return {"id": request["id"], "ok": False, "error": f"{type(error).__name__}: {error}"}
        return {"id": request["id"], "ok": True}

    def run(self, request: Mapping[str, Any]) -> dict[str, Array]:
        """The tensors that a request wants, of the file that it names."""
        return self.run_on(read(request["problem"])[0], request)

    def run_on(self, stored: Mapping[str, Array], request: Mapping[str, Any]) -> dict[str, Array]:
        """The tensors that a request wants of a problem's tensors."""
        tensors = {name: self._placed(name, ranked(name, stored)) for name in stored}
        beside = {
            key: value
            for key, value in request.items()
            if key not in ("id", "problem", "output", "wants", "contract")
        }
        # A gradient is named by d and the tensor that it is of.
        wanted = [name[1:] for name in request.get("wants", ()) if name[1:] in tensors]
        results = RESULTS[self.contract]
        # What is differentiated, and by what: dO for O, and dS for the final state.
        seeds = {name: tensors.pop(f"d{name}", None) for name in results}
        if "final_state" in tensors:
            raise ValueError("a problem has no final state")
        given = self._taken_of(self.kernel, tensors, beside)
        self._require_fit(self.kernel, {**tensors, **given})
        if self.backward is not None and wanted:
            return self._by_backward(tensors, beside, seeds)
        beside = given
        if not wanted:
            return _named(self.kernel(**tensors, **beside), results)
        if self.framework == "torch":
            return self._by_autograd(tensors, beside, seeds, wanted)
        if self.framework == "jax":
            return self._by_vjp(tensors, beside, seeds, wanted)
        raise NotImplementedError(
            "gradients of a NumPy kernel: give backward=, which returns dq, dk and dv"
        )

    def _taken_of(
        self, function: Callable[..., Any], tensors: Mapping[str, Any], beside: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The settings that a function is called with: all but those that it does not take, and that change nothing for it."""
        found = taken_names(function)
        if found is None or found[1]:
            return dict(beside)

        def is_usual(name: str, value: Any) -> bool:
            if name == "scale" and "q" in tensors and value is not None:
                return math.isclose(value, tensors["q"].shape[-1] ** -0.5, rel_tol=1e-6)
            return any(name in of and value == of[name] for of in (self.implied, _NEUTRAL))

        return {
            name: value
            for name, value in beside.items()
            if name in found[0] or not is_usual(name, value)
        }

    def _by_backward(
        self, tensors: dict[str, Any], beside: Mapping[str, Any], seeds: Mapping[str, Any]
    ) -> dict[str, Array]:
        """Results and the gradients that `backward` gives for them."""
        assert self.backward is not None
        made = self.kernel(**tensors, **self._taken_of(self.kernel, tensors, beside))
        given = {f"d{name}": seed for name, seed in seeds.items() if seed is not None}
        given |= {**tensors, **self._taken_of(self.backward, tensors, beside)}
        self._require_fit(self.backward, given)
        grads = _named(self.backward(**given), ("dq", "dk", "dv"))
        return {**_named(made, RESULTS[self.contract]), **grads}

    def _require_fit(self, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
        reason = misfit(function, given) if self.stops_at_misfit else None
        if reason is not None:
            self.misfits.append(reason)
            raise TypeError(reason)

    def _placed(self, name: str, array: Array) -> Any:
        return from_array(array, self.framework) if self.place is None else self.place(name, array)

    def _by_autograd(
        self,
        tensors: dict[str, Any],
        beside: dict[str, Any],
        seeds: Mapping[str, Any],
        wanted: Sequence[str],
    ) -> dict[str, Array]:
        import torch

        leaves = {name: tensors[name].requires_grad_() for name in wanted}
        made = self.kernel(**tensors, **beside)
        of = _results(made, tuple(seeds))
        pairs = [
            (of[name], seed.to(of[name].dtype).reshape(of[name].shape))
            for name, seed in seeds.items()
            if seed is not None
        ]
        # A tensor that no result depends on has a gradient of zeros.
        grads = torch.autograd.grad(
            [result for result, _ in pairs],
            list(leaves.values()),
            [seed for _, seed in pairs],
            allow_unused=True,
            materialize_grads=True,
        )
        found = _named(made, tuple(seeds))
        for name, grad in zip(leaves, grads):
            found[f"d{name}"] = to_array(grad, f"d{name}")
        return found

    def _by_vjp(
        self,
        tensors: dict[str, Any],
        beside: dict[str, Any],
        seeds: Mapping[str, Any],
        wanted: Sequence[str],
    ) -> dict[str, Array]:
        import jax

        given = [name for name, seed in seeds.items() if seed is not None]

        def output(*leaves: Any) -> tuple[Any, Any]:
            made = self.kernel(**{**tensors, **dict(zip(wanted, leaves))}, **beside)
            of = _results(made, tuple(seeds))
            return [of[name] for name in given], made

        of, pull, made = jax.vjp(output, *(tensors[name] for name in wanted), has_aux=True)
        found = _named(made, tuple(seeds))
        into = [seeds[name].astype(one.dtype).reshape(one.shape) for name, one in zip(given, of)]
        for name, grad in zip(wanted, pull(into)):
            found[f"d{name}"] = to_array(grad, f"d{name}")
        return found


def ranked(name: str, stored: Mapping[str, Array]) -> Array:
    """A tensor of a problem: Q, K, V and dO with a batch, which a file may leave out; packed sequences have none: [total, heads, dim]."""
    array = stored[name]
    side = "k" if name in ("k", "v") else "q"
    is_packed = f"cu_seqlens_{side}" in stored or "cu_seqlens" in stored
    if name in ("q", "k", "v", "dout") and len(array.shape) == 3 and not is_packed:
        return Array(array.dtype, (1, *array.shape), array.data)
    return array


def _results(made: Any, names: Sequence[str]) -> dict[str, Any]:
    """What a kernel returns: the first of `names`, a tuple of them in their order, or a mapping by name."""
    if isinstance(made, Mapping):
        return dict(made)
    return dict(zip(names, made if isinstance(made, (tuple, list)) else (made,)))


def _named(made: Any, names: Sequence[str]) -> dict[str, Array]:
    """What a kernel returns, as arrays; what is None is left out."""
    return {
        name: to_array(value, name)
        for name, value in _results(made, names).items()
        if value is not None
    }
