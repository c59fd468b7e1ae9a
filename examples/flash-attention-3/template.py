"""Makes a template for `flashproof audit --launch` and `check --launch` of the forward and, behind it, the deterministic backward, for any problem of one
head and up to 384 queries and keys of dimension 64 without mask or softcap.

    python template.py --sources flash-attention --to recorded

The launches are recorded at several sizes. A number that is not the same in all of them is replaced by the expression of the problem that gives it in each.
"""

import argparse, json, pathlib, shutil, struct
from math import ceil

from flashproof.safetensors import Array

import backward, compiled, forward
from configuration import MULTIPROCESSORS

SIZES = [(70, 50), (200, 300), (384, 384), (130, 140), (2, 383), (383, 2), (193, 257), (300, 130)]
LOG2_E = 1.4426950408889634
SCALES = ["scale", f"scale * {LOG2_E}"]
NAMES = ["template", "preprocess", "main", "postprocess"]
DIM, ROWS = 64, "128 * ceil(sq / 128)"
BUFFERS = [
    {"name": "row_sums", "format": "fp32", "shape": [ROWS]},
    {"name": "lse_base_2", "format": "fp32", "shape": [ROWS]},
    {"name": "dq_sums", "format": "fp32", "shape": [ROWS, str(DIM)]},
    {"name": "dq_turns", "format": "fp32", "shape": ["ceil(sq / 128)"]},  # whole numbers
]


def expressions():
    """What a number of a launch may be."""
    lengths = ["sq", "sk", "192 * ceil(sq / 192)", ROWS]
    counts = ["ceil(sq / 192)", "ceil(sq / 128)", "ceil(sk / 128)"]
    whole = [*lengths, "sq - 1", "sk - 1", *counts, *(f"{factor} * {one}" for one in lengths for factor in (DIM, 2 * DIM, 4 * DIM))]
    # What a division by 1 or 2 is made of (cutlass::FastDivmod).
    return [*whole, "2147483648 * (ceil(sq / 192) - 1)"]


def value(expression, sq, sk):
    return int(eval(expression, {"ceil": ceil, "sq": sq, "sk": sk}))


def single(number):
    """A number as fp32."""
    return struct.unpack("<f", struct.pack("<f", number))[0]


class Merge:
    """What documents have in common, with expressions where their numbers differ. ValueError where there is none."""

    def __init__(self, known, scales):
        self.known = {tuple(value(one, *size) for size in SIZES): one for one in reversed(known)}
        bits = lambda factor: tuple(struct.unpack("<I", struct.pack("<f", single(one) * factor))[0] for one in scales)
        self.scales = dict(zip(map(bits, (1, LOG2_E)), SCALES))

    def of(self, documents, path=""):
        first = documents[0]
        if isinstance(first, dict):
            if any(one.keys() != first.keys() for one in documents):
                raise ValueError(f"{path}: the launches have other members")
            if first.keys() == {"u32"} and (scaled := self.scales.get(tuple(one["u32"] for one in documents))):
                return {"f32": scaled}
            return {key: self.of([one[key] for one in documents], f"{path}.{key}") for key in first}
        if isinstance(first, list):
            return [self.of(list(members), f"{path}[{i}]") for i, members in enumerate(zip(*documents, strict=True))]
        if all(one == first for one in documents):
            return first
        if tuple(documents) not in self.known:
            raise ValueError(f"{path}: no expression is known for {documents}")
        return self.known[tuple(documents)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=pathlib.Path, required=True)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.deterministic, options.multiprocessors, options.hashes = True, MULTIPROCESSORS, None
    folder = options.to / "template"
    scales, recorded = [], []
    for i, (sq, sk) in enumerate(SIZES):
        empty = lambda rows, *rest: Array.filled("BF16", (1, 1, rows, *rest), 0)
        tensors = {"q": empty(sq, DIM), "k": empty(sk, DIM), "v": empty(sk, DIM), "dout": empty(sq, DIM)}
        scales.append(0.125 + i / 64)
        problem = tensors, {"scale": str(scales[-1])}
        files, _ = forward.recorded(problem, f"template/{i}-forward", options, 1)
        out, lse = empty(sq, DIM), Array.filled("F32", (1, 1, sq), 0)
        more, _ = backward.recorded(problem, f"template/{i}-backward", options, out, lse)
        recorded.append([*files, *more])
    merge = Merge(expressions(), scales)
    outputs = [["out", "lse"], [], ["dk", "dv"], ["dq"]]
    for i, launches in enumerate(zip(*recorded, strict=True)):
        document = merge.of([json.loads(one.read_text()) for one in launches])
        ptx = f"{NAMES[i]}.ptx"
        shutil.copy(launches[0].parent / document["ptx"], folder / ptx)
        document |= {
            "ptx": ptx, "outputs": [{"name": one, "as": one, "format": "fp32" if one == "lse" else "bf16"} for one in outputs[i]], "formats": ["bf16"],
            "requires": [
                f"d == {DIM} && dv == {DIM}", "heads == 1 && kvHeads == 1 && batch == 1", "causal == 0 && softcap == 0",
                "windowLeft < 0 && windowRight < 0", "sq <= 384 && sk <= 384",
            ],
            **({"buffers": BUFFERS} if i == 0 else {}), **({"next": f"{NAMES[i + 1]}.json"} if i < 3 else {}),
        }
        (folder / f"{NAMES[i]}.json").write_text(json.dumps(document, indent=1) + "\n")
    print(folder / "template.json")


if __name__ == "__main__":
    main()
