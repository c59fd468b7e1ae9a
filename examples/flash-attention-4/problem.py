"""A problem file as FlashAttention-4 takes it."""

from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

TORCH = {
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F32": torch.float32,
    "I32": torch.int32,
}


class Problem:
    """`stored` are the tensors of the file that a kernel reads, `given` the same on the device, by name; `shapes` those of
    outputs. Tensors [batch, heads, seqlen, dim] are given as views [batch, seqlen, heads, dim]; packed and paged ones as they are."""

    def __init__(self, tensors, metadata):
        self.tensors, self.metadata = tensors, metadata
        self.mode = FakeTensorMode()
        names = ["q", "k", "v", "sink", "cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k", "block_table"]
        names += ["dout", "out", "lse"] if "dout" in tensors else []
        self.stored = {name: tensors[name] for name in names if name in tensors}
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
        return (tensor if tensor.dim() == 4 else tensor.unsqueeze(0)).transpose(1, 2)

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
                self.shapes = {"out": (batch, heads, queries, v.shape[-1]), "lse": (batch, heads, queries)}
                stored = torch.empty(self.shapes["out"], dtype=dtype, device="cuda")
                out = stored.transpose(1, 2)
            left, right = self.window()
            _, lse, *_ = interface._flash_attn_fwd(
                *(q, k, v),
                **{name: self.given.get(name) for name in ["cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k"]},
                page_table=self.given.get("block_table"),
                softmax_scale=self.number("scale"),
                causal=self.metadata.get("causal") == "true",
                softcap=self.number("softcap"),
                window_size_left=left,
                window_size_right=right,
                learnable_sink=self.given.get("sink"),
                num_splits=splits,
                out=out,
                return_lse=True,
            )
        return {"out": stored, "lse": lse}

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
                causal=self.metadata.get("causal") == "true",
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
