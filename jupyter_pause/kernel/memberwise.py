# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Reads what an object holds (attributes, slots, the content of the builtin type it derives from) from its memory.

Nothing of the object's own code runs: no ``__getattr__``, property, ``__iter__``, ``__len__`` or ``__eq__``.
"""

from __future__ import annotations

import collections
import enum
import functools
import os
import sys
import sysconfig
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import fingerprint, losses, packages, structure

#: Objects of one type that are read: of the person's own types, and of a library's.
MOST_OWN, MOST_FOREIGN = 4000, 50
_RULES = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs_ex__", "__getnewargs__")
#: Types of pandas to which people give attributes that its own rules do not save.
_TAKE_ATTRIBUTES = ("DataFrame", "Series")
_LOOKUPS = ("__getattr__", "__getattribute__")


class Kind(NamedTuple):
    """How objects of one type are read. `own`: the person may have given it attributes, so they are read too.

    `content` gives a digest of what the builtin type below it holds. `private`: whether attributes with a leading
    underscore are read; those of a library's rules are the library's business.
    """

    own: bool
    name: str
    content: Optional[Callable[[Any], Optional[str]]]
    has_dict: bool
    slots: Dict[str, Any]
    private: bool
    most: int


def kind_of(cls: type) -> Optional[Kind]:
    """How objects of a type are read; None where what pickling does with them can be believed."""
    try:
        return _kind_of(cls)
    except Exception:  # a type with attributes that are not what they should be
        return None


def _kind_of(cls: type) -> Optional[Kind]:
    if issubclass(cls, type) or issubclass(type(cls), enum.EnumMeta) or cls.__module__ == "numpy.dtypes":
        return None  # NumPy has several types for what is one and the same number
    name, content = losses.name_of_type(cls), _content_of(cls)
    if not is_own(cls):
        error = issubclass(cls, BaseException)
        if cls.__module__.partition(".")[0] == "pandas" and cls.__qualname__ in _TAKE_ATTRIBUTES:
            return Kind(True, name, None, _has_dict(cls), {}, False, MOST_OWN)
        if not error and is_standard(cls):
            return None
        return Kind(False, name, content if error else None, False, {}, False, MOST_FOREIGN)
    rule = _rule_of(cls)
    odd = any(isinstance(base.__dict__.get(look), types.FunctionType) for base in cls.__mro__ for look in _LOOKUPS)
    if rule is None and content is None and not odd and not isinstance(cls.__new__, types.FunctionType):
        return None
    private = rule is None or is_own(rule[0]) or not isinstance(rule[1], types.FunctionType)
    return Kind(True, name, content, _has_dict(cls), _slots(cls), private, MOST_OWN)


def attributes(value: Any, kind: Kind) -> Dict[str, Any]:
    """Names and values; not those that Python made, nor those that are computed again when they are asked for."""
    found: Dict[str, Any] = {}
    if kind.has_dict:
        found.update(object.__getattribute__(value, "__dict__"))
    for name, descriptor in kind.slots.items():
        try:
            found[name] = descriptor.__get__(value)
        except AttributeError:
            continue
    cls = type(value)
    return {
        name: item
        for name, item in found.items()
        if not (name.startswith("__") and name.endswith("__"))
        and (kind.private or not name.startswith("_"))
        and not _is_computed_by(cls, name)
    }


def _is_computed_by(cls: type, name: str) -> bool:
    for base in cls.__mro__:
        if name in base.__dict__:
            item = base.__dict__[name]
            return isinstance(item, functools.cached_property) or "cached" in type(item).__name__.lower()
    return False


def _rule_of(cls: type) -> Optional[Tuple[type, Any]]:
    """The class that says how objects of a type are pickled, and its rule; None for Python's own way."""
    for base in cls.__mro__:
        if base is object:
            return None
        for rule in _RULES:
            if rule in base.__dict__:
                return base, base.__dict__[rule]
    return None


def _has_dict(cls: type) -> bool:
    found = [base.__dict__["__dict__"] for base in cls.__mro__ if base is not type and "__dict__" in base.__dict__]
    return bool(cls.__dictoffset__) and all(isinstance(item, types.GetSetDescriptorType) for item in found)


def _slots(cls: type) -> Dict[str, Any]:
    return {
        name: item
        for base in reversed(cls.__mro__)
        if "__slots__" in base.__dict__
        for name, item in base.__dict__.items()
        if isinstance(item, types.MemberDescriptorType)
    }


# --- whose type it is ----------------------------------------------------------------------------------------------


def is_own(cls: type) -> bool:
    """Whether the person wrote it: in the notebook, or in a module that is neither Python's nor an installed one."""
    return cls.__module__ == "__main__" or _place(cls.__module__) == "own"


def is_standard(cls: type) -> bool:
    """Whether Python itself has it."""
    return _place(cls.__module__) == "standard"


@functools.lru_cache(maxsize=4096)
def _place(name: str) -> str:
    """Of a module: own, standard or installed."""
    module = sys.modules.get(name)
    if module is None:
        return "own" if name.partition(".")[0] not in sys.modules else "installed"
    if name.partition(".")[0] in _ours():
        return "standard"
    path = getattr(module, "__file__", None)
    if not isinstance(path, str):
        parent = name.rpartition(".")[0]
        if parent:
            return _place(parent)
        return "own" if getattr(module, "__spec__", None) is None else "standard"
    path = os.path.realpath(path)
    if "site-packages" in path or "dist-packages" in path or packages.is_installed_elsewhere(name, path):
        return "installed"
    return "standard" if any(path.startswith(folder + os.sep) for folder in _standard_folders()) else "own"


def _ours() -> Tuple[str, ...]:
    return (__name__.partition(".")[0], "_jupyter_pause_bootstrap")


@functools.lru_cache(maxsize=1)
def _standard_folders() -> List[str]:
    wanted = [sysconfig.get_paths().get(key) for key in ("stdlib", "platstdlib")]
    return [os.path.realpath(folder) for folder in [*wanted, os.path.dirname(os.__file__)] if folder]


# --- what lies below -----------------------------------------------------------------------------------------------


def _content_of(cls: type) -> Optional[Callable[[Any], Optional[str]]]:
    """The reader of the builtin type that a type derives from; None where there is none."""
    for base, reader in _CONTENT:
        if cls is not base and issubclass(cls, base):
            return reader
    array = getattr(sys.modules.get("numpy"), "ndarray", None)
    if array is not None and issubclass(cls, array):
        return lambda value: fingerprint.of(array.view(value, array))
    return None


def _of_pairs(kind: type) -> Callable[[Any], Optional[str]]:
    def read(value: Any) -> Optional[str]:
        pairs = list(kind.items(value))  # type: ignore[attr-defined]
        return structure.of_items("dict", [part for pair in pairs for part in pair])

    return read


def _of_items(kind: Any) -> Callable[[Any], Optional[str]]:
    return lambda value: structure.of_items(kind.__name__, list(kind.__iter__(value)))


def _of_set(kind: Any) -> Callable[[Any], Optional[str]]:
    return lambda value: structure.of_items("set", list(kind.__iter__(value)), ordered=False)


#: The order matters: an OrderedDict is a dict, and has an order of its own.
_CONTENT: List[Tuple[type, Callable[[Any], Optional[str]]]] = [
    (BaseException, lambda value: structure.digest(BaseException.__dict__["args"].__get__(value))),
    (collections.OrderedDict, _of_pairs(collections.OrderedDict)),
    (dict, _of_pairs(dict)),
    (list, _of_items(list)),
    (tuple, _of_items(tuple)),
    (collections.deque, _of_items(collections.deque)),
    (set, _of_set(set)),
    (frozenset, _of_set(frozenset)),
    (str, lambda value: structure.digest(str.__str__(value))),
    (bytes, lambda value: structure.digest(bytes.__add__(value, b""))),
    (bytearray, lambda value: structure.digest(bytes(memoryview(value)))),
    (int, lambda value: structure.digest(int.__int__(value))),
    (float, lambda value: structure.digest(float.__float__(value))),
    (complex, lambda value: structure.digest(complex.__add__(value, 0j))),
]
