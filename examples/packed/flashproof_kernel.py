"""Serves a kernel for packed sequences to flashproof: JSON on stdin and stdout, a line each way; tensors in files."""

import json, sys

from packed_attention import packed_attention  # your kernel here
from tensor_file import load, save

for line in sys.stdin:
    r = json.loads(line)
    t = load(r["problem"])
    if "cu_seqlens_q" in t and "cu_seqlens_k" in t:
        out, lse = packed_attention(
            *(t[name] for name in ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")),
            *(r[name] for name in ("scale", "causal", "window", "softcap")),
        )
        save(r["output"], out=out, lse=lse)
        print(json.dumps({"id": r["id"], "ok": True}), flush=True)
    else:
        print(json.dumps({"id": r["id"], "ok": False, "unsupported": True, "error": "not packed"}), flush=True)
