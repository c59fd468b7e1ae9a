"""Compiles flex_attention as PyTorch does, for a GPU that need not be here, and records its kernel for `flashproof run`.

    python flex.py problem.safetensors … --to recorded [--architecture sm_90]

Problems are flashproof's: q, k, v of [heads, seqlen, dim] or [batch, heads, seqlen, dim], scale, causal, window, prefix and softcap. With what a
GPU made of them (`triton_flex.out`) `run` compares.
"""

import argparse, math, pathlib

import device, programs, recording
from flashproof import safetensors


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="+", type=pathlib.Path)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--architecture", default="sm_90", choices=list(device.PROPERTIES))
    parser.add_argument("--hashes", type=pathlib.Path, help="adds the SHA-256 of each PTX to this file")
    return parser.parse_args()


def record(path, options, target):
    """Writes the forward's launch; its folder, the problem with a batch, and the scale."""
    tensors, metadata = safetensors.read(path)
    given = {name: recording.with_batch(one) for name, one in tensors.items() if one.dtype in recording.TORCH}
    inputs = [recording.loaded(given[name]) for name in "qkv"]
    scale = float(metadata.get("scale") or 1 / math.sqrt(inputs[0].shape[-1]))
    program, blocks = programs.forward([one.shape for one in inputs], inputs[0].dtype, scale, metadata)
    folder = options.to / path.stem
    results = {"out_ptr0": given["triton_flex.out"]} if "triton_flex.out" in given else {}
    recording.run_program(program, [*inputs, *blocks], lambda _: folder, target, ["out_ptr0", "arg_LSE"], results)
    digest = recording.keep_hash(options.hashes, f"{options.architecture} {path.stem}", folder)
    print(f"{path.stem}: {folder}/launch.json, PTX {digest[:8]}", flush=True)
    return folder, given, scale, metadata


def main():
    options = arguments(__doc__)
    device.with_runtime()
    target = device.install(options.architecture)
    for path in options.problem:
        record(path, options, target)


if __name__ == "__main__":
    main()
