"""What FlashAttention-4 means by a window, which its predecessors do not."""

from __future__ import annotations

from ..problem import NotJudgedError
from .arguments import Given, Words


def read_window(words: Words) -> None:
    """
    Put a window in its place: None is no end there, and a number below 0 is an end all the same.

    Ends that leave no key between them are no window, as (−1, −1) is. NotJudgedError for an end on the other side of the query, which
    no problem has. Facts: `flash_attn.cute.interface` of 2026.
    """
    given = words.get("window")
    if given is None:
        return
    left, right = given.value
    if "causal" in words and words["causal"].value:
        right = 0
    if left is not None and right is not None and left + right < 0:
        left, right = None, None
    if any(one is not None and one < 0 for one in (left, right)):
        raise NotJudgedError(f"window_size is {tuple(given.value)}: it ends before the query")
    words["window"] = Given((left, right), given.argument)
