"""Compiles host code with the kernels that it launches, and runs what it launches on the emulated machine."""

import hashlib, json, os, pathlib, re, subprocess, sys

from flashproof import safetensors

from configuration import MULTIPROCESSORS

HERE = pathlib.Path(__file__).parent
FLASHPROOF = os.environ.get("FLASHPROOF", "npx flashproof").split()
# Those of hopper/setup.py that decide about code; -lineinfo has the PTX name its source lines.
OPTIONS = """-O3 -std=c++17 --use_fast_math --expt-relaxed-constexpr --expt-extended-lambda -lineinfo -DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED
    -DCUTLASS_ENABLE_GDC_FOR_SM90 -DCUTLASS_DEBUG_TRACE_LEVEL=0 -DNDEBUG""".split()


def add_arguments(parser):
    parser.add_argument("problem", nargs="+", type=pathlib.Path)
    parser.add_argument("--sources", type=pathlib.Path, required=True, help="FlashAttention's repository, with its submodule csrc/cutlass")
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--multiprocessors", type=int, default=MULTIPROCESSORS, help="as of a GPU with so many: fewer give each CTA several tiles")
    parser.add_argument("--hashes", type=pathlib.Path, help="adds the SHA-256 of each PTX to this file")


def toolkit():
    import nvidia

    return pathlib.Path(next(iter(nvidia.__path__))) / "cu13"


def compiled(sources, source, macros, cache):
    """The PTX of a source of this folder, such as forward.cu, and the program that launches its kernels. What has been compiled is not compiled again."""
    stem = pathlib.Path(source).stem
    folder = cache / "-".join([stem, *(re.sub(r"\W+", "-", str(value)) for value in macros.values())])
    ptx, code, program = folder / f"{stem}.ptx", folder / f"{stem}.o", folder / stem
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        words = [toolkit() / "bin/nvcc", "-c", *OPTIONS, "-gencode", "arch=compute_90a,code=compute_90a", "--keep", "--keep-dir", folder]
        words += [f"-D{key}={value}" for key, value in macros.items()]
        words += ["-I", sources / "hopper", "-I", sources / "csrc/cutlass/include", "-o", code, HERE / source]
        done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"{folder.name}: nvcc failed\n{done.stdout}")
        for path in folder.iterdir():
            if path not in (ptx, code):
                path.unlink()
        words = ["g++", "-std=c++17", "-I", toolkit() / "include", HERE / "launches.cpp", code, "-o", program]
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
