"""
Compiles the decode kernel that SGLang serves gated delta rules with for an H100 that is not there, and records its launch.

    python decode.py --to recorded/sglang-decode-sm_90             a scalar gate by head, as of Qwen3-Next
    python decode.py --kda --to recorded/sglang-kda-decode-sm_90   a gate for each key dimension, as of Kimi Linear

Three requests have one token, three and two; gates and write strengths are made in the kernel, of A_log, a and dt_bias and of b, and states are overwritten
in place.
"""

import argparse, importlib.util, math, os, pathlib, sys, types

os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")  # the PTX is the same wherever SGLang lies

import device
from flashproof import triton as recorder

#: Where in SGLang the kernel is, and what its module asks of others, as they answer on an H100.
MODULE = "kernels/ops/attention/linear/fused_sigmoid_gating_recurrent.py"
ANSWERS = {
    "sglang.kernels.jit.utils": {"is_arch_support_pdl": True},
    "sglang.srt.utils": {"get_device_sm": 90, "is_cuda": True, "is_hip": False, "is_gfx95_supported": False, "is_sm90_supported": True},
}
TOKENS, KEY_HEADS, HEADS, KEY, VALUE = 6, 1, 2, 32, 16
ENDS = (0, 1, 4, 6)


def decode_function():
    """SGLang's function that launches the kernel. Its module alone is loaded: the package needs a GPU and some hundred others."""
    (package,) = importlib.util.find_spec("sglang").submodule_search_locations
    for name, answers in ANSWERS.items():
        stand_in = types.ModuleType(name)
        for function, answer in answers.items():
            setattr(stand_in, function, lambda answer=answer: answer)
        sys.modules[name] = stand_in
    spec = importlib.util.spec_from_file_location("sglang_decode", pathlib.Path(package) / MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.fused_sigmoid_gating_delta_rule_update


def problem(is_kda):
    """The inputs of a decode by the names of the function's arguments."""
    import torch

    torch.manual_seed(1)
    normal = lambda *shape: torch.randn(shape)
    wide = HEADS * KEY if is_kda else HEADS
    requests = len(ENDS) - 1
    return {
        "q": normal(1, TOKENS, KEY_HEADS, KEY).bfloat16(), "k": normal(1, TOKENS, KEY_HEADS, KEY).bfloat16(),
        "v": normal(1, TOKENS, HEADS, VALUE).bfloat16(),
        "A_log": torch.rand(HEADS), "a": normal(1, TOKENS, wide).bfloat16(), "dt_bias": normal(wide).bfloat16(),
        "b": normal(1, TOKENS, HEADS).bfloat16(),
        "initial_state_source": 0.3 * normal(requests, HEADS, VALUE, KEY),
        "initial_state_indices": torch.arange(requests, dtype=torch.int32), "cu_seqlens": torch.tensor(ENDS, dtype=torch.int32),
    }


def contract(is_kda):
    """What the launch computes, in views of its tensors; states lie with the value dimension first."""
    gates = [HEADS, KEY] if is_kda else [HEADS]
    states = {
        "tensor": "h0_source", "shape": [len(ENDS) - 1, HEADS, KEY, VALUE], "strides": [HEADS * KEY * VALUE, KEY * VALUE, 1, KEY],
    }
    return {
        "kind": "recurrent", "family": "kda" if is_kda else "gated-delta", "scale": KEY**-0.5, "qk_norm_epsilon": 1e-6,
        "q": "q", "k": "k", "v": "v", "A_log": "A_log", "b": "b", "cu_seqlens": "cu_seqlens",
        "a": {"tensor": "a", "shape": [1, TOKENS, *gates]}, "dt_bias": {"tensor": "dt_bias", "shape": gates},
        "initial_state": states, "final_state": states, "out": {"tensor": "o", "shape": [1, TOKENS, HEADS, VALUE]},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kda", action="store_true")
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path("recorded/sglang-decode-sm_90"))
    options = parser.parse_args()

    def launched(compiled, grid, arguments):
        given = {name: one for name, one in arguments.items() if one is not None}
        given["o"] = given["o"][0].fill_(math.nan)  # its first axis has one part of the key dimensions, all of them
        recorder.record_compiled(options.to, compiled, grid, given, ["o", "h0_source"], contract=contract(options.kda))

    device.install(launched, lambda name, configurations: configurations[0])
    decode = decode_function()
    decode(
        **problem(options.kda), softplus_beta=1.0, softplus_threshold=20.0, use_qk_l2norm_in_kernel=True, is_kda=options.kda
    )


if __name__ == "__main__":
    main()
