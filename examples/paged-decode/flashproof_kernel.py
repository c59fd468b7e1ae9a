"""Serves a paged kernel to flashproof: JSON on stdin and stdout, a line each way; tensors in files."""

import json, sys

import numpy as np
from flashproof.widened import load, save
from paged_attention import paged_attention  # your kernel here

NEEDED = {"q", "k", "v", "block_table", "seqused_k"}
OPTIONAL = {"cu_seqlens_q", "seqused_q"}


def answer(r, t):
    """O as the queries lie, and the LSE: [heads, total] of packed queries, [batch, heads, seqlen] of padded ones."""
    q, used = t["q"], t["seqused_k"]
    packed = "cu_seqlens_q" in t
    if not packed and r["layout"] == "bhsd":
        q = q.transpose(0, 2, 1, 3)
    heads, dim = q.shape[-2], t["v"].shape[-1]
    out = np.zeros(q.shape[:-1] + (dim,), np.float32)
    lse = np.zeros((heads, len(q)) if packed else (len(q), heads, q.shape[1]), np.float32)
    for b, pages in enumerate(t["block_table"]):
        if packed:
            rows = slice(t["cu_seqlens_q"][b], t["cu_seqlens_q"][b + 1])
            place, of_lse = rows, (slice(None), rows)
        else:
            rows = slice(0, t["seqused_q"][b] if "seqused_q" in t else q.shape[1])
            place, of_lse = (b, rows), (b, slice(None), rows)
        out[place], lse[of_lse] = paged_attention(
            q[place], t["k"], t["v"], pages, int(used[b]), r["scale"], r["causal"], r["window"], r["softcap"]
        )
    if not packed and r["layout"] == "bhsd":
        out = out.transpose(0, 2, 1, 3)
    return out, lse


for line in sys.stdin:
    r = json.loads(line)
    t = load(r["problem"])
    # A tensor that the kernel does not read, as a sink, makes the problem another one, and so do pages with heads first.
    if NEEDED <= set(t) <= NEEDED | OPTIONAL and "kv_layout" not in r:
        out, lse = answer(r, t)
        save(r["output"], out=out, lse=lse)
        print(json.dumps({"id": r["id"], "ok": True}), flush=True)
    else:
        error = f"needs {sorted(NEEDED)}, takes {sorted(OPTIONAL)}"
        print(json.dumps({"id": r["id"], "ok": False, "unsupported": True, "error": error}), flush=True)
