"""Compiles FlashAttention-2's forward kernels with nvcc, records their launches for `flashproof run`, and compares what they give with what
a GPU gave, or with `flashproof emulate fa2`, bit for bit.

    python forward.py problem.safetensors … --sources flash_attn-2.8.3 --to recorded
    python forward.py problem.safetensors … --sources flash_attn-2.8.3 --to recorded --build flash-attn

`--build pytorch` (default) compiles as PyTorch does, whose outputs (`torch_flash.out`, `.lse`) are compared; `--build flash-attn` as
FlashAttention's own package does, compared with the model of that build. The exit status is 1 where a bit differs or the machine finds something.
"""

import argparse, hashlib, json, math, os, pathlib, re, subprocess, sys

from flashproof import safetensors
from flashproof.launches import Launch, write_launch, write_tensors

from parameters import FORWARD, parameter, size_of

HERE = pathlib.Path(__file__).parent
FLASHPROOF = os.environ.get("FLASHPROOF", "npx flashproof").split()
MULTIPROCESSORS = 132  # of an H200
BUILDS = {"pytorch": ["-DUNFUSE_FMA"], "flash-attn": ["--use_fast_math"]}
ELEMENTS = {"BF16": "cutlass::bfloat16_t", "F16": "cutlass::half_t"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="+", type=pathlib.Path)
    parser.add_argument("--sources", type=pathlib.Path, required=True, help="FlashAttention's source package, unpacked")
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--build", default="pytorch", choices=list(BUILDS))
    parser.add_argument("--hashes", type=pathlib.Path, help="adds the SHA-256 of each PTX to this file")
    return parser.parse_args()


def up(number, step):
    return -(-number // step) * step


def split_count(tiles, key_blocks):
    """In how many parts FlashAttention-2 splits the keys: the fewest with which the last wave of CTAs is nearly as full as it can be."""
    sms = 2 * MULTIPROCESSORS
    if tiles >= 0.8 * sms:
        return 1
    most = min(128, sms, key_blocks)
    blocks = lambda splits: -(-key_blocks // splits)
    eligible = [n for n in range(1, most + 1) if n == 1 or blocks(n) != blocks(n - 1)]
    share = {n: tiles * n / sms / math.ceil(tiles * n / sms) for n in eligible}
    return next(n for n in eligible if share[n] >= 0.85 * max(share.values()))


def compiled(source, sources, build, macros, cache):
    """The PTX of a source for these macros. One that has been compiled is not compiled again."""
    name = "-".join([source, build, *(re.sub(r"\W+", "-", f"{value}") for value in macros.values())])
    path = cache / f"{name}.ptx"
    if not path.exists():
        import nvidia

        toolkit = pathlib.Path(next(iter(nvidia.__path__))) / "cu13"
        words = [toolkit / "bin/nvcc", "-ptx", "-arch=sm_80", "-std=c++17", "--expt-relaxed-constexpr", "--expt-extended-lambda"]
        words += ["-DNDEBUG", *BUILDS[build], *(f"-D{key}={value}" for key, value in macros.items())]
        words += ["-I", HERE / "stubs", "-I", sources / "csrc/flash_attn/src", "-I", sources / "csrc/cutlass/include"]
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([*map(str, words), "-o", str(path), str(HERE / f"{source}.cu")], check=True, stderr=subprocess.DEVNULL)
    return path.read_text()


def record(path, options):
    """Writes the launches of a problem; their files in order, and the problem's tensors."""
    given, metadata = safetensors.read(path)
    q, k, v = (given[name] for name in "qkv")
    heads, queries, dim = q.shape[-3:]
    batch, (kv_heads, keys, _) = math.prod(q.shape[:-3]), k.shape[-3:]
    scale = float(metadata.get("scale") or 1 / math.sqrt(dim))
    causal = metadata.get("causal") == "true"
    key_block = 256 if dim <= 64 else 128 if dim <= 128 else 64
    splits = split_count(batch * heads * up(queries, 64) // 64, up(keys, key_block) // key_block)
    block_m, block_n = (64, key_block) if splits > 1 else (128, 128 if dim <= 64 else 64)
    is_even = queries % block_m == 0 and keys % block_n == 0
    macros = {
        "DIM": dim, "BLOCK_M": block_m, "BLOCK_N": block_n, "SPLITS": min(splits, 2), "CAUSAL": str(causal).lower(),
        "EVEN": str(is_even).lower(), "ELEMENT": ELEMENTS[q.dtype], "LOG_SPLITS": max(1, math.ceil(math.log2(splits))),
    }
    ptx = compiled("forward", options.sources, options.build, macros, options.to / "ptx")
    declared = int(re.search(r"attend_param_0\[(\d+)\]", ptx)[1])
    if declared != size_of(FORWARD):
        sys.exit(f"the kernel's struct has {declared} bytes, and {size_of(FORWARD)} are known here; is this version 2.8.3?")
    values = {
        **{name: name for name in ("q", "k", "v", "out", "lse")},
        "q_batch": heads * queries * dim, "k_batch": kv_heads * keys * dim, "v_batch": kv_heads * keys * dim,
        "q_row": dim, "k_row": dim, "v_row": dim, "q_head": queries * dim, "k_head": keys * dim, "v_head": keys * dim,
        "heads": heads, "kv_heads": kv_heads, "group": heads // kv_heads,
        "out_batch": heads * queries * dim, "out_row": dim, "out_head": queries * dim,
        "batch": batch, "queries": queries, "keys": keys, "dim": dim, "dim_rounded": up(dim, 32),
        "queries_rounded": up(queries, 128), "keys_rounded": up(keys, 128),
        "scale": scale, "scale_log2": scale * math.log2(math.e),
        "kept_share": 1, "kept_share_byte": 255, "kept_factor": 1, "scaled_kept_factor": scale,
        "window_left": keys if causal else -1, "window_right": 0 if causal else -1,
        "is_bf16": int(q.dtype == "BF16"), "is_causal": int(causal), "are_keys_cumulative": 1, "splits": splits if splits > 1 else 0,
    }
    empty = safetensors.Array.filled
    tensors = {"q": q, "k": k, "v": v, "out": empty(q.dtype, q.shape, 0xFF), "lse": empty("F32", q.shape[:-1], 0xFF)}
    written = ["out", "lse"]
    if splits > 1:
        values |= {"out_parts": "out_parts", "lse_parts": "lse_parts"}
        tensors["out_parts"] = empty("F32", (splits, batch, heads, queries, up(dim, 32)), 0xFF)
        tensors["lse_parts"] = empty("F32", (splits, batch, heads, queries), 0xFF)
        written = ["out_parts", "lse_parts"]
    folder = options.to / options.build / path.stem
    tiles = up(queries, block_m) // block_m
    grid = [tiles, splits, batch * heads] if splits > 1 else [tiles, batch, heads]
    shared = int(re.search(r"shared_bytes = (\d+)", ptx)[1])
    whole = [parameter(FORWARD, values)]
    launches = [write_launch(folder, ptx, Launch("attend", grid, [128, 1, 1], whole, written, shared), "1-")]
    if splits > 1:
        rows = 4 if dim % 128 == 0 else 8 if dim % 64 == 0 else 16
        ctas = up(batch * heads * queries, rows) // rows
        launches.append(write_launch(folder, ptx, Launch("combine", [ctas, 1, 1], [128, 1, 1], whole, ["out", "lse"]), "2-"))
    write_tensors(folder, tensors)
    keep_hash(options, f"{options.build} {path.stem}", ptx)
    return launches, given, splits, values


def keep_hash(options, name, ptx):
    if options.hashes is None:
        return
    known = json.loads(options.hashes.read_text()) if options.hashes.exists() else {}
    known[name] = hashlib.sha256(ptx.encode()).hexdigest()
    options.hashes.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def flashproof(*words):
    """What a command printed, and its exit status."""
    done = subprocess.run([*FLASHPROOF, *map(str, words)], capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(done.stderr.strip())
    return done.stdout


def run(launches):
    """What the launches wrote, each reading what those before it left, and how many findings they had."""
    tensors, _ = safetensors.read(launches[0].parent / "tensors.safetensors")
    findings = 0
    for launch in launches:
        before, after = (launch.with_suffix(f".{when}.safetensors") for when in ("before", "after"))
        safetensors.write(before, tensors)
        printed = flashproof("run", launch, "--tensors", before, "--save", after, "--architecture", "sm_90")
        findings += int(re.search(r"^([\d,]+) findings?", printed, re.M)[1].replace(",", ""))
        tensors |= safetensors.read(after)[0]
    return tensors, findings


def differing(left, right):
    size = safetensors.ELEMENT_BITS[left.dtype] // 8
    return sum(left.data[i : i + size] != right.data[i : i + size] for i in range(0, len(left.data), size))


def main():
    options = arguments()
    failed = False
    for path in options.problem:
        launches, given, splits, _ = record(path, options)
        made, findings = run(launches)
        if options.build == "pytorch":
            expected = {name: given[f"torch_flash.{name}"] for name in ("out", "lse") if f"torch_flash.{name}" in given}
        else:
            model = launches[0].parent / "emulated.safetensors"
            flashproof("emulate", "fa2", path, "--save", model, "--quiet", "--set", f"build={options.build}", "--set", "splits=auto")
            expected, _ = safetensors.read(model)
        wrong = {name: differing(made[name], expected[name]) for name in expected}
        parts = "" if splits == 1 else f", {splits} splits"
        counts = ", ".join(f"{name} {count} of {math.prod(made[name].shape):,}" for name, count in wrong.items())
        print(f"{path.stem}{parts}: {counts} differ; {findings} findings", flush=True)
        failed |= any(wrong.values()) or findings > 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
