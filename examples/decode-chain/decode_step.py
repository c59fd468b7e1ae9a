"""One decode step in numpy, as a server has it: it stands for your kernels. `broken` plants a fault in one of them."""

from __future__ import annotations

import flashproof
import numpy as np

SEQUENCES, HEADS, KEY_HEADS, DIM = 4, 8, 2, 64
PAGE, PAGES, TABLE = 16, 20, 4
SELECTED, SPLITS = 16, 2
LENGTHS = np.array([58, 61, 49, 64], np.int32)  # with the new token
SCALE = np.float32(DIM**-0.5)
EPSILON, BASE = 1e-6, 10000
K_SCALE, V_SCALE = np.float32(0.03125), np.float32(0.015625)


def fp8_numbers() -> np.ndarray:
    """The numbers of e4m3 by their bytes; NaN at 0x7f and 0xff."""
    code = np.arange(128)
    exponent, fraction = code >> 3, code & 7
    size = np.where(exponent == 0, fraction * 2.0**-9, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
    size[127] = np.nan
    return np.concatenate([size, -size]).astype(np.float32)


FP8 = fp8_numbers()


def to_fp8(x: np.ndarray) -> np.ndarray:
    """Bytes of e4m3: nearest, ties to even, saturated."""
    positive = FP8[:127]
    size = np.minimum(np.abs(x), 448).astype(np.float32)
    above = np.clip(np.searchsorted(positive, size), 1, 126)
    low, high = positive[above - 1], positive[above]
    middle = (low + high) / 2
    up = (size > middle) | ((size == middle) & (above % 2 == 0))
    return (np.where(up, above, above - 1) + 128 * np.signbit(x)).astype(np.uint8)


def fp8(codes: np.ndarray) -> flashproof.Array:
    """Bytes as what they are, for a file."""
    return flashproof.Array("F8_E4M3", codes.shape, codes.tobytes())


class Step:
    """The inputs of a step, the same each time."""

    def __init__(self) -> None:
        draw = np.random.default_rng(7)

        def half(*shape: int) -> np.ndarray:
            return draw.standard_normal(shape).astype(np.float16)

        self.q = half(SEQUENCES, HEADS, DIM)
        self.k = half(SEQUENCES, KEY_HEADS, DIM)
        self.v = half(SEQUENCES, KEY_HEADS, DIM)
        self.q_gain = draw.uniform(1, 3, DIM).astype(np.float32)
        self.k_gain = draw.uniform(0.5, 1.5, DIM).astype(np.float32)
        self.positions = LENGTHS - 1
        self.table = (
            draw.permutation(PAGES)[: SEQUENCES * TABLE].reshape(-1, TABLE).astype(np.int32)
        )
        page = self.table[np.arange(SEQUENCES), self.positions // PAGE]
        self.slots = (page * PAGE + self.positions % PAGE).astype(np.int32)
        cache = (PAGES, PAGE, KEY_HEADS, DIM)
        self.key_cache = to_fp8(draw.standard_normal(cache) / K_SCALE)
        self.value_cache = to_fp8(draw.standard_normal(cache) / V_SCALE)
        # An indexer that was trained sees what attention sees: here half of the columns of the first head of
        # keys, and of the heads of queries that read it.
        slots = (self.table[:, :, None] * PAGE + np.arange(PAGE)).reshape(SEQUENCES, -1)
        keys = FP8[self.key_cache.reshape(-1, KEY_HEADS, DIM)[slots, 0, :32]] * K_SCALE
        self.index_k = keys.astype(np.float16)
        self.index_weights = np.ones((SEQUENCES, 1, 4), np.float32)


def prologue(
    x: np.ndarray, gain: np.ndarray, positions: np.ndarray, broken: str = ""
) -> np.ndarray:
    """An RMS norm of each head, then a rotation of the halves of it."""
    wide = x.astype(np.float32)
    mean = (wide * wide).mean(axis=-1, keepdims=True, dtype=np.float32)
    normed = wide / np.sqrt(mean + np.float32(EPSILON)) * gain
    half = x.shape[-1] // 2
    frequency = 1 / np.float32(BASE) ** (np.arange(half, dtype=np.float32) / np.float32(half))
    angle = (positions[:, None].astype(np.float32) * frequency)[:, None]
    cos, sin = np.cos(angle), np.sin(angle)
    if broken == "pairs":
        a, b = normed[..., 0::2], normed[..., 1::2]
        turned = np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(x.shape)
    else:
        a, b = normed[..., :half], normed[..., half:]
        turned = np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    return turned.astype(np.float16)


def write_cache(
    key: np.ndarray,
    value: np.ndarray,
    key_cache: np.ndarray,
    value_cache: np.ndarray,
    slot_mapping: np.ndarray,
    broken: str = "",
) -> None:
    """Store new keys and values in their slots, in fp8."""
    slots = slot_mapping + 1 if broken == "slot" else slot_mapping
    key_cache.reshape(-1, KEY_HEADS, DIM)[slots] = to_fp8(key.astype(np.float32) / K_SCALE)
    value_cache.reshape(-1, KEY_HEADS, DIM)[slots] = to_fp8(value.astype(np.float32) / V_SCALE)


def select(
    q: np.ndarray, k: np.ndarray, weights: np.ndarray, lengths: np.ndarray, broken: str = ""
) -> np.ndarray:
    """The keys of the largest scores Σ weight · relu(q·k) of each sequence."""
    dots = np.einsum("bqhd,bkd->bqhk", q.astype(np.float32), k.astype(np.float32))
    scores = np.einsum("bqh,bqhk->bqk", weights, dots if broken == "relu" else np.maximum(dots, 0))
    hidden = np.arange(k.shape[1]) >= lengths[:, None, None]
    order = np.argsort(np.where(hidden, -np.inf, scores), axis=-1, kind="stable")
    return order[..., : -SELECTED - 1 : -1].astype(np.int32)


def attend(
    q: np.ndarray,
    key_cache: np.ndarray,
    value_cache: np.ndarray,
    block_table: np.ndarray,
    indices: np.ndarray,
    broken: str = "",
) -> tuple[np.ndarray, np.ndarray]:
    """Attention over the listed keys, in parts by their positions: O and LSE of each."""
    out = np.zeros((SPLITS, SEQUENCES, HEADS, 1, DIM), np.float32)
    lse = np.full((SPLITS, SEQUENCES, HEADS, 1), -np.inf, np.float32)
    keys = PAGE * TABLE // SPLITS
    for b in range(SEQUENCES):
        for split in range(SPLITS):
            own = indices[b, 0]
            own = own[(own >= split * keys) & (own < (split + 1) * keys)]
            if own.size == 0:
                continue
            slots = block_table[b, own // PAGE] * PAGE + own % PAGE
            for h in range(HEADS):
                head = h % KEY_HEADS if broken == "group" else h // (HEADS // KEY_HEADS)
                k = FP8[key_cache.reshape(-1, KEY_HEADS, DIM)[slots, head]] * K_SCALE
                v = FP8[value_cache.reshape(-1, KEY_HEADS, DIM)[slots, head]] * V_SCALE
                s = (k @ q[b, h].astype(np.float32)) * SCALE
                top = s.max()
                p = np.exp(s - top)
                out[split, b, h, 0] = p @ v / p.sum()
                lse[split, b, h, 0] = top + np.log(p.sum())
    return out, lse


def merge(out: np.ndarray, lse: np.ndarray, broken: str = "") -> tuple[np.ndarray, np.ndarray]:
    """The parts as one: weights exp(LSE − the largest)."""
    top = lse.max(axis=0)
    weights = np.exp2(lse - top) if broken == "base" else np.exp(lse - top)
    total = weights.sum(axis=0)
    merged = (weights[..., None] * out).sum(axis=0) / total[..., None]
    return merged.astype(np.float16), (top + np.log(total)).astype(np.float32)
