"""Records the step of decode_step.py as a chain: `python3 record.py chain.safetensors [link=fault]`."""

from __future__ import annotations

import sys

import decode_step
import flashproof
import numpy as np
from decode_step import K_SCALE, LENGTHS, V_SCALE, Step, fp8


def run(path: str, broken: dict[str, str]) -> None:
    step = Step()
    with flashproof.record_chain(path) as chain:
        write = chain.link(
            "cache-write",
            decode_step.write_cache,
            name="write",
            reads={
                **{"k": "key", "v": "value", "slot_mapping": "slot_mapping"},
                **{"block_table": step.table, "positions": step.positions},
                **{"k_scale": float(K_SCALE), "v_scale": float(V_SCALE)},
            },
            writes={
                "key_cache": lambda given: fp8(given["key_cache"]),
                "value_cache": lambda given: fp8(given["value_cache"]),
            },
            notes={"scale_rule": "given"},
        )
        select = chain.link(
            "selection",
            decode_step.select,
            reads={"q": "q", "k": "k", "weights": "weights", "seqused_k": "lengths"},
            writes={"indices": flashproof.result},
            notes={"law": "indexer"},
        )
        attend = chain.link(
            "attention",
            decode_step.attend,
            reads={
                "q": lambda given: given["q"][:, :, None],
                "k": lambda given: fp8(given["key_cache"]),
                "v": lambda given: fp8(given["value_cache"]),
                "k_descale": np.full(1, K_SCALE),
                "v_descale": np.full(1, V_SCALE),
                "block_table": "block_table",
                "seqused_k": LENGTHS,
                "kv_index": lambda given: given["indices"][:, :, None],
            },
            writes={"out_partial": flashproof.result[0], "lse_partial": flashproof.result[1]},
            notes={"split_boundaries": "0,32,64"},
        )
        merge = chain.link(
            "merge",
            decode_step.merge,
            reads={"out_partial": "out", "lse_partial": "lse"},
            writes={"out": flashproof.result[0], "lse": flashproof.result[1]},
        )
        fault = lambda link: broken.get(link, "")  # noqa: E731
        early = (step.key_cache.copy(), step.value_cache.copy())
        write(
            *(step.k, step.v, step.key_cache, step.value_cache, step.slots),
            broken=fault("write"),
        )
        indices = select(
            *(step.index_q, step.index_k, step.index_weights, LENGTHS), broken=fault("selection")
        )
        # As on a stream of its own, which nobody made wait for the write.
        caches = early if fault("attention") == "early" else (step.key_cache, step.value_cache)
        parts = attend(step.q, *caches, step.table, indices, broken=fault("attention"))
        merge(*parts, broken=fault("merge"))


if __name__ == "__main__":
    path, *faults = sys.argv[1:]
    run(path, dict(fault.split("=") for fault in faults))
