# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Tensors of PyTorch, in main memory or on a CUDA device: views of one storage stay views, tied parameters stay tied.

PyTorch's own pickling gives each tensor a storage of its own and copies its bytes into the pickle. A storage is written
once here, as a buffer beside the pickle: memory that NumPy looks at as well is then one region. One on a device is
copied to main memory for that, and goes back to its device; where that is not there it stays in main memory, which is
said. **Untested on a GPU.** Tensors of special kinds (sparse, quantized, conjugate views) and on other kinds of devices
are left to PyTorch's own rules.
"""

from __future__ import annotations

import ctypes
import importlib
import pickle
import sys
import weakref
from typing import Any, Optional, Tuple

from ..context import current
from .base import Help, Reviver

#: Kinds of devices whose storages are written here.
_OURS = ("cpu", "cuda")
#: Device and address of a storage -> what stands for it in the dumps of this process, while somebody holds it.
_storages: "weakref.WeakValueDictionary[Tuple[str, int], Storage]" = weakref.WeakValueDictionary()


class Storage:
    """The memory below tensors, in a pickle."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage  # keeps the memory while it is being written

    def __reduce_ex__(self, protocol: Any) -> Any:
        size = self.storage.nbytes()
        if _is_on_device(self.storage):
            return make_device_storage, (_buffer_of(self.storage.cpu()) if size else None, str(self.storage.device))
        return make_storage, (_buffer_of(self.storage) if size else None,)


def _is_on_device(storage: Any) -> bool:
    return bool(storage.device.type != "cpu")


def _buffer_of(storage: Any) -> Any:
    """The memory of a storage in main memory, which lives as long as the buffer does."""
    memory = (ctypes.c_ubyte * storage.nbytes()).from_address(storage.data_ptr())
    memory.owner = storage
    return pickle.PickleBuffer(memoryview(memory).cast("B"))


def make_storage(data: Any) -> Any:
    """A storage over a buffer of the checkpoint."""
    torch = importlib.import_module("torch")
    if data is None:
        return torch.empty(0, dtype=torch.uint8).untyped_storage()
    return torch.frombuffer(data, dtype=torch.uint8).untyped_storage()


def make_device_storage(data: Any, device: str) -> Any:
    """A storage on a device, copied there; in main memory, and said, where that device is not here."""
    torch = importlib.import_module("torch")
    storage = make_storage(data)
    if not _is_here(device):
        current().lost("GPU memory", "it was on the GPU %s, which is not here: it is in main memory now (cpu)" % device)
        return storage
    return torch.empty(0, dtype=torch.uint8).set_(storage).to(device).untyped_storage()


def _is_here(device: str) -> bool:
    cuda = importlib.import_module("torch").cuda
    return bool(cuda.is_available()) and int(device.partition(":")[2] or 0) < cuda.device_count()


class _Tensor(Reviver):
    types = ("torch.Tensor", "torch.nn.parameter.Parameter")
    rebuilt = False

    def is_rebuilt(self, value: Any) -> bool:
        return not value.is_leaf

    def describe(self, value: Any) -> Optional[str]:
        return None if value.is_leaf else "it has its values; how it was computed is not kept"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        if not _is_plain(value):
            recipe: Tuple[Any, ...] = value.__reduce_ex__(5)
            return recipe
        storage = value.untyped_storage()
        where = (str(storage.device), storage.data_ptr())
        stand = _storages.get(where) if storage.nbytes() else None
        if stand is None or stand.storage.nbytes() != storage.nbytes():
            stand = Storage(storage)
            _storages[where] = stand
        place = (value.storage_offset(), tuple(value.size()), value.stride())
        arguments = (stand, value.dtype, *place, bool(value.requires_grad), type(value).__name__ == "Parameter")
        state = (value.grad if value.is_leaf else None, dict(vars(value)))
        return make_tensor, arguments, state, None, None, fill_tensor


def _is_plain(value: Any) -> bool:
    torch = sys.modules["torch"]
    special = value.is_quantized or value.is_conj() or value.is_neg() or value.layout is not torch.strided
    return value.device.type in _OURS and not special and not value.is_nested


def make_tensor(
    storage: Any, dtype: Any, offset: int, size: Any, stride: Any, requires_grad: bool, parameter: bool
) -> Any:
    """A tensor over a storage that others may share."""
    torch = importlib.import_module("torch")
    made = torch.empty(0, dtype=dtype, device=storage.device).set_(storage, offset, size, stride)
    if parameter:
        return torch.nn.Parameter(made, requires_grad)
    return made.requires_grad_(requires_grad) if requires_grad else made


def fill_tensor(made: Any, state: Any) -> None:
    """Its gradient, and attributes that somebody put on it."""
    gradient, attributes = state
    if gradient is not None:
        made.grad = gradient
    vars(made).update(attributes)
