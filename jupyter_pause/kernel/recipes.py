# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What the recipes of `revivers` call when a checkpoint is loaded: each function makes one kind of thing again.

Pickles refer to these functions by name: they may be added to, but not renamed.
"""

from __future__ import annotations

import functools
import importlib
import io
import logging
import os
import struct
import sys
import threading
import weakref
from typing import Any, Dict, Iterable, Optional, Tuple

from .context import current, reaches_out
from .tombstone import loss_of


def make_lock(reentrant: bool) -> Any:
    """A free lock."""
    return threading.RLock() if reentrant else threading.Lock()


def make_event(is_set: bool) -> Any:
    """An event in the same state."""
    event = threading.Event()
    if is_set:
        event.set()
    return event


def make_semaphore(value: int, bound: Optional[int]) -> Any:
    """A semaphore with the same count left."""
    semaphore = threading.BoundedSemaphore(bound) if bound is not None else threading.Semaphore(value)
    semaphore._value = value
    return semaphore


def fill_queue(made: Any, state: Any) -> None:
    """Put the items in, also those over the limit."""
    items, unfinished = state
    made.queue.extend(items)
    made.unfinished_tasks = unfinished


def fill_simple_queue(made: Any, items: Iterable[Any]) -> None:
    """Put the items in."""
    for item in items:
        made.put(item)


def make_thread_pool(size: int, prefix: str, initializer: Any, arguments: Tuple[Any, ...], closed: bool) -> Any:
    """An idle pool of the same size."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(size, prefix, initializer, arguments)
    if closed:
        pool.shutdown()
    return pool


def make_future() -> Any:
    """A result that is about to be filled."""
    from concurrent.futures import Future

    return Future()


def fill_future(future: Any, state: Any) -> None:
    """Finish it as it was finished."""
    value, error = state
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


def live_stream(name: str) -> Any:
    """Standard input, output or error of this process."""
    return getattr(sys, name)


def make_closed_file(kind: str) -> Any:
    """A file object that is closed already."""
    mode = {"TextIOWrapper": "r", "BufferedRandom": "r+b", "BufferedWriter": "r+b"}.get(kind, "rb")
    made = open(os.devnull, mode)  # noqa: SIM115
    made.close()
    return made


def open_file(kind: str, path: str, mode: str, position: int, text: Any, saved: Tuple[int, int]) -> Any:
    """The file again, at its position. Its tombstone where it is gone or was changed meanwhile; never emptied."""
    context = current()
    try:
        status = os.stat(path)
    except OSError as error:
        return context.tombstone("open file", "its file could not be found again: %s" % (error.strerror or error))
    if (status.st_size, status.st_mtime_ns) != tuple(saved):
        if not mode.startswith("a") or status.st_size < saved[0]:
            return context.tombstone("open file", "its file was changed since the pause")
        context.note("the file was appended to since the pause")
    if context.describing:
        mode = "r"
    try:
        return _opened(kind, path, mode, position, text)
    except (OSError, LookupError) as error:
        return context.tombstone("open file", "its file could not be opened again: %s" % error)


def _opened(kind: str, path: str, mode: str, position: int, text: Any) -> Any:
    if kind == "TextIOWrapper":
        encoding, errors, line_buffering, newline = text
        buffering = 1 if line_buffering else -1
        made: Any = open(path, mode, buffering, encoding, errors, newline)  # noqa: SIM115
    elif kind == "FileIO":
        made = io.FileIO(path, mode)
    elif kind == "BufferedWriter" and mode == "r+":
        made = io.BufferedWriter(io.FileIO(path, mode))
    else:
        made = open(path, mode + "b")  # noqa: SIM115
    if made.seekable():
        made.seek(position)
    return made


def make_logger(name: Optional[str]) -> Any:
    """The logger of that name."""
    return logging.getLogger(name)


def set_logger(logger: Any, state: Any) -> None:
    """Its level, whether it passes on what it gets, its handlers and filters; those that are lost are left out."""
    level, disabled, propagate, handlers, filters = state
    logger.setLevel(level)
    logger.disabled = disabled
    logger.propagate = propagate
    if handlers is not None:
        logger.handlers[:] = [handler for handler in handlers if isinstance(handler, logging.Handler)]
        for handler in logger.handlers:
            logging._addHandlerRef(handler)  # type: ignore[attr-defined]  # closed at exit, as any other
    logger.filters[:] = [item for item in filters if loss_of(item) is None]


def make_cached(function: Any, maxsize: Optional[int], typed: bool) -> Any:
    """An empty cache around a function."""
    return functools.lru_cache(maxsize=maxsize, typed=typed)(function)


def make_cached_property(function: Any, name: Optional[str]) -> Any:
    """A cached property; some versions of Python keep a lock in it, some do not."""
    made = functools.cached_property(function)
    made.attrname = name
    return made


class _Nothing:
    """Something to point to that is gone at once."""


def make_dead_reference() -> Any:
    """A weak reference whose target is gone."""
    return weakref.ref(_Nothing())


def make_reference(target: Any) -> Any:
    """A weak reference."""
    return weakref.ref(target)


def make_proxy(target: Any) -> Any:
    """A weak proxy."""
    return weakref.proxy(target)


def fill_weak(made: Any, items: Iterable[Any]) -> None:
    """Put the items in that can be referred to."""
    for item in items:
        if isinstance(made, weakref.WeakSet):
            made.add(item)
        else:
            made[item[0]] = item[1]


def make_memoryview(base: Any, format: str, shape: Any, readonly: bool, offset: int = 0, step: int = 1) -> Any:
    """A view of an object's memory, from `offset` (bytes) on, taking every `step`-th item."""
    view: Any = memoryview(base)
    if view.format != format or view.shape != tuple(shape) or offset or step != 1:
        view = _part(view.cast("B"), format, tuple(shape), offset, step)
    return view.toreadonly() if readonly and not view.readonly else view


def _part(view: Any, format: str, shape: Any, offset: int, step: int) -> Any:
    """Part of a view of bytes."""
    size = struct.calcsize(format)
    if step == 1:
        length = size
        for extent in shape:
            length *= extent
        return view[offset : offset + length].cast(format, shape)
    first = offset // size
    last = first + step * (shape[0] - 1)
    usable = view[: view.nbytes - view.nbytes % size].cast(format)
    stop = last + (1 if step > 0 else -1)
    return usable[first : stop if stop >= 0 else None : step]


def import_module(name: str, inner: Iterable[str]) -> Any:
    """A module by import, with those of its submodules that had been imported; its tombstone where it is not there."""
    try:
        module = importlib.import_module(name)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return current().tombstone("module", "the module %s could not be imported here: %s" % (name, error))
    for submodule in inner:
        try:
            importlib.import_module(submodule)
        except Exception:
            continue  # a part that this version does not have, or that was made by hand
    return module


def make_module(name: str, doc: Optional[str]) -> Any:
    """A module that the notebook made itself; its names follow."""
    import types

    return types.ModuleType(name, doc)


def fill_module(module: Any, names: Dict[str, Any]) -> None:
    """Put the names in."""
    module.__dict__.update(names)


@reaches_out
def open_database(path: str, isolation: Any, row_factory: Any, text_factory: Any) -> Any:
    """A connection to the database file; its tombstone where the file is gone (none is created)."""
    import sqlite3

    if not os.path.isfile(path):
        return current().tombstone("sqlite3.Connection", "its database file is not there any more")
    return _configured(sqlite3.connect(path), isolation, row_factory, text_factory)


def make_database(data: bytes, isolation: Any, row_factory: Any, text_factory: Any) -> Any:
    """An in-memory database with the same content."""
    import sqlite3
    import tempfile

    connection = sqlite3.connect(":memory:")
    if data and hasattr(connection, "deserialize"):
        connection.deserialize(data)
    elif data:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "database")
            with open(path, "wb") as stream:
                stream.write(data)
            copy = sqlite3.connect(path)
            copy.backup(connection)
            copy.close()
    return _configured(connection, isolation, row_factory, text_factory)


def _configured(connection: Any, isolation: Any, row_factory: Any, text_factory: Any) -> Any:
    connection.isolation_level = isolation
    connection.row_factory = row_factory
    connection.text_factory = text_factory
    return connection
