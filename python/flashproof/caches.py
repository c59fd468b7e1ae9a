"""Judging what a kernel wrote into a cache of keys and values: `audit_cache_write`, `assert_cache_write`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from .arguments import check_names, option_words
from .dump import gather
from .report import Report
from .request import Request, asserted

if TYPE_CHECKING:
    from typing_extensions import Unpack

_BUFFERS = ("key_cache", "value_cache", "kv_cache", "k_scale", "v_scale", "kv_c_scale")

#: Tensors of a write besides the new tokens.
_TENSORS = (
    *_BUFFERS,
    *(f"{name}_before" for name in _BUFFERS),
    *("block_table", "positions", "token_sequences", "cu_seqlens_q"),
    *("rope_cos", "rope_sin", "k_norm_gain"),
)

#: Factors that may be numbers.
_NUMBERS = ("k_scale", "v_scale", "kv_c_scale")


class CacheWriteArguments(TypedDict, total=False):
    """What a write into a cache is besides its new tokens and their slots."""

    kv_c: Any
    k_pe: Any
    key_cache: Any
    value_cache: Any
    kv_cache: Any
    k_scale: Any
    v_scale: Any
    kv_c_scale: Any
    key_cache_before: Any
    value_cache_before: Any
    kv_cache_before: Any
    k_scale_before: Any
    v_scale_before: Any
    kv_c_scale_before: Any
    block_table: Any
    positions: Any
    token_sequences: Any
    cu_seqlens_q: Any
    rope_cos: Any
    rope_sin: Any
    k_norm_gain: Any
    settings: Mapping[str, Any] | None
    options: Sequence[str] | None


class KeptCacheWriteArguments(CacheWriteArguments, total=False):
    """The same, with where the write is kept."""

    keep: str | os.PathLike[str] | None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _metadata(given: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a write as a file's metadata. TypeError for settings that are no mapping."""
    settings = given.get("settings") or {}
    if not isinstance(settings, Mapping):
        raise TypeError(f"settings is {settings!r}; give a mapping, as {{'scale_rule': 'amax'}}")
    numbers = {name: given[name] for name in _NUMBERS if _is_number(given.get(name))}
    words = {name: str(value) for name, value in {**settings, **numbers}.items()}
    return {"contract": "cache-write", **words}


def _request(
    tokens: Mapping[str, Any], given: Mapping[str, Any], function: str, described: type
) -> Request:
    """The request of new tokens, slots and caches; TypeError and ValueError for what is none of these."""
    check_names(function, given, described)
    beside = {name: given.get(name) for name in ("kv_c", "k_pe", *_TENSORS)}
    tensors = {name: x for name, x in {**tokens, **beside}.items() if not _is_number(x)}
    options = option_words(given.get("options"), has_kernel=True)
    return Request(gather(tensors), _metadata(given), [], options, kind="cache-write")


def audit_cache_write(
    k: Any = None,
    v: Any = None,
    slot_mapping: Any = None,
    **given: Unpack[KeptCacheWriteArguments],
) -> Report:
    """
    Judge what a kernel wrote into a cache: each stored number and factor, its slot, and that nothing else was written.

    Arrays are of NumPy, PyTorch, JAX or CuPy. `k` and `v` are the new tokens, [tokens, heads, columns], `slot_mapping` has the slot of
    each (-1 for none), and the caches are given as they are after the write, in the layout that their kernel has.

    - The cache: `key_cache` and `value_cache`, or both in `kv_cache`; of latent attention `kv_c` and `k_pe` with `kv_cache`.
      `k_scale`, `v_scale`: factors that were written, or numbers that were given. Each with `_before` as it was before the write:
      without, it is not judged whether anything else was written.
    - The slots: `slot_mapping`, and `block_table` with `positions`, and `token_sequences` or `cu_seqlens_q`, to hold them against.
    - What is done to K before: `rope_cos` and `rope_sin` by `positions`, `k_norm_gain`.
    - `settings`, the names and values of the contract's notes: `{"scale_rule": "amax", "scale_layout": "128x4"}`.

    `options` are further words of `flashproof audit`. With `keep` the file of the write is kept there. Returns the report.
    RequestError for what cannot be judged, with one line that says why.
    """
    tokens = {"k": k, "v": v, "slot_mapping": slot_mapping}
    keep = given.pop("keep", None)
    request = _request(tokens, given, "audit_cache_write", CacheWriteArguments)
    return request.report_and_keep(keep)


def assert_cache_write(
    k: Any = None,
    v: Any = None,
    slot_mapping: Any = None,
    **given: Unpack[CacheWriteArguments],
) -> Report:
    """
    Assert that a kernel wrote into a cache what it had to, where it had to, and nothing else.

    The arguments are those of `audit_cache_write`. Where something is wrong the write is kept in `flashproof-failures`, and the
    AssertionError says what is wrong, and the command that gives the report again. Returns the report of a write that passes.
    """
    __tracebackhide__ = True
    tokens = {"k": k, "v": v, "slot_mapping": slot_mapping}
    request = _request(tokens, given, "assert_cache_write", CacheWriteArguments)
    return asserted(request.report_or_keep())
