# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Tells the process that will try the checkpoint out what to import, while this kernel still writes it."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

from . import files, layout

#: Modules named at most; the others are imported when the checkpoint is loaded.
MOST = 200


def write(staging: str, namespace: dict[str, Any], interpreter: dict[str, Any]) -> None:
    """Write ``start.json``: search path, environment, and the modules that the variables come from. Never raises."""
    try:
        values = list(namespace.values())
        names = [value.__name__ if isinstance(value, ModuleType) else type(value).__module__ for value in values]
        wanted = [name for name in dict.fromkeys(names) if _is_imported(name)]
        state = {"cwd": interpreter["cwd"], "env": interpreter["env"]}
        path = [str(entry) for entry in sys.path]
        content = {"interpreter": state, "sys_path": path, "modules": wanted[:MOST]}
        files.write_private(os.path.join(staging, layout.START), content, sync=False)
    except Exception:
        return


def _is_imported(name: str) -> bool:
    live = ("__main__", "IPython", "ipykernel", __name__.partition(".")[0])
    return name in sys.modules and name.partition(".")[0] not in live
