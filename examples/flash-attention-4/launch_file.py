"""A launch file of flashproof from what host code gave to the driver: the bytes of a kernel's parameters."""

import re, struct

import tensor_map
from flashproof.launches import Launch

TENSOR_MAP_BYTES = 128


class Parameter:
    """A parameter as PTX declares it, and which of its bytes the kernel reads."""

    def __init__(self, name, type, size, alignment):
        self.name, self.type, self.size, self.alignment = name, type, size, alignment
        self.read = [False] * size


DECLARATION = re.compile(r"\.param (?:\.align (\d+) )?\.([a-z])(\d+) (\S+?)(?:\[(\d+)\])?,?$")
LOAD = re.compile(r"ld\.param(?:\.v(\d))?\.[a-z](\d+)\s.*\[(\S+?)(?:\+(\d+))?\];")


def parameters(ptx, entry):
    """The parameters of an entry, in order. Bytes that no instruction reads are padding, or of no use to this kernel."""
    start = ptx.index(f".entry {entry}(")
    head, body = ptx[start : ptx.index("\n{", start)], ptx[ptx.index("\n{", start) :]
    found = {}
    for line in head.split("\n")[1:]:
        match = DECLARATION.search(line.strip())
        if match:
            alignment, letter, bits, name, count = match.groups()
            size = int(bits) // 8 * int(count or 1)
            found[name] = Parameter(name, letter + bits, size, int(alignment or size))
    end = body.index("\n}")
    for line in body[:end].split("\n"):
        match = LOAD.search(line)
        if match:
            vector, bits, name, offset = match.groups()
            first, size = int(offset or 0), int(vector or 1) * int(bits) // 8
            found[name].read[first : first + size] = [True] * size
        elif "_param_" in line:  # its address is taken
            for name in re.findall(r"[\w$]+_param_\d+", line):
                found[name].read = [True] * found[name].size
    return list(found.values())


def pieces(data, parameter, place):
    """What a parameter of plain numbers and addresses holds, word by word."""
    position = 0
    while position < parameter.size:
        rest = parameter.size - position
        if rest >= 8 and position % 8 == 0 and parameter.alignment >= 8 and all(parameter.read[position : position + 8]):
            address, = struct.unpack_from("<Q", data, position)
            tensor, offset = place(address) or (None, 0)
            if tensor is not None:
                yield {"tensor": tensor, **({"byteOffset": offset} if offset else {})}
                position += 8
                continue
        size = 4 if rest >= 4 else 1
        word = bytes(byte if read else 0 for byte, read in zip(data[position:], parameter.read[position : position + size]))
        yield {f"u{8 * size}": int.from_bytes(word, "little")}
        position += size


def launch_parameter(data, parameter, place):
    if parameter.size == TENSOR_MAP_BYTES and parameter.alignment >= 64:
        return {"tensorMap": tensor_map.decode(data, place)}
    if parameter.type == "f32":
        return {"f32": struct.unpack("<f", data)[0]}
    members = list(pieces(data, parameter, place))
    return members[0] if len(members) == 1 else {"struct": members}


def launch_file(launch, place, outputs):
    """The launch file of what the driver was asked for. `outputs` are filled by `place`, which gives a tensor and an offset for an
    address."""
    declared = parameters(launch.ptx, launch.entry)
    given = [launch_parameter(data, parameter, place) for data, parameter in zip(launch.arguments, declared)]
    return Launch(launch.entry, launch.grid, launch.block, given, outputs, launch.shared_bytes, launch.cluster)
