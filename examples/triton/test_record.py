"""The recorder without Triton: what it writes of a compiled kernel that is given."""

import json, pathlib, tempfile, unittest
from types import SimpleNamespace

import record

HERE = pathlib.Path(__file__).parent
SIGNATURE = {"q": "*bf16", "k": "*bf16", "v": "*bf16", "o": "*bf16", "lse": "*fp32", "scale": "fp32", "sq": "i32", "sk": "i32", "D": "constexpr"}


def compiled(target, **changes):
    """What Triton gives of the recorded kernel."""
    file = json.loads((HERE / "recorded" / target / "launch.json").read_text())
    metadata = dict(num_warps=4, num_ctas=1, shared=file["dynamicSharedBytes"], global_scratch_size=0, profile_scratch_size=0)
    return SimpleNamespace(
        asm={"ptx": (HERE / "recorded" / target / "kernel.ptx").read_text()},
        metadata=SimpleNamespace(**{**metadata, **changes}),
        src=SimpleNamespace(signature=SIGNATURE),
    )


def arguments():
    half = record.Raw("bfloat16", (1, 1, 70, 64), b"\xff" * 8960)
    lse = record.Raw("float32", (1, 1, 70), b"\x01\x02\x03\x04" * 70)
    return {"q": half, "k": half, "v": half, "o": half, "lse": lse, "scale": 0.125, "sq": 70, "sk": 70, "D": 64}


class Recorder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def written(self, name):
        return json.loads((self.folder / name).read_text())

    def test_writes_what_was_recorded(self):
        for target in ("sm_90", "sm_100"):
            recorded = HERE / "recorded" / target
            template = json.loads((recorded / "template.json").read_text())
            expressions = {
                "grid": template["grid"], "numbers": {"scale": "scale", "sq": "sq", "sk": "sk"},
                "outputs": {"o": "out", "lse": "lse"}, "formats": template["formats"], "requires": template["requires"],
            }
            record.record(self.folder, compiled(target), (2, 1), arguments(), ["o", "lse"], template=expressions)
            for name in ("launch.json", "template.json"):
                self.assertEqual(self.written(name), json.loads((recorded / name).read_text()))

    def test_tensors_are_safetensors(self):
        record.record(self.folder, compiled("sm_90"), (2,), arguments(), ["lse"], {"lse": b"\x05" * 280})
        data = (self.folder / "tensors.safetensors").read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        self.assertEqual(list(header), ["q", "k", "v", "o", "lse", "lse.fused"])
        self.assertEqual((header["lse"]["dtype"], header["lse"]["shape"]), ("F32", [1, 1, 70]))
        begin, end = header["lse"]["data_offsets"]
        self.assertEqual(data[8 + size + begin : 8 + size + end], b"\x01\x02\x03\x04" * 70)
        self.assertEqual(data[-280:], b"\x05" * 280)

    def test_clusters_and_scratch(self):
        record.record(self.folder, compiled("sm_90", num_ctas=2, global_scratch_size=96), (3, 2), arguments(), ["o"])
        file = self.written("launch.json")
        self.assertEqual((file["grid"], file["cluster"]), ([6, 2, 1], [2, 1, 1]))
        self.assertEqual(file["parameters"][-2:], [{"scratch": 3 * 2 * 96}, {"scratch": 0}])

    def test_numbers_that_json_does_not_hold(self):
        given = {**arguments(), "scale": float("-inf"), "sq": 2**60}
        record.record(self.folder, compiled("sm_90"), (1,), given, ["o"])
        self.assertEqual(self.written("launch.json")["parameters"][5:7], [{"f32": "-inf"}, {"s32": str(2**60)}])

    def test_launches_are_recorded_with_what_came_of_them(self):
        """The kernel is one that writes its arguments, in the place of a GPU."""
        class Kernel:
            arg_names = [*SIGNATURE]

            def __getitem__(self, grid):
                def run(o, **others):
                    o.data = b"\x07" * 8960
                    return compiled("sm_90")
                return run

        record.launch(self.folder, Kernel(), (2,), {**arguments(), "o": record.Raw("bfloat16", (1, 1, 70, 64), b"\x06" * 8960)}, ["o"])
        data = (self.folder / "tensors.safetensors").read_bytes()
        self.assertEqual((data.count(b"\x06" * 8960), data.count(b"\x07" * 8960)), (1, 1))

    def test_refuses_parameters_that_it_does_not_know(self):
        strange = compiled("sm_90")
        strange.src.signature = {**SIGNATURE, "k": "tensordesc<bf16[64,64]>"}
        with self.assertRaisesRegex(ValueError, "k is tensordesc"):
            record.record(self.folder, strange, (1,), arguments(), ["o"])
        strange.src.signature = {name: kind for name, kind in SIGNATURE.items() if name not in ("sq", "sk", "lse")}
        with self.assertRaisesRegex(ValueError, "10 parameters, and 7 are known"):
            record.record(self.folder, strange, (1,), arguments(), ["o"])


if __name__ == "__main__":
    unittest.main()
