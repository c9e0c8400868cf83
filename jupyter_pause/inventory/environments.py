# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Environments of kernels that end with the container they were made in (cases.md S37).

A conda or virtual environment in the image's prefix lies in the container's own layer: a snapshot of the pod has it, a
cold start begins with the image again. The server's own environment is the image's and comes back with it. Of any other
it cannot be seen from inside whether the image has it too, so that is not claimed.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .files import file_item, mount_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jupyter_pause.states import InventoryItem

    from .files import Mount

KIND = "environment"
REASON = "environment_on_container_disk"


def prefix_of(argv: Sequence[str]) -> Path | None:
    """The environment of the interpreter that a kernel specification starts. None: no such program. Blocks."""
    program = shutil.which(argv[0]) if argv else None
    if program is None:
        return None
    folder = Path(os.path.abspath(program)).parent  # of the environment's own link, not of what it points to
    return folder.parent if folder.name in ("bin", "Scripts") else folder


def on_container_disk(prefix: Path, mounts: Iterable[Mount], own: Path | None = None) -> bool:
    """Whether the environment is gone once the container is started anew. `own`: the server's. Blocks."""
    own = Path(sys.prefix) if own is None else own
    real = Path(os.path.realpath(prefix))
    if real == Path(os.path.realpath(own)):
        return False
    mount = mount_of(real, mounts)
    return mount is not None and mount.storage == "temporary"


def environment_item(prefix: Path, mounts: list[Mount], own: Path | None = None) -> InventoryItem:
    """The kernel's environment as a line of the panel. Blocks."""
    item = file_item(prefix, KIND, mounts)
    item.details["uses"] = [KIND]
    if on_container_disk(prefix, mounts, own):
        item.reason = REASON
    elif item.reason == "temporary_storage":
        item.reason = None  # the image has it
    return item


def names_to_warn_of(argv_of: Mapping[str, Sequence[str]], mounts: list[Mount], own: Path | None = None) -> list[str]:
    """Names of kernel specifications whose environment a cold start does not have. Blocks."""
    prefixes = {name: prefix_of(argv) for name, argv in argv_of.items()}
    return sorted(name for name, prefix in prefixes.items() if prefix and on_container_disk(prefix, mounts, own))
