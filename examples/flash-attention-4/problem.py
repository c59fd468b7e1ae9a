"""A problem file as FlashAttention-4 takes it."""

import math, struct
from unittest import mock

import torch
from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch
from torch._subclasses.fake_tensor import FakeTensorMode

import mods
from flashproof import Array

TORCH = {
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F32": torch.float32,
    "I32": torch.int32,
    "BOOL": torch.uint8,
    "U8": torch.uint8,
}


SEQUENCES = ["cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k"]
BLOCKS = ["kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"]
DESCALES = ["q_descale", "k_descale", "v_descale"]
TAKEN = ["q", "k", "v", "sink", *SEQUENCES, "block_table", "mask", "bias", "alibi_slopes", "q_segments", "k_segments", *BLOCKS, *DESCALES]
REFUSED = ["leftpad_k", "dropout_mask", "kv_cache", "paged_kv_cache", "paged_kv_indptr", "cu_seqlens"]
REFUSED += [f"{name}_{kind}_scale" for name in "qkv" for kind in ("block", "global")]
# What a note has to say for this to be the problem that FlashAttention-4 solves.
EXPECTED = {"kv_layout": "NHD", "lse_sink": "true", **{f"{name}_descale_block": "none" for name in "qkv"}}
EXPECTED |= {name: "none" for name in DESCALES}  # a number: give a tensor


class Problem:
    """`stored` are the tensors of the file that a kernel reads, `given` the same on the device, by name; `shapes` those of
    outputs. Tensors [batch, heads, seqlen, dim] are given as views [batch, seqlen, heads, dim]; packed and paged ones as they are.
    NotImplementedError for what FlashAttention-4 has no argument for."""

    def __init__(self, tensors, metadata):
        self.metadata = metadata
        self.mode = FakeTensorMode()
        refused = [name for name in REFUSED if name in tensors]
        refused += [name for name, value in EXPECTED.items() if metadata.get(name, value) != value]
        refused += ["dropout_p"] if self.number("dropout_p") else []
        if "dout" in tensors:
            refused += [name for name in ["mask", "bias", "alibi_slopes", "q_segments", "kv_num_blocks", "prefix"] if name in tensors or name in metadata]
        if refused:
            raise NotImplementedError(f"FlashAttention-4 is not given {', '.join(refused)}")
        names = TAKEN + (["dout", "out", "lse"] if "dout" in tensors else [])
        self.stored = {name: as_int32(name, tensors[name]) for name in names if name in tensors}
        for name in BLOCKS[:2]:  # without lists of full blocks FlashAttention-4's kernel does not compile
            if name in tensors:
                self.stored.setdefault(f"full_{name}", Array.filled("I32", tensors[name].shape, 0))
        for name in DESCALES:
            if name in tensors:
                self.stored[name] = by_kv_head(name, tensors)
        with self.mode:
            self.given = {
                name: torch.empty(tensor.shape, dtype=TORCH[tensor.dtype], device="cuda")
                for name, tensor in self.stored.items()
            }
        self.shapes, self.zeros = {}, []

    def number(self, name):
        text = self.metadata.get(name, "none")
        return None if text in ("none", "null") else float(text)

    def window(self):
        text = self.metadata.get("window", "none")
        sides = [None, None] if text == "none" else [int(side) for side in text.split(",")]
        return [None if side is None or side < 0 else side for side in sides]

    def is_packed(self, name):
        return f"cu_seqlens_{'k' if name.removeprefix('d') in 'kv' else 'q'}" in self.given

    def view(self, name):
        """A tensor as FlashAttention-4 wants its axes: [batch, seqlen, heads, dim], packed [tokens, heads, dim], or pages."""
        tensor = self.given[name]
        if self.is_packed(name) or (name in "kv" and "block_table" in self.given):
            return tensor
        return self.in_order(tensor)

    def in_order(self, tensor):
        """A view [batch, seqlen, heads, dim] of a tensor as the file has it."""
        tensor = tensor if tensor.dim() == 4 else tensor.unsqueeze(0)
        return tensor if self.metadata.get("layout") == "bshd" else tensor.transpose(1, 2)

    def whole(self, name, batch, heads, tokens):
        """A tensor that is broadcast as a view of all batches and heads; along queries and keys it is as large as it is, or as
        all `tokens` that there are."""
        tensor = self.given[name]
        if name.endswith("segments"):
            return tensor.expand(batch, tensor.shape[-1])
        if name == "alibi_slopes":
            return tensor.expand(batch, heads)
        sizes = [1] * (4 - tensor.dim()) + list(tensor.shape)
        return tensor.expand(batch, heads, *(tokens if size == 1 else size for size in sizes[2:]))

    def mods(self, q, k):
        """The functions that change scores and hide keys, and the tensors that they read: arguments of the interface."""
        read = [name for name in ["mask", "bias", "alibi_slopes", "q_segments", "k_segments"] if name in self.given]
        lists = [self.given[name] for name in ["cu_seqlens_q", "cu_seqlens_k"] if name in self.given]
        batch = lists[0].shape[0] - 1 if lists else q.shape[0]
        tokens = max(q.shape[-3], math.prod(k.shape[:-2]))
        tensors = [self.whole(name, batch, q.shape[-2], tokens) for name in read]
        places, prefix = {name: i for i, name in enumerate(read)}, int(self.number("prefix") or 0)
        given = {"aux_tensors": tensors} if read else {}
        if "mask" in places or "q_segments" in places or prefix > 0:
            given["mask_mod"] = mods.mask_mod(places, self.is_causal(), *self.window(), prefix)
        if "bias" in places:
            given["score_mod"] = mods.bias_mod(places["bias"])
        if "alibi_slopes" in places:
            if "score_mod" in given:
                raise NotImplementedError("FlashAttention-4 has one score_mod; it is given a bias or ALiBi slopes")
            given["score_mod"] = mods.alibi_mod(places["alibi_slopes"])
        return given

    def block_mask(self):
        """The lists of blocks that queries see; None where all of them are seen."""
        if "kv_num_blocks" not in self.given:
            return None
        sizes = tuple(int(self.metadata.get(name, "128")) for name in ["block_q", "block_k"])
        lists = [None if tensor is None else in_dimensions(tensor, 3 + i % 2) for i, tensor in enumerate(map(self.given.get, BLOCKS))]
        return BlockSparseTensorsTorch(*lists, block_size=sizes)

    def is_causal(self):
        return self.metadata.get("causal") == "true"

    def forward(self, interface, splits):
        """Launches the forward; its outputs by name."""
        with self.mode:
            q, k, v = (self.view(name) for name in "qkv")
            dtype = torch.bfloat16 if q.element_size() == 1 else q.dtype
            if self.is_packed("q"):
                self.shapes = {"out": (*q.shape[:-1], v.shape[-1]), "lse": (q.shape[1], q.shape[0])}
                stored = out = torch.empty(self.shapes["out"], dtype=dtype, device="cuda")
            else:
                batch, queries, heads, _ = q.shape
                given = self.given["q"].shape
                self.shapes = {"out": (*given[:-1], v.shape[-1]), "lse": (*given[:-3], heads, queries)}
                stored = torch.empty(self.shapes["out"], dtype=dtype, device="cuda")
                out = self.in_order(stored)
            left, right = self.window()
            _, lse, *_ = interface._flash_attn_fwd(
                *(q, k, v),
                **{name: self.given.get(name) for name in ["cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k"]},
                page_table=self.given.get("block_table"),
                softmax_scale=self.number("scale"),
                causal=self.is_causal(),
                softcap=self.number("softcap"),
                window_size_left=left,
                window_size_right=right,
                learnable_sink=self.given.get("sink"),
                block_sparse_tensors=self.block_mask(),
                **self.mods(q, k),
                **{name: self.given[name] for name in DESCALES if name in self.given},
                num_splits=splits,
                out=out,
                return_lse=True,
            )
        return {"out": stored, "lse": lse}

    def contract(self, outputs):
        """What the tensors of a forward are, for `flashproof certify`; None where one is given in another order than a contract's."""
        known = ["q", "k", "v", "sink", *SEQUENCES, "block_table"]
        if self.metadata.get("layout") == "bshd" or any(name not in known for name in self.stored):
            return None
        sizes = {**{name: tensor.shape for name, tensor in self.stored.items()}, **{name: self.shapes[name] for name in outputs}}
        left, right = (-1 if side is None else side for side in self.window())
        settings = {"scale": self.number("scale"), "softcap": self.number("softcap"), "window": None if left == right == -1 else [left, right]}
        return {
            "kind": "attention",
            "causal": self.is_causal(),
            **{name: value for name, value in settings.items() if value is not None},
            **{name: {"tensor": name, "shape": list(shape)} for name, shape in sizes.items()},
        }

    def backward(self, interface, deterministic):
        """Launches the backward, for `dout`, `out` and `lse` of the file; the gradients by name."""
        zeros = torch.zeros

        def noted(*shape, **options):
            self.zeros.append(zeros(*shape, **options))
            return self.zeros[-1]

        with self.mode, mock.patch("torch.zeros", noted):
            stored = {f"d{name}": torch.empty_like(self.given[name]) for name in "qkv"}
            views = [self.view(name) for name in ["q", "k", "v", "out", "dout"]]
            self.given.update(stored)
            left, right = self.window()
            lse = self.given["lse"]
            interface._flash_attn_bwd(
                *views,
                lse if lse.dim() == 3 or self.is_packed("q") else lse.unsqueeze(0),
                softmax_scale=self.number("scale"),
                causal=self.is_causal(),
                softcap=self.number("softcap") or 0.0,
                window_size_left=left,
                window_size_right=right,
                **{name: self.given.get(name) for name in ["cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k"]},
                deterministic=deterministic,
                **{name: self.view(name) for name in stored},
            )
        self.shapes = {f"d{name}": self.stored[name].shape for name in "qkv"}
        return stored

    def is_zero(self, tensor):
        """Whether the tensor's memory was asked for as zeros."""
        return any(tensor.untyped_storage()._cdata == one.untyped_storage()._cdata for one in self.zeros)


def as_int32(name, tensor):
    """Lists of numbers as FlashAttention-4 takes them."""
    if tensor.dtype not in ("I64", "U32", "I16") or name not in [*SEQUENCES, *BLOCKS, "block_table", "q_segments", "k_segments"]:
        return tensor
    letter = {"I64": "q", "U32": "I", "I16": "h"}[tensor.dtype]
    numbers = struct.unpack(f"<{math.prod(tensor.shape)}{letter}", tensor.data)
    return Array("I32", tensor.shape, struct.pack(f"<{len(numbers)}i", *numbers))


def by_kv_head(name, tensors):
    """Factors of Q, K or V as FlashAttention-4 takes them: [batch, heads of K and V] in fp32."""
    factors, k = tensors[name], tensors["k"]
    starts = [tensors[other] for other in ["cu_seqlens_q", "cu_seqlens_k"] if other in tensors]
    q = tensors["q"].shape
    batch = starts[0].shape[0] - 1 if starts else q[0] if len(q) == 4 else 1
    heads = k.shape[-2] if "cu_seqlens_k" in tensors or "block_table" in tensors else k.shape[-3]
    rows, columns = ([1, 1] + list(factors.shape))[-2:]
    if factors.dtype != "F32" or len(factors.shape) > 2 or rows not in (1, batch) or columns not in (1, heads):
        raise NotImplementedError(f"FlashAttention-4 takes {name} in fp32 by batch and head of K and V")
    row = lambda i: factors.data[4 * i * columns : 4 * (i + 1) * columns] * (heads // columns)
    return Array("F32", (batch, heads), b"".join(row(i if rows > 1 else 0) for i in range(batch)))


def in_dimensions(tensor, rank):
    """A tensor with 1s in front."""
    return tensor.view(*[1] * (rank - tensor.dim()), *tensor.shape)
