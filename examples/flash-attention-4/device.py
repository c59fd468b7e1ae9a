"""A device that has addresses and nothing else, on which compiled host code can be called."""

import ctypes, pathlib, subprocess
from dataclasses import dataclass

import torch, tvm_ffi

from launch_file import parameters

CUDA = 2  # kDLCUDA


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class ManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


# DLPack's code and bits of an element
TYPES = {
    torch.bfloat16: (4, 16),
    torch.float16: (2, 16),
    torch.float32: (2, 32),
    torch.int32: (0, 32),
    torch.int64: (0, 64),
    torch.uint8: (1, 8),
}

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

Listener = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p)
)


@dataclass
class Launch:
    """What host code asked the driver for; `arguments` has the bytes of each parameter."""

    entry: str
    ptx: str
    grid: list
    block: list
    cluster: list
    shared_bytes: int
    arguments: list


# Where tensors begin. The upper word of an address is no extent that a problem has, so that two extents are not taken for one:
# 256 in the upper word is 2^40.
FIRST_ADDRESS = 2**56


class Memory:
    """Gives every tensor's storage an address of its own, 2^40 bytes from the next."""

    def __init__(self):
        self.storages, self.held, self.handed_on = {}, [], []

    def address(self, tensor):
        storage = tensor.untyped_storage()._cdata
        if storage not in self.storages:
            self.storages[storage] = len(self.held)
            self.held.append(tensor)  # so that no other storage gets its place
        return FIRST_ADDRESS + (self.storages[storage] << 40) + tensor.storage_offset() * tensor.element_size()

    def place(self, address):
        """The number of the storage at an address, and the offset in it; None where there is none."""
        number, offset = (address - FIRST_ADDRESS) >> 40, address & (1 << 40) - 1
        tensor = self.held[number] if 0 <= number < len(self.held) else None
        return None if tensor is None or offset > tensor.untyped_storage().nbytes() else (number, offset)


class Handle:
    """A tensor without memory, as DLPack hands one on."""

    def __init__(self, tensor, memory):
        self.tensor, self.memory = tensor, memory

    def __dlpack_device__(self):
        return CUDA, 0

    def __dlpack__(self, **_):
        rank, (code, bits) = self.tensor.dim(), TYPES[self.tensor.dtype]
        shape, strides = ((ctypes.c_int64 * rank)(*numbers) for numbers in (self.tensor.shape, self.tensor.stride()))
        address = self.memory.address(self.tensor)
        tensor = DLTensor(address, CUDA, 0, rank, DataType(code, bits, 1), shape, strides, 0)
        managed = ManagedTensor(tensor, None, None)
        self.memory.handed_on.append((managed, shape, strides))
        return new_capsule(ctypes.addressof(managed), b"dltensor", None)


def handles(value, memory):
    """`value` with every tensor in it as a handle that compiled host code takes."""
    if isinstance(value, torch.Tensor):
        return tvm_ffi.from_dlpack(Handle(value, memory))
    if isinstance(value, list):
        return [handles(member, memory) for member in value]
    if isinstance(value, tuple):
        members = [handles(member, memory) for member in value]
        return type(value)(*members) if hasattr(value, "_fields") else tuple(members)
    return value


class HostCode:
    """Compiled host code, linked against driver.c in place of the driver."""

    def __init__(self, compiled, folder):
        self.ptx = compiled.__ptx__.rstrip("\0")
        objects, library = folder / "host.o", folder / "host.so"
        compiled.export_to_c(object_file_path=str(objects), function_name="host")
        driver = pathlib.Path(__file__).parent / "driver.c"
        subprocess.check_call(["cc", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-o", library, objects, driver])
        self.launches, self.listener = [], Listener(self.launched)
        ctypes.CDLL(str(library)).expect_launches(self.listener)
        self.function = tvm_ffi.load_module(str(library))["host"]

    def launched(self, kernel, numbers, shared_bytes, arguments):
        entry = kernel.decode()
        sizes = [parameter.size for parameter in parameters(self.ptx, entry)]
        data = [ctypes.string_at(arguments[i], size) for i, size in enumerate(sizes)]
        grid, block, cluster = numbers[0:3], numbers[3:6], numbers[6:9]
        self.launches.append(Launch(entry, self.ptx, grid, block, cluster if any(cluster) else [], shared_bytes, data))

    def call(self, arguments, memory):
        """The launches of one call."""
        self.launches = []
        self.function(*(handles(argument, memory) for argument in arguments))
        return self.launches
