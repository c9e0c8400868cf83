# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Modules of the person's own (files beside the notebook, a checkout on `sys.path`) that a checkpoint refers to.

They have no version. A resume imports them again from their files, so what the files held is noted.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from typing import Any, Dict, Iterable, List, Optional

from . import packages

#: Files larger than this are no source that anybody wrote.
LARGEST = 4 << 20
#: More modules than this are not noted: a checkout with thousands of files is compared by its first ones.
MOST = 500


def noted(packages: Iterable[str]) -> List[Dict[str, str]]:
    """``[{"name", "path", "sha256"}]`` of the imported modules of these top-level names whose file is a person's own.

    `path` is absolute; `sha256` is of the file as it is now, in hex.
    """
    wanted = set(packages) - {"__main__", "jupyter_pause_kernel", "jupyter_pause"}
    found: List[Dict[str, str]] = []
    for name in sorted(sys.modules.copy()):
        if name.split(".")[0] not in wanted or len(found) >= MOST:
            continue
        path = _own_file(sys.modules.get(name))
        digest = digest_of(path) if path else None
        if path and digest:
            found.append({"name": name, "path": path, "sha256": digest})
    return found


def digest_of(path: str) -> Optional[str]:
    """SHA-256 of a file in hex; None where it cannot be read or is no source."""
    try:
        if os.path.getsize(path) > LARGEST:
            return None
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read()).hexdigest()
    except OSError:
        return None


def _own_file(module: Any) -> Optional[str]:
    """The module's source file, where no installer put it."""
    path = getattr(module, "__dict__", {}).get("__file__")
    if not isinstance(path, str) or not path.endswith(".py"):
        return None
    path = os.path.abspath(path)
    parts = path.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts or packages.is_installed_elsewhere(module.__name__, path):
        return None
    library = sysconfig.get_paths()
    standard = [os.path.realpath(library[kind]) + os.sep for kind in ("stdlib", "platstdlib")]
    return None if os.path.realpath(path).startswith(tuple(standard)) else path
