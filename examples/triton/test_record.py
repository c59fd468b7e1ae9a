"""The recorder without Triton: from the PTX that was recorded it writes the same launch files."""

import json, pathlib, tempfile, unittest
from types import SimpleNamespace

from flashproof import Array
from flashproof.triton import record_compiled

HERE = pathlib.Path(__file__).parent
SIGNATURE = {"q": "*bf16", "k": "*bf16", "v": "*bf16", "o": "*bf16", "lse": "*fp32", "scale": "fp32", "sq": "i32", "sk": "i32", "D": "constexpr"}


def compiled(target):
    """What Triton gives of the recorded kernel."""
    file = json.loads((HERE / "recorded" / target / "launch.json").read_text())
    shared = file["dynamicSharedBytes"]
    return SimpleNamespace(
        asm={"ptx": (HERE / "recorded" / target / "kernel.ptx").read_text()},
        metadata=SimpleNamespace(num_warps=4, num_ctas=1, shared=shared, global_scratch_size=0, profile_scratch_size=0),
        src=SimpleNamespace(signature=SIGNATURE),
    )


class Recorder(unittest.TestCase):
    def test_writes_what_was_recorded(self):
        half, lse = Array.filled("BF16", (1, 1, 70, 64), 0xFF), Array.filled("F32", (1, 1, 70), 0xFF)
        arguments = {"q": half, "k": half, "v": half, "o": half, "lse": lse, "scale": 0.125, "sq": 70, "sk": 70, "D": 64}
        for target in ("sm_90", "sm_100", "sm_120"):
            recorded = HERE / "recorded" / target
            template = json.loads((recorded / "template.json").read_text())
            expressions = {
                "grid": template["grid"], "numbers": {"scale": "scale", "sq": "sq", "sk": "sk"},
                "outputs": {"o": "out", "lse": "lse"}, "formats": template["formats"], "requires": template["requires"],
            }
            with tempfile.TemporaryDirectory() as folder:
                record_compiled(folder, compiled(target), (2, 1), arguments, ["o", "lse"], template=expressions)
                for name in ("launch.json", "template.json"):
                    written = json.loads((pathlib.Path(folder) / name).read_text())
                    self.assertEqual(written, json.loads((recorded / name).read_text()))


if __name__ == "__main__":
    unittest.main()
