"""Compiles FlashInfer's attention kernels with nvcc, runs them on the emulated machine, audits what they give, and compares the single prefill bit
for bit with `flashproof emulate flashinfer`.

    python attend.py problem.safetensors … --sources site-packages/flashinfer/data --to recorded
    python attend.py problem.safetensors … --sources site-packages/flashinfer/data --to recorded --backend fa3

A cache in pages goes to the batch prefill, with one query of each sequence to the decode kernel, all else to the single prefill. The exit status is 1
where a bit differs, an audit fails, or the machine finds something.
"""

import argparse, collections, hashlib, json, pathlib, struct, sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "record-cuda"))

from flashproof import safetensors

from plans import plan_of
from record import differing, flashproof, heads_first, record, run

FORMATS = {"BF16": "bf16", "F16": "fp16"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="+", type=pathlib.Path)
    parser.add_argument("--sources", type=pathlib.Path, required=True, help="the folder data of the package flashinfer-python")
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--backend", default="fa2", choices=["fa2", "fa3"])
    parser.add_argument("--gpu", type=pathlib.Path, help="what a GPU gave: NAME/out.bin and lse.bin of each recorded problem")
    parser.add_argument("--hashes", type=pathlib.Path, help="adds the SHA-256 of each PTX to this file")
    return parser.parse_args()


def premises(source, launches, dtype):
    """What an audit has to know: FlashInfer adds up rounded weights, and keeps the outputs of parts in the format of the inputs."""
    own = {"decode": "weights=fp32", "hopper": "rowSum=before-rounding"}.get(source, "rowSum=after-rounding")
    return own + (f",partials={FORMATS[dtype]}" if launches > 1 else "")


def compared(path, saved):
    """In how many elements `emulate flashinfer` differs."""
    model = saved.with_name("emulated.safetensors")
    flashproof("emulate", "flashinfer", path, "--set", "splits=auto", "--save", model, "--quiet")
    emulated, _ = safetensors.read(model)
    made, _ = safetensors.read(saved)
    return {"out": differing(made["out"], emulated["out"]), "lse": differing(natural(made["lse"]), emulated["lse"])}


def natural(lse):
    """LSEs in base 2 as natural ones: one product in fp32."""
    numbers = struct.unpack(f"<{len(lse.data) // 4}f", lse.data)
    ln2 = struct.unpack("<f", struct.pack("<f", 0.6931471805599453))[0]
    return safetensors.Array("F32", lse.shape, struct.pack(f"<{len(numbers)}f", *(x * ln2 for x in numbers)))


def main():
    options = arguments()
    failed = False
    for path in options.problem:
        given, metadata = safetensors.read(path)
        plan = plan_of(given, metadata, options.sources, options.backend)
        name = plan.source.stem
        launches, ptx = record(plan, options.to, f"{name}-{path.stem}")
        # ptxas makes one operation of every pair of a multiplication and an addition in these kernels.
        made, found = run(launches, "--contract")
        saved = launches[0].parent / "made.safetensors"
        out = made["out"] if metadata.get("layout") == "bshd" else heads_first(made["out"])
        safetensors.write(saved, {"out": out, "lse": heads_first(made["lse"])})
        words = ["--output", f"{saved}:out", "--lse", f"{saved}:lse", "--lse-base", "2"]
        verdict = flashproof("audit", path, *words, "--premise", premises(name, len(launches), given["q"].dtype)).split()[0].rstrip(":")
        counts = compared(path, saved) if name == "single" else None
        model = "not modelled" if counts is None else f"out {counts['out']}, lse {counts['lse']} differ from the model"
        gpu = options.gpu and options.gpu / saved.parent.name
        if gpu and gpu.exists():
            given_there = {one: safetensors.Array(made[one].dtype, made[one].shape, (gpu / f"{one}.bin").read_bytes()) for one in ("out", "lse")}
            there = {one: differing(made[one], given_there[one]) for one in given_there}
            model += f"; out {there['out']}, lse {there['lse']} differ from the GPU's"
            failed |= any(there.values())
        kinds = collections.Counter(one["kind"] for one in found)
        told = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "0 findings"
        parts = "" if len(launches) == 1 else ", in parts"
        print(f"{name} {path.stem}{parts}: audit {verdict}; {model}; {told}", flush=True)
        failed |= verdict != "PASS" or any((counts or {}).values()) or bool(found)
        if options.hashes is not None:
            known = json.loads(options.hashes.read_text()) if options.hashes.exists() else {}
            known[f"{name} {path.stem}"] = hashlib.sha256(ptx.encode()).hexdigest()
            options.hashes.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
