"""Compiles CUTLASS's FMHA for Blackwell with nvcc, runs it on the emulated machine, audits what it gives, and compares it bit for bit with
`flashproof emulate cutlass-fmha`.

    python forward.py problem.safetensors … --cutlass cutlass --to recorded

Problems are bf16 or fp16, one sequence or several of [batch, heads, queries, dim], dimension 64 or 128, without mask or causal. The exit status is 1 where a
bit differs, an audit fails or the machine finds something; `--mend` puts a tcgen05.wait::st where one is missing (README.md), and compares.
"""

import argparse, collections, hashlib, json, math, pathlib, re, sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "record-cuda"))

from flashproof import safetensors

from record import Plan, differing, flashproof, record, run

ELEMENTS = {"BF16": "cutlass::bfloat16_t", "F16": "cutlass::half_t"}
INCLUDES = ["include", "tools/util/include", "examples/common", "examples/77_blackwell_fmha"]
STATISTICS = re.compile(r"^(\s*tcgen05\.st\.sync\.aligned\.32x32b\.x2\.b32.*)$", re.M)
BLOCK_KEYS = 128


def plan_of(given, metadata, cutlass):
    q, k = given["q"], given["k"]
    heads, queries, dim = q.shape[-3:]
    kv_heads, keys, _ = k.shape[-3:]
    batch = math.prod(q.shape[:-3])
    if dim not in (64, 128) or q.dtype not in ELEMENTS:
        sys.exit("dimensions are 64 or 128, and elements bf16 or fp16, here")
    if {"window", "softcap"} & set(metadata) or metadata.get("layout", "bhsd") != "bhsd" or len(given["v"].shape) != len(q.shape):
        sys.exit("a problem here is heads first, without mask or causal")
    mask = "CausalMask<false>" if metadata.get("causal") == "true" else "NoMask" if keys % BLOCK_KEYS == 0 else "ResidualMask"
    macros = {"DIM": dim, "ELEMENT": ELEMENTS[q.dtype], "MASK": mask}
    scale = float(metadata.get("scale") or 1 / math.sqrt(dim))
    numbers = {"heads": heads, "kv_heads": kv_heads, "batch": batch, "queries": queries, "keys": keys, "scale": scale}
    results = {"out": (q.dtype, q.shape), "lse": ("F32", q.shape[:-1])}
    flags = ["--use_fast_math", "-DNDEBUG", "-O3", *(word for path in INCLUDES for word in ("-I", str(cutlass / path)))]
    return Plan(HERE / "forward.cu", tuple(flags), macros, numbers, {name: given[name] for name in "qkv"}, results, "sm_100")


def mended(launch):
    """The same launch with a wait behind every store of row statistics to tensor memory."""
    ptx = launch.with_name("1-kernel.ptx").read_text()
    text, count = STATISTICS.subn(r"\1\n\ttcgen05.wait::st.sync.aligned;", ptx)
    launch.with_name("mended.ptx").write_text(text)
    other = launch.with_name("mended.json")
    other.write_text(json.dumps(json.loads(launch.read_text()) | {"ptx": "mended.ptx"}, indent=2))
    return other, count


def told(found):
    return ", ".join(f"{count} {kind}" for kind, count in collections.Counter(one["kind"] for one in found).items()) or "0 findings"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="+", type=pathlib.Path)
    parser.add_argument("--cutlass", type=pathlib.Path, required=True, help="a clone of NVIDIA/cutlass, v4.7.0")
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--mend", action="store_true", help="run each kernel again with the waits that it lacks")
    parser.add_argument("--hashes", type=pathlib.Path, help="adds the SHA-256 of each PTX to this file")
    options = parser.parse_args()
    failed = False
    for path in options.problem:
        given, metadata = safetensors.read(path)
        [launch], ptx = record(plan_of(given, metadata, options.cutlass), options.to, path.stem)
        made, found = run([launch])
        saved = launch.with_name("made.safetensors")
        safetensors.write(saved, {name: made[name] for name in ("out", "lse")})
        verdict = flashproof("audit", path, "--output", f"{saved}:out", "--lse", f"{saved}:lse").split()[0].rstrip(":")
        model = launch.with_name("emulated.safetensors")
        flashproof("emulate", "cutlass-fmha", path, "--save", model, "--quiet")
        emulated, _ = safetensors.read(model)
        wrong = {name: differing(made[name], emulated[name]) for name in ("out", "lse")}
        line = f"{path.stem}: audit {verdict}; out {wrong['out']}, lse {wrong['lse']} differ from the model; {told(found)}"
        if options.mend:
            other, count = mended(launch)
            again, left = run([other])
            same = sum(differing(made[name], again[name]) for name in ("out", "lse"))
            line += f"; with {count} waits more {same} elements differ, {told(left)}"
        print(line, flush=True)
        failed |= verdict != "PASS" or bool(found) or any(wrong.values())
        if options.hashes is not None:
            known = json.loads(options.hashes.read_text()) if options.hashes.exists() else {}
            known[path.stem] = hashlib.sha256(ptx.encode()).hexdigest()
            options.hashes.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
