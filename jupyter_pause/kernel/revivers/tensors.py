# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Tensors of PyTorch in main memory: views of one storage stay views, tied parameters stay tied.

PyTorch's own pickling gives each tensor a storage of its own and copies its bytes into the pickle. A storage is written
once here, as a buffer beside the pickle: memory that NumPy looks at as well is then one region. Tensors on devices, and
those of special kinds (sparse, quantized, conjugate views), are left to PyTorch's own rules.
"""

from __future__ import annotations

import ctypes
import importlib
import pickle
import sys
import weakref
from typing import Any, Optional, Tuple

from .base import Help, Reviver

#: Storage address -> what stands for it in the dumps of this process, while somebody holds it.
_storages: "weakref.WeakValueDictionary[int, Storage]" = weakref.WeakValueDictionary()


class Storage:
    """The memory below tensors, in a pickle."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage  # keeps the memory while it is being written

    def __reduce_ex__(self, protocol: Any) -> Any:
        size = self.storage.nbytes()
        if not size:
            return make_storage, (None,)
        memory = (ctypes.c_ubyte * size).from_address(self.storage.data_ptr())
        return make_storage, (pickle.PickleBuffer(memoryview(memory).cast("B")),)


def make_storage(data: Any) -> Any:
    """A storage over a buffer of the checkpoint."""
    torch = importlib.import_module("torch")
    if data is None:
        return torch.empty(0, dtype=torch.uint8).untyped_storage()
    return torch.frombuffer(data, dtype=torch.uint8).untyped_storage()


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
        stand = _storages.get(storage.data_ptr()) if storage.nbytes() else None
        if stand is None or stand.storage.nbytes() != storage.nbytes():
            stand = Storage(storage)
            _storages[storage.data_ptr()] = stand
        place = (value.storage_offset(), tuple(value.size()), value.stride())
        arguments = (stand, value.dtype, *place, bool(value.requires_grad), type(value).__name__ == "Parameter")
        state = (value.grad if value.is_leaf else None, dict(vars(value)))
        return make_tensor, arguments, state, None, None, fill_tensor


def _is_plain(value: Any) -> bool:
    torch = sys.modules["torch"]
    special = value.is_quantized or value.is_conj() or value.is_neg() or value.layout is not torch.strided
    return value.device.type == "cpu" and not special and not value.is_nested


def make_tensor(
    storage: Any, dtype: Any, offset: int, size: Any, stride: Any, requires_grad: bool, parameter: bool
) -> Any:
    """A tensor over a storage that others may share."""
    torch = importlib.import_module("torch")
    made = torch.empty(0, dtype=dtype).set_(storage, offset, size, stride)
    if parameter:
        return torch.nn.Parameter(made, requires_grad)
    return made.requires_grad_(requires_grad) if requires_grad else made


def fill_tensor(made: Any, state: Any) -> None:
    """Its gradient, and attributes that somebody put on it."""
    gradient, attributes = state
    if gradient is not None:
        made.grad = gradient
    vars(made).update(attributes)
