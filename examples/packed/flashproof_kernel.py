"""Serves a kernel for packed sequences to flashproof: JSON on stdin and stdout, a line each way; tensors in files."""

import json, sys

from flashproof.widened import load, save
from packed_attention import packed_attention  # your kernel here

NAMES = "q", "k", "v", "cu_seqlens_q", "cu_seqlens_k"

for line in sys.stdin:
    r = json.loads(line)
    t = load(r["problem"])
    # A tensor that the kernel does not read, as a sink, makes the problem another one.
    if set(t) == set(NAMES):
        out, lse = packed_attention(
            *(t[name] for name in NAMES),
            *(r[name] for name in ("scale", "causal", "window", "softcap")),
        )
        save(r["output"], out=out, lse=lse)
        print(json.dumps({"id": r["id"], "ok": True}), flush=True)
    else:
        print(json.dumps({"id": r["id"], "ok": False, "unsupported": True, "error": f"takes {NAMES}"}), flush=True)
