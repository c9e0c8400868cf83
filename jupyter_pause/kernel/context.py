# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What is known while a checkpoint is being loaded: the live namespace, the losses, the code table.

Functions named in a pickle are called by the unpickler with the saved arguments only; they find the rest here.
"""

from __future__ import annotations

import functools
import sys
import threading
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional

from .tombstone import Tombstone


class LoadContext:
    """One load. `describing` is set for the shadow load: then nothing may be opened for writing or connected."""

    def __init__(self, namespace: Dict[str, Any], losses: List[Dict[str, Any]], code: Any = None) -> None:
        self.namespace = namespace
        self.saved_losses = losses
        self.code = code
        self.variable = ""
        self.losses: List[Dict[str, Any]] = []
        self.notes: List[Dict[str, Any]] = []
        self.describing = False

    def lost(self, type_name: str, reason: str, path: Optional[str] = None) -> Dict[str, Any]:
        """Record something that cannot be made again here; returns its description."""
        info = {"name": self.variable, "path": path or self.variable, "type": type_name, "reason": reason, "cell": None}
        self.losses.append(info)
        return info

    def tombstone(self, type_name: str, reason: str, path: Optional[str] = None) -> Tombstone:
        """Record it and give what stands in its place."""
        return Tombstone(self.lost(type_name, reason, path))

    def note(self, text: str) -> None:
        """Say something about the variable being loaded that is no loss (a file has grown since)."""
        self.notes.append({"name": self.variable, "reason": text})


_current: Optional[LoadContext] = None


def current() -> LoadContext:
    """The load under way; outside of one, an empty context on the notebook's own module."""
    if _current is not None:
        return _current
    main = sys.modules.get("__main__") or ModuleType("__main__")
    return LoadContext(main.__dict__, [])


def enter(context: Optional[LoadContext]) -> Optional[LoadContext]:
    """Make `context` the current one; returns the one before, to be put back."""
    global _current
    before, _current = _current, context
    return before


class Described:
    """Stands in the shadow load for what a recipe would open, connect or start; it takes whatever is put into it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


def reaches_out(recipe: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a recipe that opens, connects or starts something outside of this process's memory.

    While a checkpoint is only looked at (`LoadContext.describing`) it is not called. `recipe.reaches_out` is true.
    """

    @functools.wraps(recipe)
    def call(*arguments: Any) -> Any:
        return Described(recipe.__name__) if current().describing else recipe(*arguments)

    call.reaches_out = True  # type: ignore[attr-defined]
    return call


def make_tombstone(number: int, type_name: str, reason: str) -> Tombstone:
    """What a lost object is pickled as: the number of its entry in the manifest's losses."""
    losses = current().saved_losses
    if 0 <= number < len(losses):
        return Tombstone(losses[number])
    return Tombstone({"name": "", "path": "", "type": type_name, "reason": reason, "cell": None})


def kernel_loop() -> Any:
    """The asyncio loop that the kernel runs on; None outside of a kernel."""
    return getattr(kernel_io_loop(), "asyncio_loop", None)


def kernel_io_loop() -> Any:
    """The same loop as Tornado knows it; before the kernel runs, the one that it will run on (main thread)."""
    application = getattr(sys.modules.get("ipykernel.kernelapp"), "IPKernelApp", None)
    if application is None or not application.initialized():
        return None
    loop = getattr(getattr(application.instance(), "kernel", None), "io_loop", None)
    if loop is None and threading.current_thread() is threading.main_thread():
        loop = sys.modules["tornado.ioloop"].IOLoop.current()
    return loop


def live_namespace() -> Dict[str, Any]:
    """The notebook's own global names."""
    return current().namespace


def live_main() -> Any:
    """The module ``__main__``, whose names are the notebook's."""
    return sys.modules.get("__main__")


def live_shell(path: str = "") -> Any:
    """IPython's shell of this process, or one of its parts (``kernel``)."""
    value: Any = current().namespace.get("get_ipython")
    if value is None:
        return current().tombstone("IPython shell", "there is no IPython shell in this process")
    value = value()
    for name in path.split("."):
        value = getattr(value, name) if name else value
    return value
