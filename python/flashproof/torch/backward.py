"""What a backward pass brings to a call's outputs, and what it gives for the call's inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


def is_within_transform() -> bool:
    """Whether torch.func transforms what is called now: tensors are then no arrays of numbers."""
    functorch = getattr(torch._C, "_functorch", None)
    return functorch is not None and functorch.peek_interpreter_stack() is not None


@dataclass
class Backward:
    """
    The first backward pass through a call: the gradients of its outputs and those that it gives for inputs, by their names.

    Hooks look at gradients and leave them as they are. `on_end`, where it is given, is called once, as the first pass ends, and
    gradients are not kept beyond it.
    """

    #: Passes that came through.
    runs: int = 0
    #: Of outputs, as the pass brings them.
    given: dict[str, Tensor] = field(default_factory=dict)
    #: Of inputs, as the call gives them.
    found: dict[str, Tensor] = field(default_factory=dict)
    on_end: Callable[[], None] | None = None
    _is_running: bool = False

    def watch_input(self, name: str, x: Tensor) -> Tensor:
        """The same tensor, with a node of this call's own, through which its gradient passes alone."""
        view = x.view_as(x)

        def take(grads: tuple[Tensor | None, ...]) -> None:
            if self._is_first and grads[0] is not None:
                self.found[name] = grads[0].detach().clone()

        _node(view).register_prehook(take)
        return view

    def watch_output(self, name: str, out: Tensor) -> None:
        """Meet the gradient of an output as the backward pass of this call gets it."""
        place = out.output_nr

        def take(grads: tuple[Tensor | None, ...]) -> None:
            grad = grads[place]
            if grad is None:
                return
            if not self._is_running:
                self._begin()
            if self._is_first:
                self.given[name] = grad.detach().clone()

        _node(out).register_prehook(take)

    @property
    def _is_first(self) -> bool:
        return self._is_running and self.runs == 1

    def _begin(self) -> None:
        self.runs += 1
        self._is_running = True
        # What PyTorch's own data-parallel modules learn the end of a pass by.
        torch.autograd.Variable._execution_engine.queue_callback(self._end)

    def _end(self) -> None:
        self._is_running = False
        if self.runs == 1 and self.on_end is not None:
            self.on_end()
            # Hooks live as long as the graph does.
            self.given.clear()
            self.found.clear()


def _node(x: Tensor) -> Any:
    return x.grad_fn
