"""
Compiles fla's kernels of linear attention for an H100 that is not there, and records their launches.

    python record.py --to recorded/fused-recurrent-sm_90                     the small launch of this folder, with its contract
    python record.py chunk --to recorded/chunk-sm_90                         66 and 5 tokens in chunks: a folder for each launch
    python record.py chunk problem.safetensors … --to recorded               each launch of a problem file, run and compared
    python record.py recurrent problem.safetensors … --to recorded

Problem files have q, k, v, perhaps g, beta, initial_state and cu_seqlens, and what a GPU made of them as chunk.out, recurrent.final_state, …;
their metadata have the family and the scale.
An autotuner's configuration is the first of its list, or that of --configuration KERNEL=NUMBER. The exit status is 1 where a bit differs or the
machine finds something.
"""

import argparse, os, pathlib, sys

os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")  # the PTX is the same wherever fla lies

import device
from flashproof import safetensors
from launches import Launches, equal_bits, loaded

#: fla's modules and names, by family.
FAMILIES = {
    "gated-delta": "gated_delta_rule", "delta": "delta_rule", "kda": "kda", "gla": "gla", "simple-gla": "simple_gla", "retention": "retention",
}
INPUTS = ("q", "k", "v", "g", "beta", "initial_state", "cu_seqlens")
CONTRACT = {
    "kind": "recurrent", "family": "gated-delta", "scale": 32**-0.5,
    "q": "q", "k": "k", "v": "v", "g": "g", "beta": "beta", "initial_state": "h0", "cu_seqlens": "cu_seqlens",
    "out": "o", "final_state": "ht",
}


def small_problem(first=7):
    """Two packed sequences of 7, or another number, and 5 tokens, two value heads on one key head of 32, values of 16; keys have length 1."""
    import torch

    torch.manual_seed(1)
    normal = lambda *shape: torch.randn(shape)
    unit = lambda x: (x / x.norm(dim=-1, keepdim=True)).bfloat16()
    tokens, key, value = (1, first + 5), (1, 32), (2, 16)
    return {
        "q": unit(normal(*tokens, *key)), "k": unit(normal(*tokens, *key)), "v": normal(*tokens, *value).bfloat16(),
        "g": -0.5 * torch.rand(*tokens, 2), "beta": torch.rand(*tokens, 2).bfloat16(),
        "initial_state": 0.3 * normal(2, 2, 32, 16), "cu_seqlens": torch.tensor([0, first, first + 5]),
    }


def kernel_of(form, family):
    """fla's function of a form, which is `chunk` or `recurrent`, and the name that it has for gates."""
    import importlib

    name = FAMILIES[family]
    function = getattr(importlib.import_module(f"fla.ops.{name}"), {"chunk": "chunk_", "recurrent": "fused_recurrent_"}[form] + name)
    return function, "gk" if (form, family) == ("recurrent", "gla") else "g"


def contract_of(metadata, inputs, gate, results, decays=None):
    """What a form computes: settings, and tensors by the contract's names. Decays of heads, of retention, are exponents of 2 in chunks."""
    settings = {"kind": "recurrent", "family": metadata["family"], "scale": float(metadata["scale"])}
    names = {gate: "g"}
    views = {names.get(name, name): (tensor,) for name, tensor in inputs.items()}
    if decays is not None:
        settings["gate_base"] = 2
        views["g_gamma"] = (decays,)
    return settings, views | dict(zip(("out", "final_state"), ((one,) for one in results)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", nargs="?", choices=["chunk", "recurrent"])
    parser.add_argument("problem", nargs="*", type=pathlib.Path)
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path("recorded"))
    parser.add_argument("--configuration", action="append", default=[], metavar="KERNEL=NUMBER")
    return parser.parse_args()


def main():
    options = arguments()
    chosen = dict(one.split("=") for one in options.configuration)
    launches = Launches(options.to)
    # Launches of one problem after another go to the launches at hand.
    device.install(lambda *launch: launches.launched(*launch), lambda name, configurations: configurations[int(chosen.get(name, 0))])
    import torch

    if options.form == "chunk" and not options.problem:
        # A chunk has 64 tokens.
        inputs, settings = small_problem(66), {"family": "gated-delta", "scale": CONTRACT["scale"]}
        launches = Launches(options.to, inputs=inputs)
        function, gate = kernel_of("chunk", "gated-delta")
        with torch.no_grad():
            results = function(**inputs, scale=CONTRACT["scale"], output_final_state=True)
        launches.write_contract(*contract_of(settings, inputs, gate, results))
        for folder in launches.folders:
            (folder / "after.safetensors").unlink()
        return
    if options.form is None:
        launches = Launches(options.to, CONTRACT, ["o", "ht"])
        function, _ = kernel_of("recurrent", "gated-delta")
        function(**small_problem(), scale=CONTRACT["scale"], output_final_state=True)
        return
    failed = False
    for path in options.problem:
        given, metadata = safetensors.read(path)
        function, gate = kernel_of(options.form, metadata["family"])
        inputs = {gate if name == "g" else name: loaded(given[name]) for name in INPUTS if name in given}
        launches = Launches(options.to / f"{path.stem}-{options.form}", inputs=inputs)
        with torch.no_grad():
            out, state = function(**inputs, scale=float(metadata["scale"]), output_final_state=True)
        is_retention = metadata["family"] == "retention"  # fla makes its decays itself; its recurrent form gives a sum of the launch's output
        if not is_retention or options.form == "chunk":
            decays = launches.tensor_of("g_gamma") if is_retention else None
            launches.write_contract(*contract_of(metadata, inputs, gate, (out, state), decays))
        counts = {name: (equal_bits(one, given[f"{options.form}.{name}"]), one.numel()) for name, one in (("out", out), ("final_state", state))}
        agreement = ", ".join(f"{name} {same:,} of {all:,}" for name, (same, all) in counts.items())
        print(f"{path.stem}: {len(launches.folders)} launches; equal bits: {agreement}; {launches.findings} findings", flush=True)
        failed |= launches.findings > 0 or any(same < all for same, all in counts.values())
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
