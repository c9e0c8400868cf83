# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Types that `ctypes` makes: arrays of a type, and structures and unions that a notebook describes by their fields."""

from __future__ import annotations

import sys
from typing import Any, Optional, Tuple

#: What a structure must know at the moment it is made, in this order.
_LAYOUT = ("_pack_", "_align_", "_anonymous_", "_fields_")


def recipe_of(cls: Any) -> Optional[Tuple[Any, ...]]:
    """The recipe of such an array type, or of one of ctypes' own metaclasses; None for others."""
    ctypes = sys.modules.get("ctypes")
    if ctypes is None:
        return None
    for base in (ctypes.Structure, ctypes.Union, ctypes.Array):
        if cls is type(base):
            return type, (base,)
    if type(cls) is type(ctypes.Array) and cls.__bases__ == (ctypes.Array,) and "_type_" in cls.__dict__:
        return array_of, (cls._type_, cls._length_)
    return None


def array_of(kind: Any, length: int) -> Any:
    """The type of arrays with so many items; ctypes has it only once."""
    return kind * length


def _is_described(cls: Any) -> bool:
    ctypes = sys.modules.get("ctypes")
    return ctypes is not None and isinstance(cls, (type(ctypes.Structure), type(ctypes.Union)))


def names_of(cls: Any) -> Tuple[str, ...]:
    """Names that a structure's body must have."""
    return _LAYOUT if _is_described(cls) else ()


def is_field(cls: Any, name: str, value: Any) -> bool:
    """Whether ctypes makes this attribute from the fields."""
    return _is_described(cls) and (name in _LAYOUT or type(value).__name__ == "CField")
