"""What needs flashproof's package alone: parameters of PTX, tensor maps."""

import struct, unittest

import launch_file, tensor_map
from launch_file import parameters

PTX = """
.visible .entry attend(
	.param .align 8 .b8 attend_param_0[16],
	.param .align 64 .b8 attend_param_1[128],
	.param .f32 attend_param_2,
	.param .align 4 .b8 attend_param_3[12]
)
.reqntid 128, 1, 1
{
	ld.param.b64 	%rd1, [attend_param_0+8];
	ld.param.b32 	%r1, [attend_param_0];
	mov.b64 	%rd2, attend_param_1;
	ld.param.b32 	%r2, [attend_param_3];
	ld.param.v2.b8 	{%rs1, %rs2}, [attend_param_3+8];
	ret;
}
"""


def place(address):
    """A tensor at 2^40, of less than 2^20 bytes."""
    return ("q", address - 2**40) if 0 <= address - 2**40 < 2**20 else None


# What CuTe DSL packs for bf16 [1, 2, 256, 64] of heads side by side, at 2^40, boxes of 64 × 128 in a swizzle of 128 bytes.
MAP = bytes.fromhex(
    "0000000000010000 32650400 10000000 08000000 00100000 00000000 00000000"
    "3f000000 ff000000 01000000 00000000 00000000 0000003f 7f000000 00000000"
).ljust(128, b"\xcc")


class Parameters(unittest.TestCase):
    def test_are_as_declared(self):
        found = [(one.type, one.size, one.alignment) for one in parameters(PTX, "attend")]
        self.assertEqual(found, [("b8", 16, 8), ("b8", 128, 64), ("f32", 4, 4), ("b8", 12, 4)])

    def test_know_which_bytes_are_read(self):
        first, second, third, last = parameters(PTX, "attend")
        self.assertEqual(first.read, [True] * 4 + [False] * 4 + [True] * 8)
        self.assertTrue(all(second.read))
        self.assertFalse(any(third.read))
        self.assertEqual(last.read, [True] * 4 + [False] * 4 + [True] * 2 + [False] * 2)

    def test_become_those_of_a_launch_file(self):
        data = [
            struct.pack("<IIQ", 7, 0xDEAD, 2**40 + 32),
            MAP,
            struct.pack("<f", 0.125),
            struct.pack("<IIBBH", 3, 0xDEAD, 1, 2, 0xBEEF),
        ]
        declared = parameters(PTX, "attend")
        written = [launch_file.launch_parameter(*pair, place) for pair in zip(data, declared)]
        # What is not read is 0, whatever lay there.
        self.assertEqual(written[0], {"struct": [{"u32": 7}, {"u32": 0}, {"tensor": "q", "byteOffset": 32}]})
        self.assertEqual(written[1]["tensorMap"]["tensor"], "q")
        self.assertEqual(written[2], {"f32": 0.125})
        self.assertEqual(written[3], {"struct": [{"u32": 3}, {"u32": 0}, {"u32": 0x0201}]})


class TensorMaps(unittest.TestCase):
    def test_are_read(self):
        self.assertEqual(
            tensor_map.decode(MAP, place),
            {
                "tensor": "q",
                "elementType": "bf16",
                "globalDim": [64, 256, 2, 1],
                "globalStrides": [256, 128, 65536],
                "boxDim": [64, 128, 1, 1],
                "swizzle": "128B",
            },
        )

    def test_have_strides_of_36_bits(self):
        data = bytearray(MAP)
        data[28] = 0x21  # the upper halves of the first two strides, a nibble each
        self.assertEqual(tensor_map.decode(bytes(data), place)["globalStrides"][:2], [256 + 2**36, 128 + 2**37])

    def test_with_other_fields_are_refused(self):
        for byte, value in [(8, 0x33), (10, 0x05), (52, 1), (9, 0x66)]:  # flags, element strides, an unknown type
            data = bytearray(MAP)
            data[byte] = value
            with self.assertRaises(ValueError):
                tensor_map.decode(bytes(data), place)


if __name__ == "__main__":
    unittest.main()
