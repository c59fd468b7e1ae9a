"""Launches of Triton kernels as they are met: each is recorded, run on the emulated machine, and what it wrote goes back into its tensors."""

import math, os, re, subprocess, sys

from flashproof import safetensors, triton as recorder

FLASHPROOF = os.environ.get("FLASHPROOF", "npx flashproof").split()
TORCH = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "I32": "int32", "I64": "int64"}


def loaded(array):
    """A stored tensor as one of PyTorch."""
    import torch

    return torch.frombuffer(bytearray(array.data), dtype=getattr(torch, TORCH[array.dtype])).reshape(array.shape)


def equal_bits(tensor, array):
    """How many elements of a tensor have the bits of a stored one."""
    import torch

    whole = {2: torch.int16, 4: torch.int32}[tensor.element_size()]
    return (tensor.contiguous().view(whole) == loaded(array).view(whole)).sum().item()


class Launches:
    """What `device.install` takes: launches are written to folders of `to`, one after another."""

    def __init__(self, to, contract=None, outputs=None):
        self.to, self.contract, self.outputs, self.findings = to, contract, outputs, 0
        self.folders = []

    def launched(self, compiled, grid, arguments):
        import torch

        folder = self.to / f"{len(self.folders)}-{compiled.metadata.name}" if self.outputs is None else self.to
        self.folders.append(folder)
        given = {name: one for name, one in arguments.items() if one is not None}
        for name in self.outputs or ():
            given[name].fill_(math.nan)
        tensors = [name for name, one in given.items() if isinstance(one, torch.Tensor)]
        recorder.record_compiled(folder, compiled, grid, given, self.outputs or tensors, contract=self.contract)
        if self.outputs is None:
            self.run(folder, {name: given[name] for name in tensors})

    def run(self, folder, tensors):
        """Any tensor may be an output: what the kernel only reads is as it was."""
        after = folder / "after.safetensors"
        done = subprocess.run([*FLASHPROOF, "run", folder / "launch.json", "--save", after], capture_output=True, text=True)
        findings = re.search(r"^([\d,]+) findings?", done.stdout, re.M)
        if findings is None:
            sys.exit(f"{folder}: {done.stderr.strip()}")
        self.findings += int(findings[1].replace(",", ""))
        written = safetensors.read(after)[0]
        for name, tensor in tensors.items():
            tensor.copy_(loaded(written[name]))
