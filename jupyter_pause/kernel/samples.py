# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Digests of the largest variables, compared before and after a snapshot: a few bytes of each, device memory too.

They prove nothing alone (the mark does), but a restore that brings the process back with damaged memory shows here.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any, Optional

from . import fingerprint, history

#: Elements of a device array that are copied out.
_POINTS = 256


def take(shell: Any, limit: int, names: Any = None) -> list[dict[str, Any]]:
    """Name, digest, size (bytes) and whether it lies on a device; of `names`, else of the `limit` largest variables."""
    namespace = dict(shell.user_ns)
    if isinstance(names, list):
        chosen = [(name, namespace[name]) for name in names if isinstance(name, str) and name in namespace]
    else:
        hidden = history.hidden_names(shell) | {"In", "Out", history.NAME}
        listed = [(name, value) for name, value in namespace.items() if name not in hidden and _is_data(value)]
        chosen = sorted(listed, key=lambda item: size(item[1]), reverse=True)[:limit]
    found = []
    for name, value in chosen:
        on_device = _is_device(value)
        digest = of_device(value) if on_device else fingerprint.of(value)
        if digest is not None:
            found.append({"name": name, "digest": digest, "bytes": size(value), "device": on_device})
    return found


def _is_data(value: Any) -> bool:
    """Not a module, function or class: those are the same in any process."""
    return type(value).__name__ not in ("module", "function", "builtin_function_or_method") and not isinstance(
        value, type
    )


def size(value: Any) -> int:
    """A variable's own size in bytes, without what it refers to."""
    try:
        own = getattr(value, "nbytes", None)
        if isinstance(own, int):
            return own
        if _is_device(value):
            return int(value.numel()) * int(value.element_size())
        return sys.getsizeof(value)
    except Exception:
        return 0


def _is_device(value: Any) -> bool:
    """A tensor of torch (on any device) or an array of CuPy; only if the person imported them."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return True
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(value, getattr(cupy, "ndarray", ()))


def of_device(value: Any) -> Optional[str]:
    """A digest of elements at even distances, copied out of the device; None where they cannot be read."""
    try:
        if hasattr(value, "detach"):
            flat = value.detach().reshape(-1)
            step = max(1, int(flat.numel()) // _POINTS)
            data = bytes(flat[::step][:_POINTS].cpu().contiguous().view(sys.modules["torch"].uint8).numpy().tobytes())
            shape, kind = tuple(value.shape), str(value.dtype)
        else:
            flat = value.reshape(-1)
            step = max(1, int(flat.size) // _POINTS)
            data = bytes(sys.modules["cupy"].asnumpy(flat[::step][:_POINTS]).tobytes())
            shape, kind = tuple(value.shape), str(value.dtype)
    except Exception:
        return None
    return hashlib.sha256(repr((shape, kind)).encode() + data).hexdigest()[:32]
