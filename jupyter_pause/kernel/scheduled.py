# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Calls that a person scheduled on the kernel's event loop (`call_later` and its like) and that still wait."""

from __future__ import annotations

from typing import Any

from . import threads

#: What these schedule serves the kernel, or a task or a connection that is listed itself.
_MACHINERY = (
    "asyncio",
    "_asyncio",
    "tornado",
    "zmq",
    "ipykernel",
    "IPython",
    "jupyter_",
    "debugpy",
    "nest_asyncio",
    "anyio",
    "aiohttp",
)


def find(loop: Any, values: set[int]) -> list[tuple[Any, str]]:
    """(handle, name) of each; `values` are the ids of the variables' values. Another kind of loop has none to list."""
    try:
        later, soon = list(getattr(loop, "_scheduled", ())), list(getattr(loop, "_ready", ()))
    except RuntimeError:  # changed under us
        return []
    found = []
    for handle in later + soon:
        callback = threads.unwrapped(getattr(handle, "_callback", None))
        if callback is None or handle.cancelled():
            continue
        if _is_notebooks(callback, values) or (handle in later and not _is_machinery(callback)):
            found.append((handle, "scheduled call ({})".format(threads.label(callback) or type(callback).__name__)))
    return found


def _is_notebooks(callback: Any, values: set[int]) -> bool:
    """It was written in the notebook, or is a method of what a variable holds."""
    owner = getattr(callback, "__self__", None)
    modules = (getattr(callback, "__module__", None), type(owner).__module__, type(callback).__module__)
    return threads.NOTEBOOK in modules or id(callback) in values or (owner is not None and id(owner) in values)


def _is_machinery(callback: Any) -> bool:
    owner = getattr(callback, "__self__", None)
    modules = (getattr(callback, "__module__", None), type(owner).__module__, type(callback).__module__)
    return any(isinstance(module, str) and module.startswith(_MACHINERY) for module in modules)
