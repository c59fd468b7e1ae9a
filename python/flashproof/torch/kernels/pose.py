"""What a call of a kernel asks for, and what it gave, as a problem of `audit`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...arguments import ScoreArguments
from ..problem import NotJudgedError, check_tensor
from .arguments import Given, Take, Words, is_tensor, number_word, same
from .kernel_problem import KernelProblem, mask_from_first
from .row import Row

#: Words that are tensors of `audit` by the same names.
_FEATURES = (
    *("mask", "bias", "alibi_slopes", "sink"),
    *("cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k", "leftpad_k", "block_table"),
    *("paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len"),
    *("q_descale", "k_descale", "v_descale"),
)
#: Words that gradients are judged of.
_DIFFERENTIABLE = ("q", "k", "v", "bias")


def unpacked(words: Words) -> Words:
    """The same with Q, K and V each, where a call gives them in one tensor, and lengths of both where they are one."""
    found = dict(words)
    for packed, names in (("qkv", "qkv"), ("kv", "kv")):
        given = found.pop(packed, None)
        if given is None:
            continue
        # [..., 3, heads, dim]
        shape = given.take(given.value).shape
        if len(shape) < 3 or shape[-3] != len(names):
            raise NotJudgedError(
                f"{given.argument or packed} has {list(shape)}, not [..., {len(names)}, heads, dim]"
            )
        for place, name in enumerate(names):
            found[name] = given.then(functools.partial(torch.select, dim=-3, index=place))
    lengths = found.pop("cu_seqlens", None)
    if lengths is not None:
        found.setdefault("cu_seqlens_q", lengths)
        found.setdefault("cu_seqlens_k", lengths)
    if "attn_mask" in found:
        mask = found.pop("attn_mask")
        found["mask" if mask.value.dtype == torch.bool else "bias"] = mask
    return found


def pose(words: Words, row: Row, out: Tensor) -> KernelProblem:
    """The problem of a call that was carried out. NotJudgedError for what is none."""
    words = unpacked(words)
    for name in ("q", "k", "v"):
        if name not in words:
            raise NotJudgedError(f"{name} is not given")
        check_tensor(words[name].argument or name, words[name].value)
    check_tensor("its output", out)
    words = _with_new_keys(words)
    words, take_output = _as_audited(words, row)
    features = _features(words, row)
    tensors = {name: words[name].tensor for name in ("q", "k", "v")}
    score = _score(words)
    score, features = _aligned(words, score, features, _Sizes(words, tensors, row))
    sources = {
        name: (words[name].argument or "", words[name].take)
        for name in _DIFFERENTIABLE
        if name in words
    }
    layout = "bhsd" if row.layout == "bhsd" else "bshd"
    return KernelProblem(**tensors, score=score, layout=layout, features=features,
                         sources=sources, take_output=take_output)  # fmt: skip


def _with_new_keys(words: Words) -> Words:
    """The same, where a kernel has put new keys into its cache: they count then."""
    new = words.get("k_new")
    if "cache_batch_idx" in words:
        chosen = words["cache_batch_idx"].value.long()
        take = functools.partial(torch.index_select, dim=0, index=chosen)
        words = {**words, **{name: words[name].then(take) for name in ("k", "v")}}
    if new is None:
        return words
    before = words.get("seqused_k")
    if "cu_seqlens_k_new" in words:
        raise NotJudgedError(f"{new.argument} is given in sequences of their own lengths")
    if before is None:
        raise NotJudgedError(f"{new.argument} is given without the lengths of the cache")
    rows = new.value.shape[1]
    return {**words, "seqused_k": Given(before.value + rows, before.argument)}


def _as_audited(words: Words, row: Row) -> tuple[Words, Take]:
    """Q, K and V as `audit` takes them, and how an output becomes that: with a batch, and never its length first."""
    is_packed = "cu_seqlens_q" in words
    q = words["q"].take(words["q"].value)
    step: Take = same
    if not is_packed and q.dim() < 4:
        step = functools.partial(_with_batch, dims=4 - q.dim(), layout=row.layout)
        # One query's keys have a length all the same.
        others = functools.partial(_with_batch, dims=1, layout=row.layout)
        batched = {name: words[name].then(others) for name in ("k", "v")}
        words = {**words, **batched, "q": words["q"].then(step)}
    elif not is_packed and row.layout == "sbhd":
        step = _batch_first
        words = {**words, **{name: words[name].then(step) for name in ("q", "k", "v")}}
    own = words.get("out_as")
    return words, step if own is None else _after(own.take, step)


def _after(first: Take, second: Take) -> Take:
    return lambda x: second(first(x))


def _batch_first(x: Tensor) -> Tensor:
    return x.transpose(0, 1)


def _with_batch(x: Tensor, dims: int, layout: str) -> Tensor:
    """[seqlen, heads, dim] or [heads, seqlen, dim] as a batch of one, and [heads, dim] as one query of that."""
    if dims == 2:
        x = x[:, None] if layout == "bhsd" else x[None]
    return x[None]


def _features(words: Words, row: Row) -> dict[str, Tensor]:
    """The further tensors of the problem."""
    found = {}
    for name in _FEATURES:
        given = words.get(name)
        if given is None:
            continue
        is_factor = name.endswith("_descale") and row.has_factors_of_8_bits_alone
        if is_factor and words[name[0]].value.dtype.itemsize > 1:
            continue
        value = given.value
        if not is_tensor(value):
            value = _as_tensor(name, value, words)
        found[name] = given.take(value.detach())
    if "block_table" in found and "cu_seqlens_k" in found:
        # Pages have no ends of their own: lengths are what counts.
        ends = found.pop("cu_seqlens_k")
        found.setdefault("seqused_k", ends[1:] - ends[:-1])
    return found


def _as_tensor(name: str, value: Any, words: Words) -> Tensor:
    """A number for all sequences, or a factor, as a tensor."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NotJudgedError(f"{words[name].argument or name} is no tensor")
    if name.endswith("descale"):
        return torch.tensor(float(value))
    if not isinstance(value, int) or name not in ("seqused_q", "seqused_k", "leftpad_k"):
        raise NotJudgedError(f"{words[name].argument or name} is no tensor")
    return torch.full((words["q"].value.shape[0],), value, dtype=torch.int32)


def _score(words: Words) -> ScoreArguments:
    """Scale, causal, window and softcap, as `audit` has them."""
    softcap = number_word(words, "softcap")
    return {
        "scale": number_word(words, "scale"),
        "causal": "causal" in words and bool(words["causal"].value),
        "window": _window(words),
        "softcap": None if softcap is None or softcap <= 0 else softcap,
    }


def _window(words: Words) -> tuple[int, int] | None:
    """(left, right), −1 for no end; None for no window."""
    if "window" in words:
        given = words["window"]
        try:
            left, right = (-1 if one is None else int(one) for one in given.value)
        except (TypeError, ValueError):
            raise NotJudgedError(f"{given.argument or 'window'} is no pair of numbers") from None
    elif "window_left" in words:
        left, right = int(words["window_left"].value), -1
    else:
        return None
    window = max(left, -1), max(right, -1)
    return None if window == (-1, -1) else window


@dataclass(frozen=True)
class _Sizes:
    """How many queries and keys the sequences of a problem have."""

    words: Words
    tensors: Mapping[str, Tensor]
    row: Row

    def lengths(self, name: str) -> Tensor:
        """Those of each sequence."""
        if f"seqused_{name}" in self.words:
            return torch.as_tensor(self.words[f"seqused_{name}"].value).cpu().long()
        if self._is_packed(name):
            ends = self.words[f"cu_seqlens_{name}"].value.cpu().long()
            return ends[1:] - ends[:-1]
        return torch.full((self.tensors[name].shape[0],), self._slots(name))

    def most(self, name: str) -> int:
        """As many as a mask has: the most of a sequence, or the slots of padded ones."""
        return int(self.lengths(name).max()) if self._is_packed(name) else self._slots(name)

    def _slots(self, name: str) -> int:
        return int(self.tensors[name].shape[2 if self.row.layout == "bhsd" else 1])

    def _is_packed(self, name: str) -> bool:
        return f"cu_seqlens_{name}" in self.words


def _aligned(
    words: Words, score: ScoreArguments, features: dict[str, Tensor], sizes: _Sizes
) -> tuple[ScoreArguments, dict[str, Tensor]]:
    """The same, where a causal mask or a window begins at the first key: a mask, unless both ends are one."""
    if "from_first" not in words or not words["from_first"].value:
        return score, features
    if not score.get("causal") and score.get("window") is None and "alibi_slopes" not in words:
        return score, features
    if torch.equal(sizes.lengths("q"), sizes.lengths("k")):
        return score, features
    if "mask" in features or "alibi_slopes" in features:
        raise NotJudgedError("a mask from the first key on is given beside another mask or ALiBi")
    left, right = score.get("window") or (-1, -1)
    window = left, 0 if score.get("causal") else right
    device = sizes.tensors["q"].device
    mask = mask_from_first(sizes.most("q"), sizes.most("k"), window, device)
    return {**score, "causal": False, "window": None}, {**features, "mask": mask}
