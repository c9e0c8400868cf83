# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Things that cannot be saved but can be made again: locks, queues, open files, loggers, databases, pools, weak
references.

A `Reviver` is registered under the full names of the types that it serves. `describe` says what will become of an
object and has no effect on it; `reduce` gives the recipe. Others add theirs by the entry point group
``jupyter_pause.revivers``: docs/developers/revivers.md. The families are imported when the first object is taken
apart; a checkpoint names the functions that it needs, and loading it imports no other family.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import List, Optional

from . import base
from .base import REGISTRY, CannotRevive, Help, Reviver, full_name, register_all
from .hopeless import HOPELESS, hopeless

__all__ = [
    "HOPELESS",
    "REGISTRY",
    "CannotRevive",
    "Help",
    "Reviver",
    "find",
    "full_name",
    "hopeless",
    "load",
    "modules_inside",
    "register",
]

#: Modules beside this one whose revivers are ours.
_FAMILIES = (
    "threads",
    "pools",
    "open_files",
    "streams",
    "logs",
    "references",
    "databases",
    "libraries",
    "network",
    "pictures",
    "tensors",
)
_lock = threading.RLock()
_loaded = False


def _load_families() -> None:
    """Register ours, once per process and before those of others, which may serve the same types."""
    global _loaded
    with _lock:
        if _loaded:
            return
        for family in _FAMILIES:
            register_all(vars(importlib.import_module("." + family, __name__)))
        _loaded = True


def load() -> None:
    """Register ours and those that installed packages offer; once per process."""
    from . import plugins

    _load_families()
    plugins.load()


def register(reviver: Reviver) -> None:
    """Add a reviver; the last one registered for a type serves it."""
    _load_families()
    base.register(reviver)


def find(cls: type) -> Optional[Reviver]:
    """The reviver for a type, or for the nearest type that it derives from."""
    _load_families()
    return base.find(cls)


def modules_inside(name: str, limit: int = 3000) -> List[str]:
    """Imported submodules of a package, parents first."""
    start = name + "."
    found = [other for other in list(sys.modules) if other.startswith(start) and sys.modules.get(other) is not None]
    return sorted(found, key=lambda other: (other.count("."), other))[:limit]
