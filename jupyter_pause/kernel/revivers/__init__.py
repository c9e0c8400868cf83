# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Things that cannot be saved but can be made again: locks, queues, open files, loggers, databases, pools, weak
references.

A `Reviver` is registered under the full names of the types that it serves. `describe` says what will become of an
object and has no effect on it; `reduce` gives the recipe. Others add theirs by the entry point group
``jupyter_pause.revivers``: docs/developers/revivers.md.
"""

from __future__ import annotations

import sys
from typing import List

from . import (
    databases,
    libraries,
    logs,
    network,
    open_files,
    pictures,
    plugins,
    pools,
    references,
    streams,
    tensors,
    threads,
)
from .base import REGISTRY, CannotRevive, Help, Reviver, find, full_name, register, register_all
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
    "modules_inside",
    "plugins",
    "register",
]


def modules_inside(name: str, limit: int = 3000) -> List[str]:
    """Imported submodules of a package, parents first."""
    start = name + "."
    found = [other for other in list(sys.modules) if other.startswith(start) and sys.modules.get(other) is not None]
    return sorted(found, key=lambda other: (other.count("."), other))[:limit]


for _family in (
    threads,
    pools,
    open_files,
    streams,
    logs,
    references,
    databases,
    libraries,
    network,
    pictures,
    tensors,
):
    register_all(vars(_family))
del _family
