"""Makes PyTorch of PyPI load where none of NVIDIA's libraries but the CUDA runtime is installed.

PyTorch's wheel for Linux links against cuBLAS, cuDNN, NCCL and more, and a test on the CPU calls none of them. Each that is
missing is replaced by one small library beside PyTorch's, whose functions all return 100: cudaErrorNoDevice, and
CUDA_ERROR_NO_DEVICE, and an error in every other of these libraries. Needs a C compiler and binutils.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

#: What NVIDIA's libraries and their functions are called.
LIBRARY = re.compile(r"lib(cu|nv|nccl)")
FUNCTION = re.compile(r"(cu|nv|nccl)\w*")


def symbols(kind: str, libraries: list[Path]) -> dict[str, str]:
    """The dynamic symbols of libraries that are `defined` or `undefined` there, each with its version or an empty text."""
    command = ["nm", "--dynamic", f"--{kind}-only", "--format=posix", *map(str, libraries)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    named = (re.split("@+", line.split(" ")[0]) for line in lines)
    return {name: "".join(version) for name, *version in named}


def needed(library: Path) -> set[str]:
    """The libraries that a library is linked against."""
    command = ["readelf", "--dynamic", str(library)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


packages = Path(sys.argv[1])
folder = packages / "torch" / "lib"
own = sorted(folder.glob("*.so*"))
real = sorted(packages.glob("nvidia/*/lib/*.so*"))
missing = set().union(*map(needed, own)) - {library.name for library in own + real}
versions = symbols("undefined", own)
functions = sorted(filter(FUNCTION.fullmatch, versions.keys() - symbols("defined", own + real)))
source = "".join(f"int {name}(void) {{ return 100; }}\n" for name in functions)
# The loader insists that a library which a version is asked of has that version.
nodes = "".join(
    f"{version} {{ {' '.join(f'{name};' for name in functions if versions[name] == version)} }};\n"
    for version in sorted({versions[name] for name in functions} - {""})
)
stub = folder / "libno_device.so"
with tempfile.TemporaryDirectory() as work:
    script = Path(work, "versions")
    script.write_text(nodes)
    command = ["cc", "-shared", "-fPIC", "-fno-builtin", f"-Wl,--version-script={script}"]
    subprocess.run([*command, "-o", str(stub), "-x", "c", "-"], check=True, input=source, text=True)
for name in filter(LIBRARY.match, missing):
    (folder / name).symlink_to(stub.name)
