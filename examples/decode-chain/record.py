"""Records the step of decode_step.py as a chain: `python3 record.py chain.safetensors [link=fault]`."""

from __future__ import annotations

import sys

import decode_step
import flashproof
import numpy as np
from decode_step import BASE, EPSILON, K_SCALE, LENGTHS, V_SCALE, Step, fp8
from flashproof import result


def run(path: str, broken: dict[str, str]) -> None:
    """One step, with what each link reads and writes in a file; `broken` has the fault of a link by its name."""
    step = Step()

    def fault(link: str) -> str:
        return broken.get(link, "")

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
            writes={"indices": result},
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
            writes={"out_partial": result[0], "lse_partial": result[1]},
            notes={"split_boundaries": "0,32,64"},
        )
        merge = chain.link(
            "merge",
            decode_step.merge,
            reads={"out_partial": "out", "lse_partial": "lse"},
            writes={"out": result[0], "lse": result[1]},
        )

        q = decode_step.prologue(step.q, step.q_gain, step.positions, fault("prologue"))
        k = decode_step.prologue(step.k, step.k_gain, step.positions, fault("prologue"))
        # Two calls are one link: they are dumped where both are made.
        chain.dump(
            "prologue",
            {
                **{"q": step.q, "q_norm_gain": step.q_gain, "q_out": q},
                **{"k": step.k, "k_norm_gain": step.k_gain, "k_out": k},
                "positions": step.positions,
            },
            notes={"norm_epsilon": EPSILON, "rope_base": BASE, "rope_layout": "halves"},
        )
        early = (step.key_cache.copy(), step.value_cache.copy())
        caches = (step.key_cache, step.value_cache)
        write(k, step.v, *caches, step.slots, broken=fault("write"))
        indexed = (q[:, None, :4, :32], step.index_k, step.index_weights, LENGTHS)
        indices = select(*indexed, broken=fault("selection"))
        # As on a stream of its own, which nobody made wait for the write.
        seen = early if fault("attention") == "early" else caches
        parts = attend(q, *seen, step.table, indices, broken=fault("attention"))
        merge(*parts, broken=fault("merge"))


if __name__ == "__main__":
    run(sys.argv[1], dict(fault.split("=") for fault in sys.argv[2:]))
