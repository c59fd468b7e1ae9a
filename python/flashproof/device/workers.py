"""Work on a CPU that several threads share: each makes whole blocks, by operations of one thread.

Threads that share an operation wait for one another at the end of each, and a verdict is made of thousands:
where other processes want the cores, each may wait for one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

import torch

Given = TypeVar("Given")
Made = TypeVar("Made")

_MOST_THREADS = 8
"""Python starts operations of one thread at a time, so that more would wait."""


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def made_of(
    device: torch.device, make: Callable[[Given], Made], given: Iterable[Given]
) -> list[Made]:
    """What ``make`` gives of each, in their order: on a CPU by as many threads as PyTorch uses there."""
    works = list(given)
    threads = min(len(works), torch.get_num_threads(), _MOST_THREADS)
    if device.type != "cpu" or threads == 1:
        return [make(work) for work in works]
    infers = torch.is_inference_mode_enabled()

    def make_there(work: Given) -> Made:
        # PyTorch's modes are those of a thread.
        with torch.inference_mode(infers):
            return make(work)

    with _one_thread(), ThreadPoolExecutor(threads) as pool:
        made = [pool.submit(copy_context().run, make_there, work) for work in works]
        return [one.result() for one in made]
