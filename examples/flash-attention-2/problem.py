"""A problem file as FlashAttention-2's launcher (flash_api.cpp) is given it: sizes, strides, masks."""

import math, struct
from dataclasses import dataclass

from flashproof import safetensors

MULTIPROCESSORS = 132  # of an H200
KERNEL_DIMS = (32, 64, 96, 128, 192, 256)
ELEMENTS = {"BF16": "cutlass::bfloat16_t", "F16": "cutlass::half_t"}


def as_float(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def up(number, step):
    return -(-number // step) * step


@dataclass(frozen=True)
class Problem:
    """Tensors of a file, and what its shapes and metadata say. Strides are in elements."""

    name: str
    tensors: dict
    batch: int
    heads: int
    kv_heads: int
    queries: int  # of the longest sequence
    keys: int
    dim: int
    scale: float
    softcap: float
    causal: bool
    window: tuple  # keys to the left and to the right; -1: all
    is_rows_first: bool  # rows before heads: [batch, rows, heads, dim], or packed
    is_packed: bool

    @property
    def dtype(self):
        return self.tensors["q"].dtype

    @property
    def kernel_dim(self):
        """The head dimension of the kernel that takes the problem's."""
        return next(dim for dim in KERNEL_DIMS if dim >= self.dim)

    @property
    def total_queries(self):
        return self.tensors["q"].shape[0] if self.is_packed else self.batch * self.queries

    @property
    def is_local(self):
        return not self.causal and self.window != (-1, -1)

    @property
    def has_slopes(self):
        return "alibi_slopes" in self.tensors

    def strides(self, names, heads, rows):
        """The three strides of tensors by the names of the struct."""
        dim = self.dim
        batch = 0 if self.is_packed else heads * rows * dim
        row, head = (heads * dim, dim) if self.is_rows_first else (dim, rows * dim)
        return {f"{name}_{kind}": stride for name in names for kind, stride in (("batch", batch), ("row", row), ("head", head))}

    def is_even(self, block_m, block_n):
        """The two flags by which FlashAttention-2 leaves out comparisons with the ends of rows and columns."""
        even_k = self.dim == self.kernel_dim and not self.has_slopes
        blocks = not self.is_packed and self.queries % block_m == 0 and self.keys % block_n == 0
        return blocks and even_k and not self.is_local and self.kernel_dim <= 128, even_k

    def macros(self, block_m, block_n):
        """What names a kernel, forward or backward."""
        even, even_k = self.is_even(block_m, block_n)
        flags = {"CAUSAL": self.causal, "LOCAL": self.is_local, "ALIBI": self.has_slopes, "SOFTCAP": self.softcap > 0, "EVEN": even, "EVEN_K": even_k}
        return {
            "DIM": self.kernel_dim, "BLOCK_M": block_m, "BLOCK_N": block_n, "ELEMENT": ELEMENTS[self.dtype],
            **{name: str(flag).lower() for name, flag in flags.items()},
        }

    def values(self):
        """The members of the struct that the problem decides."""
        # flash_api.cpp has the scale as a float before it multiplies it. With a softcap the kernel takes tanh of the scores times
        # scale / softcap, and the softcap for the scale.
        scale = as_float(self.softcap or self.scale)
        left, right = self.window
        if left >= 0 > right:
            right = self.keys
        if right >= 0 > left:
            left = self.keys
        given = {"cu_seqlens_q": "query_starts", "cu_seqlens_k": "key_starts", "seqused_k": "used_keys", "alibi_slopes": "slopes"}
        slopes = self.tensors.get("alibi_slopes")
        return {
            **{member: name for name, member in given.items() if name in self.tensors},
            **self.strides(["q", "out"], self.heads, self.queries), **self.strides(["k", "v"], self.kv_heads, self.keys),
            "heads": self.heads, "kv_heads": self.kv_heads, "group": self.heads // self.kv_heads,
            "batch": self.batch, "queries": self.queries, "keys": self.keys, "dim": self.dim, "dim_rounded": self.kernel_dim,
            "queries_rounded": up(self.queries, 128), "keys_rounded": up(self.keys, 128), "all_queries": self.total_queries if self.is_packed else 0,
            "scale": scale, "scale_log2": scale * math.log2(math.e), "softcap": as_float(self.scale) / scale if self.softcap else 0,
            "kept_share": 1, "kept_share_byte": 255, "kept_factor": 1, "scaled_kept_factor": scale,
            "window_left": left, "window_right": right, "is_lse_packed": int(self.is_packed),
            "is_bf16": int(self.dtype == "BF16"), "is_causal": int(self.causal), "are_keys_cumulative": 1,
            "slopes_batch": slopes.shape[1] if slopes is not None and len(slopes.shape) == 2 else 0,
        }


def lengths(starts):
    ends = memoryview(starts.data).cast("i").tolist()
    return [end - begin for begin, end in zip(ends, ends[1:])]


def read(path):
    """The problem of a file; ValueError for what its launcher would treat otherwise than is written here."""
    tensors, metadata = safetensors.read(path)
    q, k = tensors["q"], tensors["k"]
    is_packed = "cu_seqlens_q" in tensors
    is_rows_first = is_packed or metadata.get("layout") == "bshd"
    if is_packed:
        (_, heads, dim), (_, kv_heads, _) = q.shape, k.shape
        batch = tensors["cu_seqlens_q"].shape[0] - 1
        queries, keys = (max(lengths(tensors[f"cu_seqlens_{name}"])) for name in "qk")
    else:
        order = (-3, -2, -1) if is_rows_first else (-2, -3, -1)
        queries, heads, dim = (q.shape[i] for i in order)
        keys, kv_heads, _ = (k.shape[i] for i in order)
        batch = math.prod(q.shape[:-3])
    left, right = (int(part) for part in metadata.get("window", "-1,-1").split(","))
    if metadata.get("causal") == "true":
        right = 0
    # A window as wide as the keys is none.
    left, right = (-1 if side >= keys else side for side in (left, right))
    if queries == 1:
        raise ValueError(f"{path}: one query, for which FlashAttention-2 turns groups of heads into rows, is not recorded here")
    if tensors["v"].shape[-1] != dim:
        raise ValueError(f"{path}: Q and V have {dim} and {tensors['v'].shape[-1]} columns; FlashAttention-2 takes one head dimension")
    for feature in ("bias", "mask", "dropout_mask", "q_segments", "sink", "block_table"):
        if feature in tensors:
            raise ValueError(f"{path} has {feature}, which is not recorded here")
    return Problem(
        path.stem, tensors, batch, heads, kv_heads, queries, keys, dim, float(metadata.get("scale") or 1 / math.sqrt(dim)),
        float(metadata.get("softcap") or 0), left < 0 and right == 0, (left, right), is_rows_first, is_packed,
    )
