# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which kinds of devices hold the arrays that a checkpoint refers to; nothing is imported and nothing is copied.

An array of a device is one of PyTorch or JAX that says so, or one whose class has the attribute
`__cuda_array_interface__` (CuPy, Numba and others: numba.readthedocs.io, "CUDA Array Interface").
"""

from __future__ import annotations

from typing import Any, Optional

_INTERFACE = "__cuda_array_interface__"
_ASKED = ("torch", "jax", "jaxlib")
_NOT_DEVICES = ("cpu", "meta")


def may_be(cls: type) -> bool:
    """Whether objects of a class can be arrays of a device."""
    root = str(getattr(cls, "__module__", "")).split(".")[0]
    if root in _ASKED:
        return hasattr(cls, "device") or hasattr(cls, "devices")
    return any(_INTERFACE in vars(base) for base in cls.__mro__)


def kind_of(value: Any) -> Optional[str]:
    """`cuda`, `mps`, `tpu`, ...; None for memory of the process itself, or where it cannot be told."""
    root = str(type(value).__module__).split(".")[0]
    try:
        if root == "torch":
            kind = str(value.device.type)
        elif root in _ASKED:
            kind = ",".join(sorted({str(device.platform) for device in value.devices()}))
        else:
            kind = "cuda"
    except Exception:
        return None
    return None if kind in _NOT_DEVICES else kind
