# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Revivers of others: installed packages offer them by the entry point group ``jupyter_pause.revivers``."""

from __future__ import annotations

import importlib.metadata
from typing import Any, Iterable, List

from .base import Reviver, register

GROUP = "jupyter_pause.revivers"

#: What could not be loaded, as sentences; the agent shows them.
problems: List[str] = []
_loaded = False


def load() -> None:
    """Register what the kernel's environment offers; once per process. Never raises an Exception."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    for point in _entry_points():
        try:
            for reviver in _revivers(point.load()):
                register(reviver)
        except Exception as error:
            reason = "the reviver %s could not be loaded: %s: %s" % (point.name, type(error).__name__, error)
            problems.append(reason)


def _entry_points() -> Iterable[Any]:
    try:
        found: Any = importlib.metadata.entry_points()
        return list(found.select(group=GROUP) if hasattr(found, "select") else found.get(GROUP, ()))
    except Exception as error:  # a broken installation of something else
        problems.append("installed revivers could not be listed: %s: %s" % (type(error).__name__, error))
        return ()


def _revivers(offered: Any) -> List[Reviver]:
    """A reviver class, an instance, or a list of these. Raises TypeError for anything else."""
    items = list(offered) if isinstance(offered, (list, tuple)) else [offered]
    made = [item() if isinstance(item, type) and issubclass(item, Reviver) else item for item in items]
    for item in made:
        if not isinstance(item, Reviver) or not item.types:
            raise TypeError("it offers %r, which is no Reviver with types" % (item,))
    return made
