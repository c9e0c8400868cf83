# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Give this folder, and the server's cloudpickle, names of their own inside a kernel.

Pickles in a checkpoint refer to ``jupyter_pause_kernel`` only, never to what the kernel's environment happens to have
installed. This file must be loadable by its path alone: it imports nothing of ours.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType

PACKAGE = "jupyter_pause_kernel"
CLOUDPICKLE = PACKAGE + "._cloudpickle"


def _package_from(name: str, folder: str) -> ModuleType:
    module = sys.modules.get(name)
    if module is not None:
        return module
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None:
        raise ImportError("cannot load %s" % name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def register(cloudpickle_dir: str) -> ModuleType:
    """Register both names; returns the package. `cloudpickle_dir` is the folder of a cloudpickle package.

    Calling it again changes nothing. Raises ImportError or OSError where a folder is not there.
    """
    package = _package_from(PACKAGE, os.path.dirname(os.path.abspath(__file__)))
    package._cloudpickle = _package_from(CLOUDPICKLE, os.path.abspath(cloudpickle_dir))  # type: ignore[attr-defined]
    return package
