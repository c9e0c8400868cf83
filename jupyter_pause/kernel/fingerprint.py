# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A cheap digest of what a variable holds, taken before a pause and compared after the resume.

It never walks deep and never copies much: type, length, shape, a few sampled bytes. It must be the same in another
process and under another Python version, so ids, hashes and the text of floats in containers stay out.
"""

from __future__ import annotations

import hashlib
import sys
from types import FunctionType, ModuleType
from typing import Any, Optional

_TEXT = 1 << 20
_SAMPLES = 64
_SAMPLE_BYTES = 512
#: Types whose name differs between Python versions.
_RENAMED = frozenset(("weakref", "ReferenceType", "weakproxy", "ProxyType", "weakcallableproxy", "CallableProxyType"))


def of(value: Any) -> Optional[str]:
    """32 hex digits, or None where nothing cheap can be said that must be equal afterwards."""
    try:
        parts = _parts(value)
    except Exception:
        return None
    if parts is None:
        return None
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()[:32]


def _parts(value: Any) -> Any:
    cls = type(value)
    if value is None or cls in (bool, int, float, complex):
        return [cls.__name__, repr(value) if cls is not int else hex(value)]
    if cls is str:
        data = value[:_TEXT].encode("utf-8", "surrogatepass")
        return ["str", len(value), data]
    if cls in (bytes, bytearray):
        return [cls.__name__, len(value), *_samples(memoryview(value))]
    if cls in (list, tuple, set, frozenset):
        return [cls.__name__, len(value), *_first_items(value if cls in (list, tuple) else ())]
    if cls is dict:
        return ["dict", len(value), *_first_items(list(value)[:8])]
    if hasattr(value, "__supertype__"):
        return None  # a NewType is a function in some versions and an object in others
    if cls is FunctionType:
        return ["function", value.__qualname__, value.__code__.co_argcount]
    if issubclass(type(value), type):
        return ["class", value.__qualname__, len(value.__bases__)]
    if cls is ModuleType:
        return ["module", value.__name__]
    np = sys.modules.get("numpy")
    if np is not None and cls is getattr(np, "ndarray", None):
        return _array(value)
    pandas = sys.modules.get("pandas")
    if pandas is not None and cls.__name__ in ("DataFrame", "Series") and cls.__module__.startswith("pandas."):
        kinds = [str(kind) for kind in value.dtypes] if cls.__name__ == "DataFrame" else [str(value.dtype)]
        return [cls.__name__, value.shape, *kinds]
    return None if cls.__name__ in _RENAMED else ["object", cls.__qualname__]


def _first_items(items: Any) -> Any:
    return [
        repr(item)
        for item in items[:8]
        if type(item) in (bool, int, type(None)) or (type(item) is str and len(item) < 200)
    ]


def _array(array: Any) -> Any:
    parts = ["array", array.shape, str(array.dtype), bool(array.flags.writeable)]
    if array.dtype.hasobject or not array.size:
        return parts
    if array.flags.c_contiguous or array.flags.f_contiguous:
        flat = array.reshape(-1, order="C" if array.flags.c_contiguous else "F")
        return parts + _samples(memoryview(flat.view("u1")) if flat.dtype.itemsize else memoryview(b""))
    corners = [array[tuple(0 for _ in array.shape)], array[tuple(-1 for _ in array.shape)]]
    return parts + [corner.tobytes() for corner in corners]


def _samples(view: memoryview) -> Any:
    """Pieces at even distances; all of it where it is small."""
    length = len(view)
    if length <= _SAMPLES * _SAMPLE_BYTES:
        return [bytes(view)]
    step = (length - _SAMPLE_BYTES) // (_SAMPLES - 1)
    return [bytes(view[start : start + _SAMPLE_BYTES]) for start in range(0, step * _SAMPLES, step)]
