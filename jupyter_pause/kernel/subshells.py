# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Subshells (ipykernel 7) of a process that ended, made again under their old ids in the one that takes its place.

An open notebook sends what a person does to a widget through a subshell whose id it was told once, and a console may
sit on one. ipykernel drops messages for an id that it does not know: a widget that came back would never hear anything.
"""

from __future__ import annotations

import functools
import importlib
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds in which they must be there; they are threads, and made in milliseconds.
_LIMIT = 10.0


def running(kernel: Any) -> list[str]:
    """Ids of the subshells of this kernel; none where it cannot have any."""
    manager = _manager(kernel)
    return list(manager.list_subshell()) if manager is not None else []


def start_again(kernel: Any, ids: list[str], failed: Callable[[Exception], None]) -> None:
    """Have these subshells made when the kernel starts, before it takes its first message (main thread).

    `failed` is called where that goes wrong, on a thread of ipykernel's.
    """
    manager = _manager(kernel)
    if manager is None or not ids:
        return
    ready = manager.set_on_recv_callback

    @functools.wraps(ready)
    def ready_and_made(*args: Any) -> None:
        """The last step of ipykernel's own before it listens: from here on subshells can be made."""
        ready(*args)
        made = threading.Event()
        kernel.shell_channel_thread.io_loop.add_callback(_make_all, manager, ids, made, failed)
        made.wait(_LIMIT)

    manager.set_on_recv_callback = ready_and_made


def _manager(kernel: Any) -> Any:
    thread = getattr(kernel, "shell_channel_thread", None)
    return thread.manager if thread is not None and getattr(kernel, "_supports_kernel_subshells", False) else None


def _make_all(manager: Any, ids: list[str], made: threading.Event, failed: Callable[[Exception], None]) -> None:
    """On the thread that may make them."""
    try:
        known = set(manager.list_subshell())
        for identifier in ids:
            if identifier not in known:
                _make(manager, identifier)
    except Exception as error:
        failed(error)
    finally:
        made.set()


def _make(manager: Any, identifier: str) -> None:
    """ipykernel gives each subshell a new id by `uuid.uuid4()`; this one gets the id that clients know."""
    module: Any = importlib.import_module(type(manager).__module__)
    source, module.uuid = module.uuid, _OneId(identifier)
    try:
        manager._create_subshell()
    finally:
        module.uuid = source


class _OneId:
    """Stands in for the module `uuid`."""

    def __init__(self, identifier: str) -> None:
        self._identifier = identifier

    def uuid4(self) -> str:
        """The id."""
        return self._identifier
