"""Launches of Triton kernels as they are met: each is recorded, run on the emulated machine, and what it wrote goes back into its tensors."""

import json, math, os, re, subprocess, sys

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


def storage_of(tensor):
    """Where a tensor lies."""
    return tensor.untyped_storage().data_ptr()


def blank(tensor):
    """What a tensor holds that no one has filled: `nothing` as `device.install` makes it, or `zeros`; None where it holds something."""
    import torch

    if not tensor.is_floating_point():
        return None
    held = tensor.contiguous().reshape(-1).view(torch.uint8)
    return "nothing" if (held == 255).all() else "zeros" if (held == 0).all() else None


class Launches:
    """
    What `device.install` takes: launches are written to folders of `to`, one after another. A tensor has the same name in all of them;
    `inputs` are tensors that have theirs. Without `outputs` each launch is run, and any tensor may be an output.
    """

    def __init__(self, to, contract=None, outputs=None, inputs=None):
        self.to, self.contract, self.outputs, self.findings = to, contract, outputs, 0
        self.folders, self.names, self.held = [], {}, []
        for name, tensor in (inputs or {}).items():
            self.name(name, tensor)

    def name(self, name, tensor):
        """Gives a tensor a name, unless it has one. It is kept, lest another comes to lie in its place."""
        taken = set(self.names.values())
        numbered = name if name not in taken else f"{name}.{len(self.folders)}"
        self.held.append(tensor)
        return self.names.setdefault(storage_of(tensor), numbered)

    def tensor_of(self, name):
        """The tensor of a name."""
        return next(one for one in self.held if self.names[storage_of(one)] == name)

    def launched(self, compiled, grid, arguments):
        import torch

        number = len(self.folders)
        folder = self.to / f"{number}-{compiled.metadata.name}" if self.outputs is None else self.to
        given = {name: one for name, one in arguments.items() if one is not None}
        for name in self.outputs or ():
            given[name].fill_(math.nan)
        tensors = [name for name, one in given.items() if isinstance(one, torch.Tensor)]
        if self.outputs is not None:
            recorder.record_compiled(folder, compiled, grid, given, self.outputs, contract=self.contract)
        else:
            new = {name: blank(given[name]) for name in tensors if storage_of(given[name]) not in self.names}
            names = {name: self.name(name, given[name]) for name in tensors}
            buffers = {name: how for name, how in new.items() if how is not None}
            recorder.record_compiled(folder, compiled, grid, given, tensors, names=names, buffers=buffers)
            self.run(folder, {names[name]: given[name] for name in tensors})
        self.folders.append(folder)

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

    def write_contract(self, settings, views):
        """Says in the last launch what the chain computes: settings, and tensors by the contract's names, perhaps with strides."""
        path = self.folders[-1] / "launch.json"
        said = {}
        for member, (tensor, *strides) in views.items():
            name = self.names.get(storage_of(tensor))
            if name is None:
                sys.exit(f"{path}: {member} is no tensor of a launch")
            said[member] = {"tensor": name, "shape": list(tensor.shape)} | ({"strides": strides[0]} if strides else {})
        launch = json.loads(path.read_text())
        path.write_text(json.dumps({**launch, "contract": {**settings, **said}}, indent=2) + "\n")
