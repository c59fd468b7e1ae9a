"""Runs what flex.py has recorded, and compares O and the LSE with what a GPU made of the problem, bit for bit.

    python compare.py recorded problem.safetensors …

The exit status is 1 where a bit differs or the machine finds something.
"""

import math, os, pathlib, re, struct, subprocess, sys

from flashproof import safetensors

FLASHPROOF = os.environ.get("FLASHPROOF", "npx flashproof").split()


def fp32(number):
    """To nearest even; a product of two fp32 numbers is exact before."""
    return struct.unpack("<f", struct.pack("<f", number))[0]


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def main():
    recorded, *problems = map(pathlib.Path, sys.argv[1:])
    failed = False
    ln2 = fp32(math.log(2))
    for path in problems:
        folder = recorded / path.stem
        results = folder / "results.safetensors"
        done = subprocess.run([*FLASHPROOF, "run", folder / "launch.json", "--save", results], capture_output=True, text=True)
        findings = re.search(r"^([\d,]+) findings?", done.stdout, re.M)
        if findings is None:
            sys.exit(f"{path.stem}: {done.stderr.strip()}")
        made, given = safetensors.read(results)[0], safetensors.read(path)[0]
        out, expected = made["out_ptr0"].data, given["triton_flex.out"].data
        # PyTorch multiplies the kernel's binary logarithms in a kernel of its own.
        lse = [fp32(x * ln2) for x in floats(made["arg_LSE"].data)]
        of_lse = floats(given["triton_flex.lse"].data)
        wrong = [sum(out[i : i + 2] != expected[i : i + 2] for i in range(0, len(out), 2)), sum(a != b for a, b in zip(lse, of_lse))]
        print(f"{path.stem}: out {wrong[0]} of {len(out) // 2:,}, LSE {wrong[1]} of {len(lse)} differ; {findings[1]} findings", flush=True)
        failed |= any(wrong) or findings[1] != "0"
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
