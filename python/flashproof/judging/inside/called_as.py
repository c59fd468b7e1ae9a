"""Candidates of benchmarks, called as their benchmark calls them: `called_as`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: A candidate as the process protocol's host calls it.
Called = Callable[..., Any]


def called_as(form: Mapping[str, Any], entry: Any) -> Called:
    """What a candidate's file has by its name, as `kernel(q, k, v, *, scale, causal, …)`."""
    return _FORMS[form["name"]](entry, form)


def _kernel(entry: Any, form: Mapping[str, Any]) -> Called:
    del form
    return entry  # type: ignore[no-any-return]


def _kernelbench(entry: Any, form: Mapping[str, Any]) -> Called:
    """`ModelNew(*init_inputs)`, called with Q, K and V by position."""
    model = entry(*form["init_inputs"])
    if form["device"] != "cpu":
        model = model.to(form["device"])

    def kernel(q: Any, k: Any, v: Any, **_: Any) -> Any:
        return model(q, k, v)

    return kernel


def _gpu_mode(entry: Any, form: Mapping[str, Any]) -> Called:
    """`custom_kernel(data)`, with a tuple of tensors in the order of the task."""
    order: Sequence[str] = form["data"]

    def kernel(**given: Any) -> Any:
        return entry(tuple(given[name] for name in order))

    return kernel


def _backendbench(entry: Any, form: Mapping[str, Any]) -> Called:
    """The arguments of aten's scaled_dot_product_attention; what its causal flag does not say, a mask says."""
    del form

    def kernel(q: Any, k: Any, v: Any, *, scale: float, causal: bool, window: Any, **_: Any) -> Any:
        queries, keys = q.shape[-2], k.shape[-2]
        mask, is_causal = None, causal and window is None and queries == keys
        if (causal or window is not None) and not is_causal:
            mask = _mask(q, keys, causal, window)
        return entry(
            q,
            k,
            v,
            attn_mask=mask,
            dropout_p=0.0,
            is_causal=is_causal,
            scale=scale,
            enable_gqa=q.shape[1] != k.shape[1],
        )

    return kernel


def _mask(like: Any, keys: int, causal: bool, window: Sequence[int] | None) -> Any:
    """True where a key is seen, [queries, keys], aligned to the last query and the last key."""
    left, right = (-1, -1) if window is None else window
    right = 0 if causal else right
    queries = like.shape[-2]
    if hasattr(like, "untyped_storage"):
        import torch as library

        rows = library.arange(queries, device=like.device)[:, None] + keys - queries
        columns = library.arange(keys, device=like.device)[None, :]
    else:
        import numpy as library

        rows = library.arange(queries)[:, None] + keys - queries
        columns = library.arange(keys)[None, :]
    seen = (rows == rows) & (columns == columns)
    if left >= 0:
        seen &= columns >= rows - left
    if right >= 0:
        seen &= columns <= rows + right
    return seen


def _flashinfer_bench(entry: Any, form: Mapping[str, Any]) -> Called:
    """`run(*inputs)`, with outputs behind them where they are given: rows packed, LSEs in base 2."""

    def kernel(q: Any, k: Any, v: Any, *, scale: float, **_: Any) -> Any:
        batch, heads, queries, _dim = q.shape
        keys = k.shape[2]
        packed = {name: _packed(value) for name, value in {"q": q, "k": k, "v": v}.items()}
        ends = {"qo_indptr": _ends(q, batch, queries), "kv_indptr": _ends(q, batch, keys)}
        # Pages of one token each, one behind the other.
        caches = {f"{name}_cache": packed[name][:, None] for name in ("k", "v")}
        last = _ends(q, batch, 0) + 1
        pages = {"kv_indices": _ends(q, batch * keys, 1)[:-1], "kv_last_page_len": last[:-1]}
        inputs = {**packed, **caches, **ends, **pages, "sm_scale": scale}
        given = [inputs[name] for name in form["inputs"]]
        if form["is_destination_passing"]:
            out = _never_written(packed["q"], (batch * queries, heads, v.shape[-1]), None)
            lse = _never_written(packed["q"], (batch * queries, heads), "float32")
            results = [out, lse][: len(form["outputs"])]
            entry(*given, *results)
        else:
            made = entry(*given)
            results = (
                [made[name] for name in form["outputs"]] if isinstance(made, Mapping) else made
            )
            results = list(results) if isinstance(results, (tuple, list)) else [results]
        found = [_unpacked(results[0], batch, queries)]
        if len(results) > 1:
            # log₂ e^LSE, [rows, heads].
            found.append(_unpacked(results[1][..., None], batch, queries)[..., 0] * _LN2)
        return tuple(found)

    return kernel


_LN2 = 0.6931471805599453


def _packed(value: Any) -> Any:
    """[batch, heads, rows, dim] as [batch · rows, heads, dim], in memory of its own."""
    batch, heads, rows, dim = value.shape
    swapped = value.swapaxes(1, 2)
    whole = swapped.contiguous() if hasattr(swapped, "contiguous") else swapped.copy()
    return whole.reshape(batch * rows, heads, dim)


def _unpacked(value: Any, batch: int, rows: int) -> Any:
    """[batch · rows, heads, dim] as [batch, heads, rows, dim]."""
    return value.reshape(batch, rows, *value.shape[1:]).swapaxes(1, 2)


def _ends(like: Any, count: int, step: int) -> Any:
    """0, step, …, count · step in int32, where `like` lies."""
    if hasattr(like, "untyped_storage"):
        import torch

        return torch.arange(count + 1, dtype=torch.int32, device=like.device) * step
    import numpy

    return numpy.arange(count + 1, dtype=numpy.int32) * numpy.int32(step)


def _never_written(like: Any, shape: tuple[int, ...], dtype: str | None) -> Any:
    """An output full of NaN."""
    if hasattr(like, "untyped_storage"):
        import torch

        kind = like.dtype if dtype is None else getattr(torch, dtype)
        return torch.full(shape, float("nan"), dtype=kind, device=like.device)
    import numpy

    return numpy.full(shape, numpy.nan, dtype=like.dtype if dtype is None else dtype)


_FORMS: Mapping[str, Callable[[Any, Mapping[str, Any]], Called]] = {
    "kernel": _kernel,
    "kernelbench": _kernelbench,
    "gpu-mode": _gpu_mode,
    "backendbench": _backendbench,
    "flashinfer-bench": _flashinfer_bench,
}
