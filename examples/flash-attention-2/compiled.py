"""Compiles FlashAttention-2's kernels with nvcc, and runs them by `flashproof run`."""

import hashlib, json, os, pathlib, re, subprocess, sys

from flashproof import safetensors

HERE = pathlib.Path(__file__).parent
FLASHPROOF = os.environ.get("FLASHPROOF", "npx flashproof").split()
BUILDS = {"pytorch": ["-DUNFUSE_FMA"], "flash-attn": ["--use_fast_math"]}


def add_arguments(parser):
    parser.add_argument("problem", nargs="+", type=pathlib.Path)
    parser.add_argument("--sources", type=pathlib.Path, required=True, help="FlashAttention's source package, unpacked")
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--build", default="pytorch", choices=list(BUILDS))
    parser.add_argument("--hashes", type=pathlib.Path, help="adds the SHA-256 of each PTX and of what it gave to this file")


def ptx_of(source, options, macros, struct_bytes):
    """The PTX of a source for these macros; what has been compiled is not compiled again. `struct_bytes`: what the kernel is to take."""
    key = hashlib.sha256(json.dumps([source, options.build, macros]).encode()).hexdigest()[:12]
    path = options.to / "ptx" / f"{source}-{options.build}-{macros['DIM']}-{key}.ptx"
    if not path.exists():
        import nvidia

        toolkit = pathlib.Path(next(iter(nvidia.__path__))) / "cu13"
        words = [toolkit / "bin/nvcc", "-ptx", "-arch=sm_80", "-std=c++17", "--expt-relaxed-constexpr", "--expt-extended-lambda"]
        words += ["-DNDEBUG", *BUILDS[options.build], *(f"-D{key}={value}" for key, value in macros.items())]
        words += ["-I", HERE / "stubs", "-I", options.sources / "csrc/flash_attn/src", "-I", options.sources / "csrc/cutlass/include"]
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        subprocess.run([*map(str, words), "-o", str(unfinished), str(HERE / f"{source}.cu")], check=True, stderr=subprocess.DEVNULL)
        unfinished.rename(path)
    ptx = path.read_text()
    declared = int(re.search(r"\w+_param_0\[(\d+)\]", ptx)[1])
    if declared != struct_bytes:
        sys.exit(f"the kernel's struct has {declared} bytes, and {struct_bytes} are known here; is this version 2.8.3?")
    return ptx


def keep_hashes(options, name, launches, made):
    """Adds the hashes of a problem to the file that is named for them: of the PTX, and of tensors by their names."""
    if options.hashes is None:
        return
    sha256 = lambda data: hashlib.sha256(data).hexdigest()
    known = json.loads(options.hashes.read_text()) if options.hashes.exists() else {}
    ptx = launches[0].parent / json.loads(launches[0].read_text())["ptx"]
    known[name] = {"ptx": sha256(ptx.read_bytes()), **{tensor: sha256(array.data) for tensor, array in made.items()}}
    options.hashes.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def number_in(ptx, name):
    """A constant that the source leaves for who launches it."""
    return int(re.search(rf"{name} = (\d+)", ptx)[1])


def flashproof(*words):
    """What a command printed. Status 1 is its verdict, others end this program."""
    done = subprocess.run([*FLASHPROOF, *map(str, words)], capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(done.stderr.strip())
    return done.stdout


def run(launches, build):
    """What the launches wrote, each reading what those before it left, and how many findings they had. --use_fast_math leaves it to ptxas to
    make one operation of a multiplication and an addition, which ptxas 13.0 does wherever it may (README.md)."""
    tensors, _ = safetensors.read(launches[0].parent / "tensors.safetensors")
    findings = 0
    for launch in launches:
        before, after = (launch.with_suffix(f".{when}.safetensors") for when in ("before", "after"))
        safetensors.write(before, tensors)
        contract = ["--contract"] if build == "flash-attn" else []
        printed = flashproof("run", launch, "--tensors", before, "--save", after, "--architecture", "sm_90", *contract)
        findings += int(re.search(r"^([\d,]+) findings?", printed, re.M)[1].replace(",", ""))
        tensors |= safetensors.read(after)[0]
    return tensors, findings


def differing(left, right):
    """How many elements have other bits."""
    size = safetensors.ELEMENT_BITS[left.dtype] // 8
    return sum(left.data[i : i + size] != right.data[i : i + size] for i in range(0, len(left.data), size))
