"""Compiles CUDA programs with nvcc, records what their host code launches, without a GPU, and runs that with `flashproof run`."""

import json, math, os, pathlib, re, subprocess, sys
from dataclasses import dataclass

from flashproof import safetensors
from flashproof.launches import Launch, write_launch, write_tensors

HERE = pathlib.Path(__file__).parent
FLASHPROOF = os.environ.get("FLASHPROOF", "npx flashproof").split()
ELEMENT_TYPES = ["uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "bfloat16"]
SWIZZLES, PROMOTIONS = ["none", "32b", "64b", "128b"], ["none", "l2_64b", "l2_128b", "l2_256b"]
# What the recorder leaves for a tensor map: its number, a word in which CUTLASS clears a bit for older drivers, and this.
MARK = b"\xa5" * 112
# Findings that are worth a look and no fault (`flashproof run` counts them apart).
HINTS = {"uninitialised", "overwritten-unread", "unfenced-initialisation", "repeated-wait", "stray-commit"}


@dataclass(frozen=True)
class Plan:
    """A program and what it is given: source, flags and macros for nvcc; numbers, tensors, and what it gives (dtype and shape by name)."""

    source: pathlib.Path
    flags: tuple
    macros: dict
    numbers: dict
    tensors: dict
    results: dict
    gpu: str = "sm_90"


def toolkit():
    import nvidia

    return pathlib.Path(next(iter(nvidia.__path__))) / "cu13"


def checked(words, **options):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{words[0]}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout + done.stderr


def built(plan, cache):
    """The folder of a program: `recorder`, `program` (for a GPU), the PTX, and its kernels. What has been compiled is not compiled again."""
    name = "-".join([plan.source.stem, *(re.sub(r"\W+", "", f"{value}") for value in plan.macros.values())])
    folder = cache / name
    if (folder / "program").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    macros = [f"-D{key}={value}" for key, value in plan.macros.items()]
    words = [toolkit() / "bin/nvcc", "-c", "-std=c++17", "--expt-relaxed-constexpr", f"-gencode=arch=compute_{plan.gpu[3:]}a,code={plan.gpu}a"]
    words += [*plan.flags, *macros, "-I", HERE, "--keep", "--keep-dir", folder, "-Xptxas", "-v", "-o", folder / "object.o", plan.source]
    said = checked(words)
    ptx = next(folder.glob("*.ptx")).read_text()
    registers = dict(re.findall(r"entry function '(\w+)'.*?Used (\d+) registers", said, re.S))
    heads = dict(re.findall(r"\.entry (\w+)\((.*?)\n\)", ptx, re.S))
    lines = [" ".join([entry, registers[entry], *(f"{size_of(one)}" for one in re.findall(r"\.param ([^,]+)", head))]) for entry, head in heads.items()]
    (folder / "kernels.txt").write_text("\n".join(lines) + "\n")
    (folder / "kernel.ptx").write_text(ptx)
    host = ["g++", "-std=c++17", "-O1", "-I", toolkit() / "include", folder / "object.o"]
    checked([*host, HERE / "recorder.cpp", "-o", folder / "recorder"])
    checked([*host, "-L", toolkit() / "lib", "-lcudart_static", "-lpthread", "-ldl", "-lrt", "-o", folder / "program"])
    for kept in folder.glob(f"{plan.source.stem}.*"):
        kept.unlink()
    return folder


def size_of(declared):
    """Bytes of a parameter as PTX declares it."""
    array = re.search(r"\.b8 \w+\[(\d+)\]", declared)
    return int(array[1]) if array else int(re.search(r"\.[busf](\d+)", declared)[1]) // 8


def tensor_map(words, tensors):
    """A tensor map as a launch file has it, from what the recorder tells of its arguments."""
    at, kind, interleave, swizzle, promotion, fill, *dimensions = words
    name, start = next((name, start) for name, (start, size) in tensors.items() if start <= int(at, 16) <= start + size)
    sizes, strides, box, steps = zip(*(map(int, one.split(",")) for one in dimensions))
    if int(interleave) or int(fill):
        sys.exit("interleaved tensor maps, and NaN outside of the tensor, are not recorded")
    arguments = {
        "tensor": name, "byteOffset": int(at, 16) - start, "elementType": ELEMENT_TYPES[int(kind)], "globalDim": sizes,
        "globalStrides": strides[1:], "boxDim": box, "elementStrides": steps, "swizzle": SWIZZLES[int(swizzle)],
        "l2Promotion": PROMOTIONS[int(promotion)],
    }
    return {"tensorMap": arguments}


def parameter(data, tensors, maps):
    """A parameter of a launch file from its bytes: whatever is an address in a tensor is that tensor, all else are numbers."""

    def pointer(at):
        address = int.from_bytes(data[at : at + 8], "little")
        for name, (start, size) in tensors.items():
            if start <= address <= start + size:
                return {"tensor": name, "byteOffset": address - start}
        return None

    members, at = [], 0
    while at < len(data):
        if at % 64 == 0 and data[at + 16 : at + 128] == MARK:
            members.append(maps[int.from_bytes(data[at : at + 8], "little")])
            at += 128
            continue
        found = pointer(at) if at % 8 == 0 and at + 8 <= len(data) else None
        width = 8 if found else min(4, len(data) - at)
        kind = {4: "u32", 2: "u16", 1: "u8"}
        members.append(found or {kind[width]: int.from_bytes(data[at : at + width], "little")})
        at += width
    if len(members) == 1:
        return members[0]
    return {"u64": str(int.from_bytes(data, "little"))} if len(data) == 8 else {"struct": members}


def record(plan, to, name):
    """Writes the launches of a problem to the folder `name`; their files in order."""
    program = built(plan, to / "built")
    folder = to / name
    folder.mkdir(parents=True, exist_ok=True)
    for tensor, array in plan.tensors.items():
        (folder / f"{tensor}.bin").write_bytes(array.data)
    (folder / "kernels.txt").write_text((program / "kernels.txt").read_text())
    numbers = [f"{key}={value!r}" for key, value in plan.numbers.items()]
    # How a GPU would run it: `built/PROGRAM/program FOLDER NUMBERS`.
    (folder / "run.txt").write_text(" ".join([program.name, *numbers]) + "\n")
    told = checked([program / "recorder", folder, *numbers], env={**os.environ, "RECORD": str(folder), "RECORD_GPU": plan.gpu}).splitlines()
    places = [line.split()[1:] for line in told if line.startswith("tensor ")]
    tensors = {tensor: (int(at, 16), int(size)) for tensor, at, size in places}
    maps = [tensor_map(line.split()[2:], tensors) for line in told if line.startswith("map ")]
    kept = {}
    for tensor, at, size in places:
        memory = folder / f"{at}.memory"
        kind, shape = plan.results.get(tensor, ("U8", (int(size),)))
        kept[tensor] = plan.tensors.get(tensor) or safetensors.Array(kind, shape, memory.read_bytes())
        memory.unlink()
    ptx = (program / "kernel.ptx").read_text()
    files = []
    launched = [line for line in told if line.startswith("launch ")]
    for i, line in enumerate(launched, 1):
        entry, *words = line.split()[1:]
        grid, block, cluster = (list(map(int, words[at : at + 3])) for at in (0, 3, 6))
        parameters = [parameter(bytes.fromhex(word), tensors, maps) for word in words[10:]]
        # What launches leave one another is an output of all but the last.
        written = [tensor for tensor in kept if tensor in plan.results or (tensor not in plan.tensors and i < len(launched))]
        launch = Launch(entry, grid, block, parameters, written, int(words[9]), cluster if math.prod(cluster) > 1 else None)
        files.append(write_launch(folder, ptx, launch, f"{i}-"))
    write_tensors(folder, kept)
    return files, ptx


def flashproof(*words):
    """What a command printed."""
    done = subprocess.run([*FLASHPROOF, *map(str, words)], capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(done.stderr.strip())
    return done.stdout


def run(launches, *options):
    """What the launches wrote, each reading what those before it left, and the findings that they had."""
    tensors, _ = safetensors.read(launches[0].parent / "tensors.safetensors")
    findings = []
    for launch in launches:
        before, after, report = (launch.with_suffix(f".{ending}") for ending in ("before.safetensors", "after.safetensors", "report.json"))
        safetensors.write(before, tensors)
        flashproof("run", launch, "--tensors", before, "--save", after, "--json", report, *options)
        findings += [one for one in json.loads(report.read_text())["findings"] if one["kind"] not in HINTS]
        tensors |= safetensors.read(after)[0]
    return tensors, findings


def differing(left, right):
    """How many elements have other bits."""
    size = safetensors.ELEMENT_BITS[left.dtype] // 8
    return sum(left.data[i : i + size] != right.data[i : i + size] for i in range(0, len(left.data), size))


def heads_first(array):
    """[batch, queries, heads, …] as [batch, heads, queries, …]."""
    batch, queries, heads, *rest = array.shape
    size = math.prod(rest) * safetensors.ELEMENT_BITS[array.dtype] // 8
    places = [((b * queries + q) * heads + h) * size for b in range(batch) for h in range(heads) for q in range(queries)]
    return safetensors.Array(array.dtype, (batch, heads, queries, *rest), b"".join(array.data[at : at + size] for at in places))
