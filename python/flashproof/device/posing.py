"""A problem as `audit` takes it, with sequences of their own lengths and pages perhaps, as one that the
device judges: names and shapes are those of docs/guide/problems.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .backward.problem import KernelGradients
from .features import Features, Run
from .problem import AttentionProblem, KernelOutputs

_LISTS = ("paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len")
_LENGTHS = (
    *("cu_seqlens_q", "cu_seqlens_k", "cu_seqlens", "seqused_q", "seqused_k", "leftpad_k"),
    *("block_table", *_LISTS),
)
_FACTORS = ("q_descale", "k_descale", "v_descale")
_TAKEN = {*_LENGTHS, *_FACTORS, "q_segments", "k_segments"}


class NotPosedError(ValueError):
    """A problem that is the command line's, with why in a clause."""


@dataclass(frozen=True)
class PosedProblem:
    """What is judged, [batch, heads, seqlen, dim], packed sequences one behind the other in one entry."""

    problem: AttentionProblem
    outputs: KernelOutputs
    gradients: KernelGradients | None
    unused_rows: int = 0
    """Rows of ``out`` that belong to no sequence, which are not judged."""

    @property
    def beside(self) -> str:
        """What is not judged, as a sentence; empty where there is nothing."""
        rows = self.unused_rows
        if rows == 0:
            return ""
        return (
            f" {rows} {'row belongs' if rows == 1 else 'rows belong'} to no sequence: not judged."
        )


def posed_problem(
    tensors: Mapping[str, Tensor],
    features: Mapping[str, Tensor],
    layout: str,
    score: AttentionProblem,
) -> PosedProblem:
    """The problem of ``q``, ``k``, ``v``, ``out`` and, where they are, ``lse`` and gradients, as they lie, and
    of further tensors by name; ``score`` has what becomes of q·k. Raises NotPosedError for what the
    device does not take.
    """
    others = sorted(set(features) - _TAKEN - {"mask", "bias", "alibi_slopes", "sink"})
    if others:
        raise NotPosedError(f"{' and '.join(others)} {'is' if len(others) == 1 else 'are'} given")
    found = dict(tensors)
    if any(name in features for name in _LENGTHS):
        found, features, runs = _packed(found, dict(features), layout)
    else:
        runs = None
        if any(x.dim() not in (3, 4) for name, x in found.items() if name != "lse"):
            raise NotPosedError("q, k, v or out has other axes than heads, seqlen and dim")
        if layout == "bshd":
            found = {name: x if name == "lse" else x.transpose(-3, -2) for name, x in found.items()}
    problem = replace(
        score, q=found["q"], k=found["k"], v=found["v"], features=_features(features, found, runs)
    )
    gradients = None
    if "dout" in found:
        gradients = KernelGradients(*(found.get(name) for name in ("dout", "dq", "dk", "dv")))
    outputs = KernelOutputs(found["out"], found.get("lse"))
    rows = tensors["out"].numel() - found["out"].numel()
    unused = rows // max(1, found["out"].shape[1] * found["out"].shape[-1])
    return PosedProblem(problem, outputs, gradients, unused)


def _features(
    given: Mapping[str, Tensor], tensors: Mapping[str, Tensor], runs: tuple[Run, ...] | None
) -> Features:
    segments = None
    if "q_segments" in given or "k_segments" in given:
        if "q_segments" not in given or "k_segments" not in given:
            raise NotPosedError("segments of queries or of keys alone are given")
        segments = given["q_segments"], given["k_segments"]
    q, k, v = (_factor(given.get(name), tensors[name[0]], runs, name) for name in _FACTORS)
    return Features(
        mask=given.get("mask"),
        bias=given.get("bias"),
        alibi_slopes=given.get("alibi_slopes"),
        sink=given.get("sink"),
        segments=segments,
        factors=(q, k, v),
        sequences=runs,
    )


def _factor(
    given: Tensor | None, x: Tensor, runs: tuple[Run, ...] | None, name: str
) -> Tensor | None:
    """A factor as [B or 1, heads or 1, rows or 1, 1]."""
    if given is None:
        return None
    given = given.to(x.device)
    if given.numel() == 1:
        return given.reshape(1, 1, 1, 1)
    if given.dim() == 1:
        given = given[None]
    if given.dim() != 2:
        raise NotPosedError(f"{name} has {given.dim()} dimensions")
    heads = x.shape[1]
    if given.shape[1] not in (1, heads) and heads % given.shape[1] == 0:
        # Of the head of K and V that a query head reads.
        given = given.repeat_interleave(heads // given.shape[1], 1)
    if given.shape[1] not in (1, heads):
        raise NotPosedError(f"{name} has shape {list(given.shape)}")
    if runs is None or given.shape[0] == 1:
        if given.shape[0] not in (1, x.shape[0]):
            raise NotPosedError(f"{name} has shape {list(given.shape)}")
        return given[:, :, None, None]
    if given.shape[0] != len(runs):
        raise NotPosedError(f"{name} has shape {list(given.shape)}")
    counts = torch.tensor([run[1 if name[0] == "q" else 3] for run in runs], device=x.device)
    return given.repeat_interleave(counts, 0).T[None, :, :, None]


@dataclass(frozen=True)
class _Rows:
    """The rows of one side that count, sequence by sequence, by their places among all that lie there."""

    places: Tensor
    lengths: list[int]
    starts: list[int]

    @property
    def firsts(self) -> list[int]:
        """Where each sequence begins among the rows that count."""
        found = [0]
        for length in self.lengths:
            found.append(found[-1] + length)
        return found[:-1]

    def taken(self, x: Tensor, *, heads_first: bool) -> Tensor:
        """[1, heads, rows, dim] of rows that lie as [rows, heads, dim], or with several axes of rows, or [batch, heads,
        rows, dim].
        """
        rows = x.transpose(1, 2) if heads_first and x.dim() == 4 else x
        rows = rows.reshape(-1, *rows.shape[-2:])
        if self.places.numel() > 0 and int(self.places.max()) >= rows.shape[0]:
            raise NotPosedError("lengths reach beyond the rows that there are")
        return rows[self.places].transpose(0, 1)[None]


def _integers(given: Mapping[str, Tensor], name: str) -> list[int]:
    """The whole numbers of a tensor [n]. Raises NotPosedError for what are none."""
    x = given[name]
    if x.dim() != 1 or x.dtype.is_floating_point or x.dtype == torch.bool:
        raise NotPosedError(f"{name} is no list of whole numbers")
    return [int(one) for one in x.tolist()]


def _bounds(given: Mapping[str, Tensor], name: str) -> list[int]:
    """Where sequences begin, and the last ends. Raises NotPosedError for what says no such thing."""
    bounds = _integers(given, name)
    if not bounds or bounds[0] != 0:
        raise NotPosedError(f"{name} does not begin at 0")
    return bounds


def _each(values: list[int], sequences: list[int], name: str) -> list[int]:
    """Values of each sequence. Raises NotPosedError for more or fewer of them."""
    if len(values) != len(sequences):
        raise NotPosedError(f"{name} has {len(values)} numbers, of {len(sequences)} sequences")
    return values


def _rows(starts: list[int], lengths: list[int], device: torch.device) -> _Rows:
    if any(length < 0 for length in lengths):
        raise NotPosedError("a length is below 0")
    if any(start < 0 for start in starts):
        raise NotPosedError("a sequence begins before the first row")
    count = torch.tensor(lengths, dtype=torch.int64, device=device)
    start = torch.tensor(starts, dtype=torch.int64, device=device)
    first = count.cumsum(0) - count
    own = torch.repeat_interleave(torch.arange(len(lengths), device=device), count)
    places = torch.arange(int(count.sum()), device=device) - first[own] + start[own]
    return _Rows(places, lengths, starts)


def _side(name: str, x: Tensor, given: Mapping[str, Tensor], *, heads_first: bool) -> _Rows:
    """The rows of q, or of k and v: packed, or padded."""
    if f"cu_seqlens_{name}" in given:
        if x.dim() != 3:
            raise NotPosedError(f"cu_seqlens_{name} is given, and {name} has {x.dim()} dimensions")
        bounds = _bounds(given, f"cu_seqlens_{name}")
        starts, lengths = bounds[:-1], [b - a for a, b in zip(bounds, bounds[1:])]
        capacity = lengths
    else:
        if x.dim() != 4:
            raise NotPosedError(f"{name} has {x.dim()} dimensions")
        slots = x.shape[2 if heads_first else 1]
        starts, lengths = [i * slots for i in range(x.shape[0])], [slots] * x.shape[0]
        capacity = lengths
    if (used := f"seqused_{name}") in given:
        lengths = _each(_integers(given, used), starts, used)
    if name == "k" and "leftpad_k" in given:
        before = _each(_integers(given, "leftpad_k"), starts, "leftpad_k")
        if any(count < 0 for count in before):
            raise NotPosedError("leftpad_k is below 0")
        starts = [a + b for a, b in zip(starts, before, strict=True)]
        lengths = [a - b for a, b in zip(lengths, before, strict=True)]
        capacity = [a - b for a, b in zip(capacity, before, strict=True)]
    if any(a > b for a, b in zip(lengths, capacity, strict=True)):
        raise NotPosedError("lengths reach beyond the rows that there are")
    return _rows(starts, lengths, x.device)


def _pages(k: Tensor, given: Mapping[str, Tensor]) -> _Rows:
    """The keys in pages [pages, page size, heads, dim]."""
    if k.dim() != 4:
        raise NotPosedError(f"pages are given, and k has {k.dim()} dimensions")
    size = k.shape[1]
    if "leftpad_k" in given or "cu_seqlens_k" in given:
        raise NotPosedError("pages are given beside other places of keys")
    if "block_table" in given:
        if "seqused_k" not in given:
            raise NotPosedError("block_table is given without seqused_k")
        lengths = _integers(given, "seqused_k")
        table = given["block_table"].to(k.device)
        if table.dim() != 2 or table.dtype.is_floating_point or table.shape[0] != len(lengths):
            raise NotPosedError(f"block_table has shape {list(table.shape)}")
        if any(length > table.shape[1] * size for length in lengths):
            raise NotPosedError("lengths reach beyond the pages that there are")
        firsts = [i * table.shape[1] for i in range(len(lengths))]
        pages = table.long().flatten()
    else:
        if any(name not in given for name in _LISTS):
            raise NotPosedError("lists of pages are not given together")
        bounds = _bounds(given, _LISTS[0])
        counts = [b - a for a, b in zip(bounds, bounds[1:])]
        last = _each(_integers(given, _LISTS[2]), counts, _LISTS[2])
        if any(not 0 < rest <= size for n, rest in zip(counts, last, strict=True) if n > 0):
            raise NotPosedError(f"{_LISTS[2]} is no number of keys of a page")
        lengths = [
            (n - 1) * size + rest if n > 0 else 0 for n, rest in zip(counts, last, strict=True)
        ]
        firsts = bounds[:-1]
        pages = torch.tensor(_integers(given, _LISTS[1]), device=k.device)
    rows = _rows([first * size for first in firsts], lengths, k.device)
    page, slot = rows.places // size, rows.places % size
    if page.numel() > 0 and int(page.max()) >= pages.numel():
        raise NotPosedError("lengths reach beyond the pages that there are")
    chosen = pages[page]
    if chosen.numel() > 0 and not 0 <= int(chosen.min()) <= int(chosen.max()) < k.shape[0]:
        raise NotPosedError("a page that a key needs is none")
    return replace(rows, places=chosen * size + slot)


def _packed(
    tensors: dict[str, Tensor], given: dict[str, Tensor], layout: str
) -> tuple[dict[str, Tensor], dict[str, Tensor], tuple[Run, ...]]:
    """Q, K, V and outputs, sequence by sequence; the further tensors without those that say where these
    are; and the sequences.
    """
    both = given.pop("cu_seqlens", None)
    if both is not None:
        given.setdefault("cu_seqlens_q", both)
        given.setdefault("cu_seqlens_k", both)
    heads_first = layout == "bhsd"
    q, k = tensors["q"], tensors["k"]
    of_q = _side("q", q, given, heads_first=heads_first)
    in_pages = any(name in given for name in ("block_table", *_LISTS))
    of_k = _pages(k, given) if in_pages else _side("k", k, given, heads_first=heads_first)
    if len(of_q.lengths) != len(of_k.lengths) or not of_q.lengths:
        raise NotPosedError("queries and keys have different numbers of sequences")
    if in_pages and any(name in tensors for name in ("dk", "dv")):
        raise NotPosedError("gradients of keys in pages are given")
    for name, x in tensors.items():
        like = k if name in ("k", "v", "dk", "dv") else q
        # Rows are taken of all by the places of q's, or of k's.
        if name != "lse" and x.shape[:-1] != like.shape[:-1]:
            raise NotPosedError(f"{name} has shape {list(x.shape)}")
    found = {}
    for name, x in tensors.items():
        if name == "lse":
            found[name] = _lse(x, of_q, q, heads_first=heads_first)
        elif name in ("k", "v", "dk", "dv"):
            found[name] = of_k.taken(x, heads_first=heads_first and not in_pages)
        else:
            found[name] = of_q.taken(x, heads_first=heads_first)
    runs = tuple(zip(of_q.firsts, of_q.lengths, of_k.firsts, of_k.lengths, strict=True))
    beside = {name: x for name, x in given.items() if name not in _LENGTHS}
    unfit = [name for name in ("mask", "bias", "q_segments", "k_segments") if name in beside]
    if unfit:
        raise NotPosedError(f"{unfit[0]} is given beside sequences of their own lengths")
    slopes = beside.get("alibi_slopes")
    if slopes is not None and slopes.dim() > 1:
        raise NotPosedError("alibi_slopes of sequences of their own lengths are given")
    return found, beside, runs


def _lse(x: Tensor, rows: _Rows, q: Tensor, *, heads_first: bool) -> Tensor:
    """[1, heads, rows] of an LSE that lies as FlashAttention gives it."""
    if q.dim() == 4:
        heads, slots = q.shape[1 if heads_first else 2], q.shape[2 if heads_first else 1]
        if tuple(x.shape) != (q.shape[0], heads, slots):
            raise NotPosedError(f"lse has shape {list(x.shape)}")
        return x.transpose(1, 2).reshape(-1, heads)[rows.places].T[None]
    total, heads = q.shape[:2]
    if tuple(x.shape) == (heads, total):
        return x[:, rows.places][None]
    if tuple(x.shape) == (total, heads):
        return x[rows.places].T[None]
    raise NotPosedError(f"lse has shape {list(x.shape)}")
