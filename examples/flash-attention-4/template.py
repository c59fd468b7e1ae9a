"""Makes a template for `check --launch` of what was recorded for dimension 64: the forward, and behind it the deterministic
backward, for any problem of one head and up to 256 queries and keys without mask or softcap."""

import json, pathlib, shutil, sys

REQUIRES = [
    "d == 64 && dv == 64",
    "causal == 0 && softcap == 0",
    "windowLeft < 0 && windowRight < 0",
    "heads == 1 && kvHeads == 1 && batch == 1",
    "sq <= 256 && sk <= 256",
]
ROWS, KEY_BLOCKS = "128 * ceil(sq / 128)", "ceil(sk / 128)"
BUFFERS = [
    {"name": "row_sums", "format": "fp32", "shape": [ROWS]},
    {"name": "lse_base_2", "format": "fp32", "shape": [ROWS]},
    {"name": "dq_sums", "format": "fp32", "shape": [f"64 * {ROWS}"]},
    {"name": "semaphores", "format": "fp32", "shape": ["ceil(sq / 128)"], "zeros": True},  # whole numbers, from 0 on
]


def struct(*members):
    return {"struct": [member if isinstance(member, dict) else {"u32": member} for member in members]}


def tensor(name):
    return {"tensor": name}


def row(name, elements):
    """A tensor of one row for one head."""
    return struct(tensor(name), 0, 0, 0, 0, elements, 0, elements, 0)


def tensor_map(name, rows, columns, swizzle):
    size = f"128 * {rows}"
    return {
        "tensorMap": {
            "tensor": name,
            "elementType": "bf16",
            "globalDim": [64, rows, 1, 1],
            "globalStrides": [128, size, size],
            "boxDim": [columns, 128, 1, 1],
            "swizzle": swizzle,
        }
    }


def divisor(number):
    """A divisor that is 1 or 2, as the kernels divide by it."""
    return struct(number, 1, f"({number}) == 1 ? 0 : 1")


# What is an expression of the problem, by the place of the parameter; the rest is as it was recorded.
FORWARD = {
    0: struct("sq", 0, 0, 0),
    1: struct("sk", 0, 0, 0),
    4: row("lse", "sq"),
    **{5 + i: tensor_map(name, rows, 64, "128B") for i, (name, rows) in enumerate([("q", "sq"), ("k", "sk"), ("v", "sk"), ("out", "sq")])},
    9: {"f32": "scale * 1.4426950216293335"},
    12: divisor("ceil(sq / 256)"),
    14: divisor("1"),
    16: {"u32": "ceil(sq / 256)"},
}
PREPROCESS = {
    0: struct(tensor("out"), "sq", 64, 0, 0, 64, 0, "64 * sq", 0, "64 * sq", 0),
    1: struct(tensor("dout"), 0, 0, 0, 0, 64, 0, "64 * sq", 0, "64 * sq", 0),
    2: row("row_sums", ROWS),
    3: row("lse", "sq"),
    4: row("lse_base_2", ROWS),
    5: row("dq_sums", f"64 * {ROWS}"),
}
MAIN = {
    0: struct("sq", 0, 0, 0),
    1: struct("sk", 0, 0, 0),
    3: row("lse_base_2", ROWS),
    4: row("row_sums", ROWS),
    8: row("dq_sums", f"64 * {ROWS}"),
    11: row("semaphores", "ceil(sq / 128)"),
    **{12 + i: tensor_map(name, rows, 64, "128B") for i, (name, rows) in enumerate([("q", "sq"), ("k", "sk"), ("v", "sk"), ("dout", "sq")])},
    16: tensor_map("dv", "sk", 32, "64B"),
    17: tensor_map("dk", "sk", 32, "64B"),
    23: {"f32": "scale"},
    24: {"f32": "scale * 1.4426950216293335"},
    25: {"u32": KEY_BLOCKS},
    # heads that share a stretch of L2: any number, with one head
    27: {"u32": 512},
    30: struct(512, 1, 2049),
    32: struct(f"512 * {KEY_BLOCKS}", 1, f"{KEY_BLOCKS} == 1 ? 2049 : 2305"),
}
POSTPROCESS = {
    0: row("dq_sums", f"64 * {ROWS}"),
    1: struct(tensor("dq"), 1, "sq", 1, 64, "64 * sq", 0, 64, 0, "64 * sq", 0),
    2: {"f32": "scale"},
}


def outputs(*names):
    return [{"name": name, "as": name, "format": "fp32" if name == "lse" else "bf16"} for name in names]


def main(forward, backward, to):
    """Writes template.json, and beside it the launches that follow and their PTX."""
    to.mkdir(parents=True, exist_ok=True)
    launches = [
        (forward / "launch.json", FORWARD, "ceil(sq / 256)", outputs("out", "lse")),
        (backward / "1-3-launch.json", PREPROCESS, "ceil(sq / 128)", []),
        (backward / "2-3-launch.json", MAIN, KEY_BLOCKS, outputs("dk", "dv")),
        (backward / "3-3-launch.json", POSTPROCESS, "ceil(sq / 128)", outputs("dq")),
    ]
    names = ["template", "preprocess", "main", "postprocess"]
    for i, (path, changes, ctas, given) in enumerate(launches):
        launch = json.loads(path.read_text())
        shutil.copy(path.parent / launch["ptx"], to / f"{names[i]}.ptx")
        parameters = [changes.get(place, parameter) for place, parameter in enumerate(launch["parameters"])]
        launch |= {"ptx": f"{names[i]}.ptx", "grid": [ctas, 1, 1], "parameters": parameters, "outputs": given}
        launch |= {"formats": ["bf16"], "requires": REQUIRES}
        launch |= {"buffers": BUFFERS} if i == 0 else {}
        launch |= {"next": f"{names[i + 1]}.json"} if i + 1 < len(names) else {}
        (to / f"{names[i]}.json").write_text(json.dumps(launch, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("python3 template.py RECORDED-FORWARD RECORDED-BACKWARD FOLDER")
    main(*map(pathlib.Path, sys.argv[1:]))
