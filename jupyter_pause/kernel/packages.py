# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The packages that a checkpoint refers to: their versions by import name, and whether an installer put them there."""

from __future__ import annotations

import functools
import os
import sys
from typing import Dict, Iterable, Optional


def versions(names: Iterable[str]) -> Dict[str, str]:
    """Import name -> version, for imported packages that are not of the standard library and say their version."""
    found = {}
    for name in sorted(set(names)):
        if name in ("__main__", "jupyter_pause_kernel", "jupyter_pause") or _is_standard(name):
            continue
        version = version_of(name)
        if version:
            found[name] = version
    return found


def version_of(name: str) -> Optional[str]:
    """The version of an imported package."""
    module = sys.modules.get(name)
    version = getattr(module, "__version__", None)
    if isinstance(version, str):
        return version
    try:
        from importlib import metadata

        return metadata.version(name)
    except Exception:
        return None


def _is_standard(name: str) -> bool:
    names = getattr(sys, "stdlib_module_names", None)
    if names is not None:
        return name in names
    if name in sys.builtin_module_names:
        return True
    place = getattr(sys.modules.get(name), "__file__", None) or ""
    return place.startswith(os.path.dirname(os.__file__)) and "site-packages" not in place


def is_installed_elsewhere(name: str, path: str) -> bool:
    """Whether an installer put it there, into a folder of the person's choice (`pip install --target`)."""
    top = os.path.realpath(getattr(sys.modules.get(name.partition(".")[0]), "__file__", None) or path)
    folder = os.path.dirname(top)
    if os.path.basename(top) == "__init__.py":
        folder = os.path.dirname(folder)
    return _has_installed(folder)


@functools.lru_cache(maxsize=256)
def _has_installed(folder: str) -> bool:
    try:
        return any(entry.endswith(".dist-info") for entry in os.listdir(folder))
    except OSError:
        return False
