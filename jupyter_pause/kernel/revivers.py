# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Things that cannot be saved but can be made again: locks, queues, open files, loggers, databases, pools, weak
references.

A `Reviver` is registered under the full names of the types that it serves. `describe` says what will become of an
object and has no effect on it; `reduce` gives the recipe. Recipes call the functions of `recipes`.
"""

from __future__ import annotations

import io
import logging
import os
import queue
import stat
import sys
import threading
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import recipes
from .regions import address_of


class CannotRevive(Exception):
    """This one cannot be made again; the text is the reason, as a clause."""


class Help(NamedTuple):
    """What a reviver may use while saving: a folder for temporary files, and a way onto the main thread."""

    folder: str
    on_main_thread: Callable[[Callable[[], Any]], Any]


class Reviver:
    """How objects of some types are made again."""

    #: Full names: module, dot, qualified name.
    types: Tuple[str, ...] = ()
    #: Whether types derived from these are served too.
    derived = False
    #: Whether the object counts as rebuilt (its inner state is not kept) rather than as kept.
    rebuilt = True

    def describe(self, value: Any) -> Optional[str]:
        """What will be different about it, or None. Raises CannotRevive. Has no effect on the object."""
        return None

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        """The recipe (as for ``__reduce__``). Raises CannotRevive."""
        raise NotImplementedError


REGISTRY: Dict[str, Reviver] = {}


def register(reviver: Reviver) -> None:
    """Add a reviver; the last one registered for a type serves it."""
    for name in reviver.types:
        REGISTRY[name] = reviver


def full_name(cls: type) -> str:
    """Module, dot, qualified name."""
    return "%s.%s" % (cls.__module__, cls.__qualname__)


def find(cls: type) -> Optional[Reviver]:
    """The reviver for a type, or for the nearest type that it derives from."""
    for number, base in enumerate(cls.__mro__):
        found = REGISTRY.get(full_name(base))
        if found is not None and (number == 0 or found.derived):
            return found
    return None


# --- what can never come back --------------------------------------------------------------------------------------

#: Full type name -> why. Derived types are lost too.
HOPELESS: Dict[str, str] = {
    "builtins.generator": "a generator's position lives in the interpreter and cannot be saved",
    "builtins.coroutine": "a coroutine's position lives in the interpreter and cannot be saved",
    "builtins.async_generator": "a generator's position lives in the interpreter and cannot be saved",
    "builtins.frame": "a running frame cannot be saved",
    "builtins.traceback": "a traceback holds running frames, which cannot be saved",
    "threading.Thread": "a running thread cannot be saved",
    "_thread._local": "values of a single thread cannot be saved",
    "socket.socket": "a network connection ends with the process",
    "_socket.socket": "a network connection ends with the process",
    "ssl.SSLContext": "a security context of the network library cannot be saved",
    "_ssl._SSLContext": "a security context of the network library cannot be saved",
    "subprocess.Popen": "a child process cannot be saved",
    "multiprocessing.process.BaseProcess": "a child process cannot be saved",
    "multiprocessing.pool.Pool": "a pool of processes or threads ends with the process",
    "multiprocessing.queues.Queue": "a queue between processes ends with the process",
    "multiprocessing.queues.SimpleQueue": "a queue between processes ends with the process",
    "multiprocessing.synchronize.SemLock": "a lock between processes ends with the process",
    "multiprocessing.managers.BaseManager": "a manager process ends with the process",
    "multiprocessing.shared_memory.SharedMemory": "shared memory ends with the process",
    "concurrent.futures.process.ProcessPoolExecutor": "a pool of processes ends with the process",
    "asyncio.events.AbstractEventLoop": "an event loop cannot be saved",
    "asyncio.futures.Future": "a pending result belongs to a running event loop",
    "_asyncio.Future": "a pending result belongs to a running event loop",
    "_asyncio.Task": "a task belongs to a running event loop",
    "tempfile._TemporaryFileWrapper": "a temporary file is deleted when it is closed",
    "sqlite3.Cursor": "a database cursor's position cannot be saved",
    "sqlite3.Row": "a database row belongs to its cursor",
    "mmap.mmap": "a memory mapping ends with the process",
    "select.epoll": "it belongs to the process",
    "weakref.finalize": "a finalizer belongs to the process",
    "contextvars.ContextVar": "a context variable belongs to the process",
    "contextvars.Context": "a context belongs to the process",
    "contextvars.Token": "a context token belongs to the process",
    "zmq.sugar.context.Context": "a network connection ends with the process",
    "zmq.sugar.socket.Socket": "a network connection ends with the process",
    "_io._IOBase": "this kind of open file cannot be opened again",
    "re.Match": "a match object refers to inner state of the expression",
}


def hopeless(cls: type) -> Optional[str]:
    """Why objects of a type can never come back, or None."""
    for base in cls.__mro__:
        reason = HOPELESS.get(full_name(base))
        if reason is not None:
            return reason
        if base is not object and not _OWN_RULES.isdisjoint(base.__dict__):
            return None
    return None


#: A derived type that defines one of these knows how to save itself.
_OWN_RULES = frozenset(("__reduce__", "__reduce_ex__", "__getstate__"))


# --- locks and what is built on them -------------------------------------------------------------------------------


class _Lock(Reviver):
    types = ("_thread.lock", "_thread.RLock", "threading._RLock")

    def describe(self, value: Any) -> Optional[str]:
        held = value.locked() if hasattr(value, "locked") else "locked" in repr(value) and "unlocked" not in repr(value)
        return "it was held; it comes back free" if held else None

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return recipes.make_lock, ("RLock" in type(value).__name__,)


class _Condition(Reviver):
    types = ("threading.Condition",)

    def describe(self, value: Any) -> Optional[str]:
        return "threads that waited for it are gone" if value._waiters else None

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return threading.Condition, (value._lock,)


class _Event(Reviver):
    types = ("threading.Event",)

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return recipes.make_event, (value.is_set(),)


class _Semaphore(Reviver):
    types = ("threading.Semaphore", "threading.BoundedSemaphore")

    def describe(self, value: Any) -> Optional[str]:
        full = getattr(value, "_initial_value", value._value)
        return "it was held; it comes back with what was left" if value._value < full else None

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        bounded = isinstance(value, threading.BoundedSemaphore)
        return recipes.make_semaphore, (value._value, value._initial_value if bounded else None)


class _Barrier(Reviver):
    types = ("threading.Barrier",)

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return threading.Barrier, (value._parties, value._action, value._timeout)


class _Queue(Reviver):
    types = ("queue.Queue", "queue.LifoQueue", "queue.PriorityQueue")

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        with value.mutex:
            state = (list(value.queue), value.unfinished_tasks)
        return type(value), (value.maxsize,), state, None, None, recipes.fill_queue


class _SimpleQueue(Reviver):
    types = ("_queue.SimpleQueue", "queue._PySimpleQueue")

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        items: List[Any] = []
        try:
            while True:
                items.append(value.get_nowait())
        except queue.Empty:
            pass
        for item in items:
            value.put(item)
        return queue.SimpleQueue, (), items, None, None, recipes.fill_simple_queue


class _ThreadPool(Reviver):
    types = ("concurrent.futures.thread.ThreadPoolExecutor",)

    def describe(self, value: Any) -> Optional[str]:
        return (
            "%d pieces of work that waited in it are gone" % value._work_queue.qsize()
            if value._work_queue.qsize()
            else None
        )

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        initializer = getattr(value, "_initializer", None)
        arguments = getattr(value, "_initargs", ()) or ()
        return recipes.make_thread_pool, (
            value._max_workers,
            value._thread_name_prefix,
            initializer,
            arguments,
            value._shutdown,
        )


class _Future(Reviver):
    types = ("concurrent.futures._base.Future",)

    def describe(self, value: Any) -> Optional[str]:
        if not value.done() or value.cancelled():
            raise CannotRevive("work in another thread or process cannot be saved while it runs")
        return None

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        self.describe(value)
        error = value.exception()
        return recipes.make_future, (), (None if error else value.result(), error), None, None, recipes.fill_future


# --- files ---------------------------------------------------------------------------------------------------------


class _File(Reviver):
    types = ("_io.TextIOWrapper", "_io.BufferedReader", "_io.BufferedWriter", "_io.BufferedRandom", "_io.FileIO")

    def describe(self, value: Any) -> Optional[str]:
        if value is sys.stdout or value is sys.stderr or value is sys.stdin or value.closed:
            return None
        path, status = self._facts(value)
        now = os.stat(path)
        if (now.st_dev, now.st_ino) != (status.st_dev, status.st_ino):
            raise CannotRevive("another file has taken the place of the one that is open")
        return "opened again at the same position"

    def _facts(self, value: Any) -> Tuple[str, os.stat_result]:
        raw = _raw_file(value)
        try:
            descriptor = raw.fileno()
            status = os.fstat(descriptor)
        except (OSError, ValueError):
            raise CannotRevive("it has no file behind it") from None
        if not stat.S_ISREG(status.st_mode):
            raise CannotRevive("it is open on a pipe, a device or a connection, not on a file")
        if status.st_nlink == 0:
            raise CannotRevive("the file behind it was deleted")
        path = _path_of(raw, descriptor)
        if not os.path.isabs(path) or not os.path.exists(path):
            raise CannotRevive("the file behind it has no name any more")
        return path, status

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        for name in ("stdin", "stdout", "stderr"):
            if value is getattr(sys, name):
                return recipes.live_stream, (name,)
        kind = type(value).__name__
        if value.closed:
            return recipes.make_closed_file, (kind,)
        self.describe(value)
        raw = _raw_file(value)
        position = _position(value)
        if raw.writable():
            value.flush()
        path, status = self._facts(value)
        text = None
        if kind == "TextIOWrapper":
            text = (value.encoding, value.errors, value.line_buffering)
        return recipes.open_file, (kind, path, _mode(raw), position, text, (status.st_size, status.st_mtime_ns))


def _raw_file(value: Any) -> Any:
    if isinstance(value, io.TextIOWrapper):
        value = value.buffer
    if type(value) in (io.BufferedReader, io.BufferedWriter, io.BufferedRandom):
        value = value.raw
    if type(value) is not io.FileIO:
        raise CannotRevive("it is not a plain file")
    return value


def _path_of(raw: Any, descriptor: int) -> str:
    """The absolute path. The system knows it even after a change of directory or a rename."""
    try:
        return os.readlink("/proc/self/fd/%d" % descriptor)
    except OSError:
        pass
    if isinstance(raw.name, int):
        raise CannotRevive("it was opened from a descriptor, so the file's name is not known")
    return os.path.abspath(os.fsdecode(raw.name))


def _mode(raw: Any) -> str:
    """How to open it again: never in a mode that empties the file."""
    if "a" in raw.mode:
        return "a+" if raw.readable() else "a"
    return "r+" if raw.writable() else "r"


def _position(value: Any) -> int:
    try:
        return int(value.tell())
    except (OSError, ValueError):
        pass
    if not isinstance(value, io.TextIOWrapper):
        raise CannotRevive("its position cannot be read")
    return _position_inside_iteration(value)


def _position_inside_iteration(value: Any) -> int:
    """`tell` is off while a text file is read by a for loop: find the position by what is left to read."""
    size = os.fstat(value.fileno()).st_size
    if size - value.buffer.tell() > 64 * 1024 * 1024:
        raise CannotRevive("its position inside a for loop cannot be read")
    rest = value.read()
    for ending in ("\n", "\r\n"):
        data = rest.replace("\n", ending).encode(value.encoding, value.errors)
        start = size - len(data)
        with open(value.fileno(), "rb", closefd=False, buffering=0) as again:
            again.seek(start)
            if start >= 0 and again.read(len(data) + 1) == data:
                value.seek(start)
                return int(start)
    raise CannotRevive("its position inside a for loop cannot be read")


# --- others --------------------------------------------------------------------------------------------------------


class _Logger(Reviver):
    types = ("logging.Logger", "logging.RootLogger")
    derived = True

    def describe(self, value: Any) -> Optional[str]:
        return "its handlers are not kept" if value.handlers and value is not logging.getLogger() else None

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        name = None if value is logging.getLogger() else value.name
        return recipes.make_logger, (name, value.level, bool(value.disabled), value.propagate)


class _Cached(Reviver):
    types = ("functools._lru_cache_wrapper",)

    def describe(self, value: Any) -> Optional[str]:
        return "its cache comes back empty"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        parameters = (
            value.cache_parameters()
            if hasattr(value, "cache_parameters")
            else {"maxsize": value.cache_info().maxsize, "typed": False}
        )
        state = {key: item for key, item in value.__dict__.items() if key != "__wrapped__" and not callable(item)}
        return recipes.make_cached, (value.__wrapped__, parameters["maxsize"], parameters["typed"]), state


class _CachedProperty(Reviver):
    types = ("functools.cached_property",)
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return recipes.make_cached_property, (value.func, value.attrname)


class _WeakReference(Reviver):
    types = ("builtins.weakref", "weakref.ReferenceType", "builtins.ReferenceType")
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        target = value()
        return (recipes.make_dead_reference, ()) if target is None else (recipes.make_reference, (target,))


class _WeakMethod(Reviver):
    types = ("weakref.WeakMethod",)
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        target = value()
        return (recipes.make_dead_reference, ()) if target is None else (weakref.WeakMethod, (target,))


class _Proxy(Reviver):
    types = (
        "builtins.weakproxy",
        "builtins.weakcallableproxy",
        "weakref.ProxyType",
        "weakref.CallableProxyType",
        "weakref.weakproxy",
    )
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        try:
            return recipes.make_proxy, (value.__reduce_ex__.__self__,)
        except ReferenceError:
            raise CannotRevive("what it pointed to was gone already") from None


class _WeakContainer(Reviver):
    types = ("weakref.WeakValueDictionary", "weakref.WeakKeyDictionary", "weakref.WeakSet", "_weakrefset.WeakSet")
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        items = list(value) if isinstance(value, weakref.WeakSet) else list(value.items())
        return type(value), (), items, None, None, recipes.fill_weak


class _SystemRandom(Reviver):
    types = ("random.SystemRandom",)

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return type(value), ()


class _MemoryView(Reviver):
    types = ("builtins.memoryview",)
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        try:
            base = value.obj
            whole = memoryview(base)
        except (TypeError, ValueError):
            raise CannotRevive("the memory that it looked at is gone") from None
        if value.nbytes == 0 or not whole.c_contiguous:
            return recipes.make_memoryview, (bytes(value), value.format, value.shape, value.readonly)
        # Writing through one is seen by the other, also through a view of a part: it stays a view of its base.
        offset = address_of(value) - address_of(whole)
        step = 1
        if not value.c_contiguous:
            if value.ndim != 1 or offset % value.itemsize or value.strides[0] % value.itemsize:
                raise CannotRevive("a view with gaps in several dimensions cannot be made again")
            step = value.strides[0] // value.itemsize
        return recipes.make_memoryview, (base, value.format, value.shape, value.readonly, offset, step)


class _Sqlite(Reviver):
    types = ("sqlite3.Connection",)
    derived = True

    def describe(self, value: Any) -> Optional[str]:
        try:
            value.total_changes  # noqa: B018  (raises where the connection is closed or another thread's)
        except Exception as error:
            raise CannotRevive("its database cannot be read (%s)" % error) from None
        return "connected again" if not value.in_transaction else "connected again; its open transaction is not kept"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        recipe: Tuple[Any, ...] = help.on_main_thread(lambda: self._reduce(value, help))
        return recipe

    def _reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        self.describe(value)
        settings = (value.isolation_level, value.row_factory, value.text_factory)
        rows = value.execute("PRAGMA database_list")
        rows.row_factory = None
        files = {row[1]: row[2] for row in rows.fetchall()}
        if any(name not in ("main", "temp") for name in files):
            raise CannotRevive("it has other databases attached")
        if files.get("main"):
            if value.in_transaction:
                raise CannotRevive("it has changes that were not committed; commit or roll them back, then pause again")
            return recipes.open_database, (os.path.abspath(files["main"]), *settings)
        return recipes.make_database, (_database_bytes(value, help.folder), *settings)


def _database_bytes(connection: Any, folder: str) -> bytes:
    if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
        return b""  # nothing was ever written to it
    if hasattr(connection, "serialize"):
        return bytes(connection.serialize())
    import sqlite3  # Python before 3.11 copies through a file

    path = os.path.join(folder, "database.tmp")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.close(descriptor)
    try:
        copy = sqlite3.connect(path)
        connection.backup(copy)
        copy.close()
        with open(path, "rb") as stream:
            return stream.read()
    finally:
        os.unlink(path)


def modules_inside(name: str, limit: int = 3000) -> List[str]:
    """Imported submodules of a package, parents first."""
    start = name + "."
    found = [other for other in list(sys.modules) if other.startswith(start) and sys.modules.get(other) is not None]
    return sorted(found, key=lambda other: (other.count("."), other))[:limit]


for _kind in list(globals().values()):
    if isinstance(_kind, type) and issubclass(_kind, Reviver) and _kind is not Reviver:
        register(_kind())
del _kind
