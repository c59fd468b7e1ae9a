"""The recorder of Triton kernels: what it writes of a compiled kernel, and of one that Triton compiles here."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from flashproof import Array, audit
from flashproof.arrays import from_array
from flashproof.safetensors import read
from flashproof.server import shared_server
from flashproof.triton import record, record_compiled

SIGNATURE = {"x": "*bf16", "y": "*fp32", "factor": "fp32", "count": "i32", "BLOCK": "constexpr"}
PTX = """
.version 8.7
.target sm_90a
.visible .entry double_it(
	.param .u64 .ptr .global .align 1 double_it_param_0,
	.param .u64 .ptr .global .align 1 double_it_param_1,
	.param .f32 double_it_param_2,
	.param .u32 double_it_param_3,
	.param .u64 .ptr .global .align 1 double_it_param_4,
	.param .u64 .ptr .global .align 1 double_it_param_5
)
.reqntid 128
{
	ret;
}
"""


def compiled(signature=SIGNATURE, **changes):
    """What Triton gives of a kernel."""
    metadata = {"num_warps": 4, "num_ctas": 1, "shared": 512, "global_scratch_size": 0}
    return SimpleNamespace(
        asm={"ptx": PTX},
        metadata=SimpleNamespace(**{**metadata, "profile_scratch_size": 0, **changes}),
        src=SimpleNamespace(signature=signature),
    )


def arguments(**changes):
    x, y = Array.filled("BF16", (2, 35), 0xFF), Array("F32", (70,), b"\x01\x02\x03\x04" * 70)
    return {"x": x, "y": y, "factor": 2.0, "count": 70, "BLOCK": 64, **changes}


def written(folder, name="launch.json"):
    return json.loads((folder / name).read_text())


def test_a_launch_file_says_how_the_kernel_is_started(tmp_path):
    record_compiled(tmp_path, compiled(), (2,), arguments(), ["y"])
    assert (tmp_path / "kernel.ptx").read_text() == PTX
    assert written(tmp_path) == {
        "entry": "double_it",
        "grid": [2, 1, 1],
        "block": [128, 1, 1],
        "dynamicSharedBytes": 512,
        "parameters": [
            *({"tensor": "x"}, {"tensor": "y"}, {"f32": 2.0}, {"s32": 70}),
            *({"scratch": 0}, {"scratch": 0}),
        ],
        "outputs": ["y"],
    }


def test_tensors_are_kept_with_what_a_gpu_made_of_them(tmp_path):
    after = Array.filled("F32", (70,), 5)
    record_compiled(tmp_path, compiled(), (2,), arguments(), ["y"], {"y": after})
    tensors, _ = read(tmp_path / "tensors.safetensors")
    given = arguments()
    assert tensors == {"x": given["x"], "y": given["y"], "y.fused": after}


def test_clusters_and_scratch(tmp_path):
    record_compiled(
        tmp_path, compiled(num_ctas=2, global_scratch_size=96), (3, 2), arguments(), ["y"]
    )
    file = written(tmp_path)
    assert (file["grid"], file["cluster"]) == ([6, 2, 1], [2, 1, 1])
    assert file["parameters"][-2:] == [{"scratch": 3 * 2 * 96}, {"scratch": 0}]


def test_numbers_that_json_does_not_hold_are_text(tmp_path):
    given = arguments(factor=float("-inf"), count=2**60)
    record_compiled(tmp_path, compiled(), (1,), given, ["y"])
    assert written(tmp_path)["parameters"][2:4] == [{"f32": "-inf"}, {"s32": str(2**60)}]


def test_a_contract_of_a_recurrence_names_its_family(tmp_path):
    contract = {"kind": "recurrent", "family": "delta", "qk_norm_epsilon": 1e-6, "q": "x"}
    record_compiled(tmp_path, compiled(), (2,), arguments(), ["y"], contract=contract)
    view = {"tensor": "x", "shape": [2, 35]}
    assert written(tmp_path)["contract"] == {**contract, "q": view}


def test_a_contract_names_arguments_and_has_their_shapes(tmp_path):
    contract = {"kind": "attention", "causal": True, "q": "x", "out": "y"}
    record_compiled(tmp_path, compiled(), (2,), arguments(), ["y"], contract=contract)
    assert written(tmp_path)["contract"] == {
        "kind": "attention",
        "causal": True,
        "q": {"tensor": "x", "shape": [2, 35]},
        "out": {"tensor": "y", "shape": [70]},
    }
    with pytest.raises(ValueError, match="q is 'z', which is no tensor among the arguments"):
        record_compiled(tmp_path, compiled(), (2,), arguments(), ["y"], contract={"q": "z"})


def test_a_template_has_expressions_in_the_place_of_numbers(tmp_path):
    template = {
        "grid": ["ceil(sq / 64)"],
        "numbers": {"count": "sq * d"},
        "outputs": {"y": "out"},
        "formats": ["bf16"],
        "requires": ["d == 64"],
    }
    record_compiled(tmp_path, compiled(), (2,), arguments(), ["y"], template=template)
    file = written(tmp_path, "template.json")
    assert file["grid"] == ["ceil(sq / 64)"] and file["outputs"] == [{"name": "y", "as": "out"}]
    assert file["parameters"][2:4] == [{"f32": 2.0}, {"s32": "sq * d"}]


class Kernel:
    """A kernel that writes its output, in the place of a GPU."""

    params = [SimpleNamespace(name=name, is_constexpr=name == "BLOCK") for name in SIGNATURE]

    def __getitem__(self, grid):
        def run(y, **others):
            y[:] = 7
            return compiled()

        self.grid = grid
        return run


def test_a_launch_is_kept_with_what_came_of_it(tmp_path):
    kernel, y = Kernel(), np.full(70, 6, np.float32)
    record(tmp_path, kernel, lambda given: (given["count"] // 35,), arguments(y=y), ["y"])
    assert kernel.grid == (2,)
    tensors, _ = read(tmp_path / "tensors.safetensors")
    assert (from_array(tensors["y"], "numpy") == 6).all()
    assert (from_array(tensors["y.fused"], "numpy") == 7).all()


def test_what_cannot_be_recorded_is_refused_in_a_line(tmp_path):
    strange = compiled({**SIGNATURE, "x": "tensordesc<bf16[64,64]>"})
    with pytest.raises(ValueError, match="x is tensordesc"):
        record_compiled(tmp_path, strange, (1,), arguments(), ["y"])
    short = compiled({name: kind for name, kind in SIGNATURE.items() if name == "x"})
    with pytest.raises(ValueError, match="6 parameters, and 3 are known"):
        record_compiled(tmp_path, short, (1,), arguments(), ["y"])
    with pytest.raises(ValueError, match="give the function with @triton.jit"):
        record(tmp_path, print, (1,), arguments(), ["y"])
    fewer = {name: one for name, one in arguments().items() if name != "count"}
    with pytest.raises(ValueError, match="the kernel's count is not among the arguments"):
        record(tmp_path, Kernel(), (1,), fewer, ["y"])
    with pytest.raises(ValueError, match="give target too"):
        record(tmp_path, Kernel(), (1,), arguments(), ["y"], template={})
    assert list(tmp_path.iterdir()) == []


def described(**changes):
    """Rows 0 to 69 of 64 elements, 96 apart, as a descriptor has them."""
    base = Array.filled("BF16", (70, 96), 0xFF)
    given = {"base": base, "shape": [70, 64], "strides": [96, 1], "block_shape": [32, 64]}
    return SimpleNamespace(**{**given, "padding": "nan", **changes})


def with_map(**changes):
    """A kernel that takes a descriptor, a tensor and no numbers, as the compiler says it."""
    made = {"swizzle": 2, "elem_size": 2, "elem_type": 10, "block_size": [32, 32], **changes}
    signature = {"x": "tensordesc<bf16[32, 64]>", "y": "*fp32"}
    return compiled(signature, tensordesc_meta=[{"fp4_padded": False, **made}])


def test_a_descriptor_is_a_tensor_map_and_the_numbers_behind_it(tmp_path):
    given = {"x": described(), "y": arguments()["y"]}
    one = with_map()
    # A map, two sizes, two strides, the tensor and two of scratch.
    one.asm["ptx"] = PTX.replace(
        "double_it_param_5", "double_it_param_5, .param .u64 a, .param .u64 b"
    )
    record_compiled(tmp_path, one, (1,), given, ["y"])
    (tensor_map, *others) = written(tmp_path)["parameters"]
    # cuTensorMapEncodeTiled: innermost first, strides in bytes and without that of the innermost.
    assert tensor_map["tensorMap"] == {
        **{"tensor": "x", "elementType": "bfloat16", "globalDim": [64, 70], "globalStrides": [192]},
        **{"boxDim": [32, 32], "swizzle": "64B", "oobFill": "nan"},
    }
    assert others == [
        *({"s32": 70}, {"s32": 64}, {"s64": 96}, {"s64": 1}, {"tensor": "y"}),
        *({"scratch": 0}, {"scratch": 0}),
    ]
    tensors, _ = read(tmp_path / "tensors.safetensors")
    assert tensors == {"x": given["x"].base, "y": given["y"]}


def test_descriptors_that_have_no_map_here_are_refused(tmp_path):
    y = arguments()["y"]
    with pytest.raises(ValueError, match="x is a descriptor of packed elements"):
        record_compiled(
            tmp_path, with_map(fp4_padded=True), (1,), {"x": described(), "y": y}, ["y"]
        )
    with pytest.raises(ValueError, match="x is a descriptor of BF16 with swizzle 7"):
        record_compiled(tmp_path, with_map(swizzle=7), (1,), {"x": described(), "y": y}, ["y"])
    bare = with_map()
    bare.metadata.tensordesc_meta = None
    with pytest.raises(ValueError, match="the compiler made no tensor map"):
        record_compiled(tmp_path, bare, (1,), {"x": described(), "y": y}, ["y"])


ATTENTION = """
import triton
import triton.language as tl

@triton.jit
def attend(q, k, v, out, scale, sk, D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, D)
    places = rows[:, None] * D + columns[None, :]
    keys = tl.arange(0, KEYS)
    here = keys[:, None] * D + columns[None, :]
    inside = keys[:, None] < sk
    scores = tl.dot(tl.load(q + places), tl.trans(tl.load(k + here, mask=inside, other=0.0)))
    scores = tl.where(keys[None, :] < sk, scores * scale, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    values = tl.load(v + here, mask=inside, other=0.0)
    made = tl.dot(weights.to(values.dtype), values) / tl.sum(weights, 1)[:, None]
    tl.store(out + places, made.to(out.dtype.element_ty))
"""


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_what_triton_compiles_without_a_gpu_is_attention(tmp_path, monkeypatch, target):
    pytest.importorskip("triton")
    (tmp_path / "attend_once.py").write_text(ATTENTION)
    monkeypatch.syspath_prepend(tmp_path)
    from attend_once import attend

    random = np.random.default_rng(1)
    q, k, v = (random.standard_normal((1, 1, n, 64)).astype(np.float16) for n in (16, 30, 30))
    given = {"q": q, "k": k, "v": v, "out": np.full_like(q, np.nan), "scale": 0.125, "sk": 30}
    constants = {"D": 64, "ROWS": 16, "KEYS": 32}
    record(
        *(tmp_path / "recorded", attend, (1,), {**given, **constants}, ["out"]),
        target=target,
        num_warps=4,
    )
    saved = tmp_path / "made.safetensors"
    launch = str(tmp_path / "recorded" / "launch.json")
    answer = shared_server().run(["run", launch, "--save", str(saved)])
    assert answer.status == 0 and "0 findings" in answer.stdout, answer.stdout
    made = read(saved)[0]["out"]
    assert audit(q, k, v, made, scale=0.125).passed
    assert not audit(q, k, v, made, scale=0.15).passed
