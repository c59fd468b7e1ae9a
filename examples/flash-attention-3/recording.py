"""Launch files of flashproof from what launches.cpp wrote down: the bytes of each kernel's parameter, and its tensor maps."""

import json, os, re, struct, subprocess

from flashproof.launches import Launch, write_launch, write_tensors
from flashproof.safetensors import Array

ELEMENT_TYPES = ["uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "bfloat16"]  # CUtensorMapDataType
SWIZZLES = ["none", "32B", "64B", "128B"]
MAP_BYTES, MARK = 128, b"flashmap"


def entries(ptx):
    """The size of each kernel's parameter, by the kernel's name."""
    return dict(re.findall(r"\.entry (\w+)\(\s*\.param \.align \d+ \.b8 \w+\[(\d+)\]", ptx))


def read_bytes(ptx, entry):
    """The bytes of a kernel's parameter that it loads. What host code leaves unwritten, padding, is not among them, nor are tensor maps, whose address it takes."""
    body = ptx.split(f".entry {entry}(")[1].split(".entry ")[0]
    bases = {f"{entry}_param_0": 0, **dict.fromkeys(re.findall(rf"mov\.b64\s+(%\w+), {entry}_param_0;", body), 0)}
    for register, base, offset in re.findall(r"add\.s64\s+(%\w+), (%\w+), (-?\d+);", body):
        if base in bases:
            bases[register] = bases[base] + int(offset)
    loads = re.findall(r"\bld\.param(?:\.v(\d))?\.[a-z](\d+)\s+[^\[]*\[([%\w]+)(?:\+(-?\d+))?\]", body)
    if len(loads) != len(re.findall(r"\bld\.param\b", body)) or any(base not in bases for _, _, base, _ in loads):
        raise ValueError(f"{entry} loads its parameter from an address that is not known here")
    found = set()
    for count, bits, base, offset in loads:
        start = bases[base] + int(offset or 0)
        found.update(range(start, start + int(count or 1) * int(bits) // 8))
    return found


def launched(program, ptx, folder, numbers):
    """What the host code launches: the tensors that it allocates, tensor maps, launches."""
    lines, allocated = folder / "launched.jsonl", folder / "allocated.txt"
    for path in (lines, allocated):
        path.unlink(missing_ok=True)
    known = " ".join(f"{name} {size}" for name, size in entries(ptx).items())
    words = [str(program), str(folder), *(f"{name}={value}" for name, value in numbers.items())]
    subprocess.run(words, check=True, env=os.environ | {"FLASH_LAUNCHES": str(lines), "FLASH_ENTRIES": known})
    tensors = [(name, int(address, 16), int(size), int(fill)) for name, address, size, fill in map(str.split, allocated.read_text().splitlines())]
    said = [json.loads(line) for line in lines.read_text().splitlines()]
    return tensors, {one["map"]: one for one in said if "map" in one}, [one for one in said if "entry" in one]


def place(address, tensors):
    """The tensor at an address, and the offset in it; None for what is no address."""
    return next(({"tensor": name, **({"byteOffset": address - start} if address > start else {})}
                 for name, start, size, _ in tensors if start <= address <= start + size), None)


def tensor_map(said, tensors):
    if said["interleave"] or said["fill"] or any(one != 1 for one in said["elementStrides"]):
        raise ValueError(f"a tensor map that is not known here: {said}")
    names = ("globalDim", "globalStrides", "boxDim")
    return {"tensorMap": {
        **place(said["address"], tensors), "elementType": ELEMENT_TYPES[said["type"]],
        **{name: said[name] for name in names}, "swizzle": SWIZZLES[said["swizzle"]],
    }}


def parameter(data, read, tensors, maps):
    """A struct as a launch file has it: tensor maps, addresses, and everything else as numbers of 32 bits, 0 where no byte is read."""
    members, at = [], 0
    while at < len(data):
        found = None
        if data[at : at + len(MARK)] == MARK:
            members.append(tensor_map(maps[struct.unpack_from("<Q", data, at + 16)[0]], tensors))
            at += MAP_BYTES
            continue
        if at % 8 == 0 and at + 8 <= len(data):
            found = place(struct.unpack_from("<Q", data, at)[0], tensors)
        word = bytes(data[i] if i in read else 0 for i in range(at, at + 4))
        members.append(found or {"u32": int.from_bytes(word, "little")})
        at += 8 if found else 4
    return {"struct": members}


def record(program, ptx, folder, given, shapes, numbers):
    """Writes the launch files of a problem, in order, and its tensors; their paths.

    `given` are the tensors that the host code reads, `shapes` dtype and shape of those that the kernels write."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, tensor in given.items():
        (folder / f"{name}.bin").write_bytes(tensor.data)
    tensors, maps, launches = launched(program, ptx, folder, numbers)
    stored = {name: given[name] if name in given else Array.filled(*shapes[name], fill) for name, _, _, fill in tensors}
    written = [name for name in stored if name not in given]
    paths = []
    for i, one in enumerate(launches, 1):
        whole = parameter(bytes.fromhex(one["parameter"]), read_bytes(ptx, one["entry"]), tensors, maps)
        text = json.dumps(whole)
        launch = Launch(one["entry"], one["grid"], one["block"], [whole], [name for name in written if f'"{name}"' in text], one["shared"], one["cluster"])
        paths.append(write_launch(folder, ptx, launch, f"{i}-"))
    write_tensors(folder, stored)
    return paths
