# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A digest of what an object holds, some way down: taken before the pause, compared after the load.

It calls no code of the person's (no ``__eq__``, ``__hash__``, ``__len__`` or property), looks at a bounded number of
objects, and is the same in another process: ids, hashes and the order of sets stay out.
"""

from __future__ import annotations

import hashlib
import sys
import types
from typing import Any, Dict, List, Optional

from . import fingerprint, revivers
from .context import Described
from .sizes import ATOMS
from .tombstone import Tombstone

#: Objects looked at in one digest, levels down, and items of one container: its first ones and its last ones.
MOST_OBJECTS, DEEPEST = 256, 6
FIRST_ITEMS, LAST_ITEMS = 24, 8
_TEXT = 1 << 16
#: Kinds whose name or identity depends on the process or on the version of Python.
_UNSTEADY = frozenset(
    ("weakref", "ReferenceType", "weakproxy", "ProxyType", "weakcallableproxy", "CallableProxyType", "NewType")
)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


class _Unknown(Exception):
    """Nothing can be said that must be the same afterwards."""


def digest(value: Any) -> Optional[str]:
    """16 hex digits, or None where nothing can be said that must be equal in another process."""
    look = _Look()
    try:
        look.at(value, 0)
    except _Unknown:
        return None
    except Exception:  # an object that changes while it is looked at
        return None
    return look.sum.hexdigest()[:16]


def of_items(kind: str, items: List[Any], ordered: bool = True) -> Optional[str]:
    """The digest of a container's content; `items` in order, or in any order where not `ordered`."""
    look = _Look()
    try:
        look.say(kind, len(items))
        if ordered:
            look.items(items, 0)
        else:
            look.unordered(items)
    except Exception:
        return None
    return look.sum.hexdigest()[:16]


class _Look:
    """One digest being taken."""

    def __init__(self) -> None:
        self.sum = hashlib.sha256()
        self._left = MOST_OBJECTS
        self._seen: Dict[int, int] = {}
        self._keep: List[Any] = []

    def say(self, *parts: Any) -> None:
        """Add to the digest."""
        for part in parts:
            data = part if type(part) is bytes else str(part).encode("utf-8", "surrogatepass")
            self.sum.update(b"%d:" % len(data))
            self.sum.update(data)

    def items(self, items: List[Any], depth: int) -> None:
        """The first and the last of them."""
        chosen = items if len(items) <= FIRST_ITEMS + LAST_ITEMS else items[:FIRST_ITEMS] + items[-LAST_ITEMS:]
        for item in chosen:
            self.at(item, depth + 1)

    def unordered(self, items: List[Any]) -> None:
        """All of them where they are few plain values; else only how many there are."""
        if len(items) > FIRST_ITEMS + LAST_ITEMS or any(type(item) not in ATOMS for item in items):
            return
        self.say(*sorted(_plain(item) for item in items))

    def at(self, value: Any, depth: int) -> None:
        """One object. Raises _Unknown."""
        cls = type(value)
        if cls in ATOMS:
            self.say(_plain(value))
            return
        if cls is Tombstone or cls.__name__ in _UNSTEADY:
            raise _Unknown
        if id(value) in self._seen:
            self.say("again", self._seen[id(value)])
            return
        self._seen[id(value)] = len(self._seen)
        self._keep.append(value)
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            return
        self._inside(cls, value, depth)

    def _inside(self, cls: type, value: Any, depth: int) -> None:
        if cls in (list, tuple):
            self.say(cls.__name__, len(value))
            self.items(list(value), depth)
        elif cls is dict:
            self.say("dict", len(value))
            self.items([part for pair in list(value.items()) for part in pair], depth)
        elif cls in (set, frozenset):
            self.say(cls.__name__, len(value))
            self.unordered(list(value))
        elif isinstance(value, type):
            self.say("class", cls_name(value))
        elif cls in _FUNCTIONS:
            self.say("function", getattr(value, "__qualname__", ""))
        elif cls is types.ModuleType:
            self.say("module", value.__name__)
        elif _is_live(cls, value):
            self.say("live")
        elif cls is Described or revivers.find(cls) is not None or revivers.hopeless(cls) is not None:
            self.say("made again")
        elif cls is getattr(sys.modules.get("numpy"), "ndarray", None):
            self.say(fingerprint.of(value))
        else:
            self.say("object", cls.__qualname__)


def cls_name(cls: type) -> str:
    """A class's own name: its module may have moved in another version."""
    return str(type.__dict__["__qualname__"].__get__(cls))


def _is_live(cls: type, value: Any) -> bool:
    """A part of the kernel itself: whatever the process has in its place."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return cls.__module__.startswith(("IPython", "ipykernel")) or any(value is stream for stream in streams)


def _plain(value: Any) -> str:
    """A value that Python itself made, as text."""
    cls = type(value)
    if cls is str:
        return "str %d %s" % (len(value), value[:_TEXT])
    if cls in (bytes, bytearray):
        return "%s %d %s" % (cls.__name__, len(value), hashlib.sha256(value).hexdigest())
    if cls is int:
        return "int %x" % value
    return "%s %r" % (cls.__name__, value)
