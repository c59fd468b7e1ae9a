"""What a tensor map of TMA says, from its bits.

The host code of CuTe DSL packs a CUtensorMap by itself, without the driver. The places of the fields are read off what it
packs for tensors of known types, extents, strides and boxes; whatever else is set is refused.
"""

import struct

# elementType by its number in the map
ELEMENTS = {0: "u8", 2: "s32", 6: "f16", 7: "f32", 10: "bf16"}
SWIZZLES = ["none", "32B", "64B", "128B"]

# Set in every map, and set where the tensor has 2^17 bytes or more.
ALWAYS, LARGE = 0x40002, 0x200000


def field(number, first, bits):
    return number >> first & (1 << bits) - 1


def decode(data, place):
    """The arguments of cuTensorMapEncodeTiled as a launch file has them. `place(address)` gives the name of the tensor at an
    address, and the offset from its start in bytes."""
    address, flags, *low_strides, high_strides = struct.unpack_from("<Q6I", data)
    extents = struct.unpack_from("<5I", data, 32)
    element_strides = int.from_bytes(data[52:55], "little")
    boxes = struct.unpack_from("<5B", data, 55)

    rank, kind, swizzle = field(flags, 4, 3) + 1, field(flags, 7, 4), field(flags, 13, 2)
    rest = flags & ~(LARGE | 7 << 4 | 15 << 7 | 3 << 13)
    if rest != ALWAYS or element_strides != 0 or kind not in ELEMENTS:
        raise ValueError(f"a tensor map of flags {flags:#x} is not known here")
    strides = [16 * (low | field(high_strides, 4 * i, 4) << 32) for i, low in enumerate(low_strides)]
    tensor, offset = place(address)
    return {
        "tensor": tensor,
        **({"byteOffset": offset} if offset else {}),
        "elementType": ELEMENTS[kind],
        "globalDim": [extent + 1 for extent in extents[:rank]],
        "globalStrides": strides[: rank - 1],
        "boxDim": [box + 1 for box in boxes[:rank]],
        "swizzle": SWIZZLES[swizzle],
    }
