"""Compiles FlashAttention-3's forward kernels with nvcc, records their launches for `flashproof run`, and compares what they give with what
an H200 gave where that is known, or with `flashproof emulate fa3`, bit for bit.

    python forward.py problem.safetensors … --sources flash-attention --to recorded

The exit status is 1 where a bit differs or the machine finds something.
"""

import argparse, hashlib, json, math, os, pathlib, re, subprocess, sys, tempfile

from flashproof import safetensors

from configuration import MULTIPROCESSORS, configuration
from recording import record

HERE = pathlib.Path(__file__).parent
CAPTURED = HERE / "../../fixtures/flash-attention-3/bundled.safetensors"
FLASHPROOF = os.environ.get("FLASHPROOF", "npx flashproof").split()
# Those of hopper/setup.py that decide about code; -lineinfo has the PTX name its source lines.
OPTIONS = """-O3 -std=c++17 --use_fast_math --expt-relaxed-constexpr --expt-extended-lambda -lineinfo -DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED
    -DCUTLASS_ENABLE_GDC_FOR_SM90 -DCUTLASS_DEBUG_TRACE_LEVEL=0 -DNDEBUG""".split()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="+", type=pathlib.Path)
    parser.add_argument("--sources", type=pathlib.Path, required=True, help="FlashAttention's repository, with its submodule csrc/cutlass")
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--splits", type=int, help="parts of the keys, instead of FlashAttention-3's own choice")
    parser.add_argument("--multiprocessors", type=int, default=MULTIPROCESSORS, help="as of a GPU with so many: fewer give each CTA several tiles")
    parser.add_argument("--hashes", type=pathlib.Path, help="adds the SHA-256 of each PTX to this file")
    return parser.parse_args()


def toolkit():
    import nvidia

    return pathlib.Path(next(iter(nvidia.__path__))) / "cu13"


def compiled(sources, macros, cache):
    """The PTX of a kernel and the program that launches it. What has been compiled is not compiled again."""
    name = "-".join(re.sub(r"\W+", "-", str(value)) for value in macros.values())
    folder = cache / name
    ptx, program = folder / "forward.ptx", folder / "forward"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        words = [toolkit() / "bin/nvcc", "-c", *OPTIONS, "-gencode", "arch=compute_90a,code=compute_90a", "--keep", "--keep-dir", folder]
        words += [f"-D{key}={value}" for key, value in macros.items()]
        words += ["-I", sources / "hopper", "-I", sources / "csrc/cutlass/include", "-o", folder / "forward.o", HERE / "forward.cu"]
        done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"{name}: nvcc failed\n{done.stdout}")
        for path in folder.iterdir():
            if path.name not in ("forward.ptx", "forward.o"):
                path.unlink()
        words = ["g++", "-std=c++17", "-I", toolkit() / "include", HERE / "launches.cpp", folder / "forward.o", "-o", program]
        subprocess.run([*map(str, words)], check=True)
    return ptx.read_text(), program


def keep_hash(options, name, ptx):
    """The SHA-256 of a PTX without what follows from paths of this machine: the lines that name its sources, and nvcc's number of the source in names."""
    if options.hashes is None:
        return
    code = "".join(line for line in ptx.splitlines(True) if not re.match(r"\s*\.(file|loc)\s", line))
    code = re.sub(r"(_INTERNAL_|_GLOBAL__N__)[0-9a-f]{8}", r"\1", code)
    known = json.loads(options.hashes.read_text()) if options.hashes.exists() else {}
    known[name] = hashlib.sha256(code.encode()).hexdigest()
    options.hashes.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def flashproof(*words):
    """What a command printed."""
    done = subprocess.run([*FLASHPROOF, *map(str, words)], capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(done.stderr.strip())
    return done.stdout


def run(launches):
    """What the launches wrote, each reading what those before it left, and how many findings they had."""
    tensors, _ = safetensors.read(launches[0].parent / "tensors.safetensors")
    findings = 0
    for launch in launches:
        before, after = (launch.with_suffix(f".{when}.safetensors") for when in ("before", "after"))
        safetensors.write(before, tensors)
        # The assembler makes one operation of a multiplication and an addition; nvcc leaves it to it.
        printed = flashproof("run", launch, "--tensors", before, "--save", after, "--contract")
        launch.with_suffix(".txt").write_text(printed)
        findings += int(re.search(r"^([\d,]+) findings?", printed, re.M)[1].replace(",", ""))
        tensors |= safetensors.read(after)[0]
    return tensors, findings


def differing(left, right):
    size = safetensors.ELEMENT_BITS[left.dtype] // 8
    return sum(left.data[i : i + size] != right.data[i : i + size] for i in range(0, len(left.data), size))


def expected(path, given, splits):
    """O and LSE of a problem, and whose they are."""
    captured, _ = safetensors.read(CAPTURED)
    for prefix, tensors in (("fa3", given), (path.stem, captured)):
        if f"{prefix}.out" in tensors:
            return {name: tensors[f"{prefix}.{name}"] for name in ("out", "lse")}, "an H200"
    with tempfile.TemporaryDirectory() as folder:
        emulated = pathlib.Path(folder) / "emulated.safetensors"
        flashproof("emulate", "fa3", path, "--save", emulated, "--quiet", "--set", f"splits={splits}")
        return safetensors.read(emulated)[0], "emulate fa3"


def main():
    options = arguments()
    failed = False
    for path in options.problem:
        given, metadata = safetensors.read(path)
        q, k, v = (given[name] for name in "qkv")
        macros, numbers = configuration(q, k, v, metadata, options.splits, options.multiprocessors)
        ptx, program = compiled(options.sources, macros, options.to / "compiled")
        splits, output = numbers["splits"], "BF16" if q.dtype == "F8_E4M3" else q.dtype
        out, lse = (*q.shape[:-1], v.shape[-1]), q.shape[:-1]
        shapes = {
            "out": (output, out), "lse": ("F32", lse), "next_tile": ("I32", (1,)),
            "out_partial": ("F32", (splits, *out)), "lse_partial": ("F32", (splits, *lse)),
        }
        folder = options.to / path.stem
        launches = record(program, ptx, folder, {"q": q, "k": k, "v": v}, shapes, numbers)
        keep_hash(options, path.stem, ptx)
        made, findings = run(launches)
        wanted, whose = expected(path, given, splits)
        wrong = {name: differing(made[name], wanted[name]) for name in ("out", "lse")}
        counts = ", ".join(f"{name} {count} of {math.prod(made[name].shape):,}" for name, count in wrong.items())
        print(f"{path.stem}{f', {splits} splits' if splits > 1 else ''}: {counts} differ from {whose}; {findings} findings", flush=True)
        failed |= any(wrong.values()) or findings > 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
