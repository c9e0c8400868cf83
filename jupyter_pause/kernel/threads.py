# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which threads of the process a person would miss, and what they are called.

Whose code a thread runs does not decide it: `server.serve_forever` is a library's, the server is a person's. So every
thread counts but for those that serve the kernel, and those that a library starts again by itself when it needs them.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Iterator

NOTEBOOK = "__main__"
_REASON = "A thread ends with the process; start it again after the resume."

#: Where classes and targets of threads come from that serve the kernel itself.
_OWN_CLASSES = ("ipykernel", "IPython", "zmq", "tornado", "jupyter_", "debugpy", "_pydev", "pydevd")
_OWN_TARGETS = ("ipykernel", "IPython.core.magics", "jupyter_pause", "debugpy", "_pydev", "pydevd")
_OWN_NAMES = ("IOPub", "Control", "Heartbeat", "Tornado selector")
_OWN_PREFIXES = ("jupyter_pause", "jupyter-pause", "pyzmq", "pydevd", "ptvsd")
#: `%%bash --bg` and its like: IPython's class, a person's work.
_JOBS = "IPython.lib.backgroundjobs"
#: tqdm's monitor and fsspec's event loop: the library starts them anew with the next use.
_HELPER_CLASSES = ("tqdm.",)
_HELPER_NAMES = ("fsspecIO",)
#: Threads that serve a pool or a queue; they are judged by the work that the pool has.
_HELPER_TARGETS = (
    "multiprocessing.pool",
    "multiprocessing.queues",
    "multiprocessing.resource_sharer",
    "joblib.externals.loky",
    "loky.",
)
_POOL_WORKER = "concurrent.futures.thread"


class Found:
    """A thread, what it is called, and whether a person would miss it."""

    def __init__(self, thread: Any, own: bool, holders: tuple[Any, ...] = (), work: Any = None, more: int = 0) -> None:
        #: None for a thread that was started without the `threading` module.
        self.thread = thread
        self.own = own
        #: Objects that stand for it where a variable holds one of them.
        self.holders = (thread, *holders)
        self.name = _name(thread, work)
        self.type = _type(thread)
        self.reason = _REASON
        if more:
            self.reason += " Work that waits in its pool is lost as well: {}.".format(more)


def find(baseline: set[Any], shell: Any) -> Iterator[Found]:
    """Threads that are alive and do not serve the kernel; `baseline` are those it started with."""
    loop = _loop_of_script_cells(shell)
    for thread in threading.enumerate():
        if thread in baseline or isinstance(thread, threading._DummyThread) or _serves_kernel(thread):
            continue
        if loop is None or getattr(_target(thread), "__self__", None) is not loop:
            yield _judge(thread)
    yield from _bare()


def _loop_of_script_cells(shell: Any) -> Any:
    """The event loop that IPython keeps in a thread for `%%bash` and its like once one has run, or None."""
    registry = getattr(getattr(shell, "magics_manager", None), "registry", None) or {}
    return getattr(registry.get("ScriptMagics"), "event_loop", None)


def _serves_kernel(thread: Any) -> bool:
    package, target = type(thread).__module__ or "", _module(_target(thread))
    if NOTEBOOK in (package, target) or package == _JOBS:
        return False
    return (
        package.startswith(_OWN_CLASSES)
        or target.startswith(_OWN_TARGETS)
        or thread.name in _OWN_NAMES
        or thread.name.startswith(_OWN_PREFIXES)
    )


def _judge(thread: Any) -> Found:
    package, target = type(thread).__module__ or "", _module(_target(thread))
    if target == _POOL_WORKER:
        return _judge_worker(thread)
    if package.endswith("process_executor") or package == "concurrent.futures.process":
        executor = getattr(thread, "executor_reference", None)
        held = executor() if callable(executor) else None
        return Found(thread, bool(getattr(thread, "pending_work_items", None)), (held,))
    if target == "multiprocessing.pool" and getattr(_target(thread), "__name__", "") == "_handle_results":
        jobs = next((entry for entry in reversed(_arguments(thread)) if isinstance(entry, dict)), None)
        return Found(thread, bool(jobs), (jobs,))
    helper = target.startswith(_HELPER_TARGETS) or package.startswith(_HELPER_CLASSES) or thread.name in _HELPER_NAMES
    return Found(thread, not helper)


def _judge_worker(thread: Any) -> Found:
    """A worker of a ThreadPoolExecutor: nobody misses an idle one, a pool starts its workers as they are needed."""
    work = _work_of(thread)
    if work is None:
        return Found(thread, False)
    more = 0
    for entry in _arguments(thread):
        if hasattr(entry, "qsize"):
            more = entry.qsize()
    future = getattr(work, "future", None)
    return Found(thread, True, (future,) if not more else (), _function_of(work), more)


def _work_of(thread: Any) -> Any:
    """The work item that a pool's worker runs at this moment, or None."""
    module: Any = sys.modules.get(_POOL_WORKER)
    code = getattr(getattr(getattr(module, "_WorkItem", None), "run", None), "__code__", None)
    frame: Any = sys._current_frames().get(thread.ident)
    while frame is not None:
        if frame.f_code is code:
            return frame.f_locals.get("self")
        frame = frame.f_back
    return None


def _function_of(work: Any) -> Any:
    task = getattr(work, "task", None)  # since Python 3.14
    return getattr(work, "fn", None) or (task[0] if isinstance(task, tuple) and task else None)


def _bare() -> Iterator[Found]:
    """Threads of the notebook's code that were started with `_thread`: no object stands for them."""
    known = {thread.ident for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread)}
    for ident, frame in sys._current_frames().items():
        if ident in known:
            continue
        outermost: Any = frame
        while outermost.f_back is not None:
            outermost = outermost.f_back
        if outermost.f_globals.get("__name__") == NOTEBOOK:
            found = Found(None, True)
            found.name = "thread ({})".format(outermost.f_code.co_name)
            yield found


# --- names --------------------------------------------------------------------------------------------------------


def _name(thread: Any, work: Any) -> str:
    """The thread's name with what it runs, where the name does not say that."""
    name = str(getattr(thread, "name", "thread"))
    runs = label(work if work is not None else getattr(thread, "function", None) or _target(thread))
    named_by_person = work is None and not name.startswith("Thread-")
    return name if not runs or named_by_person or runs in name else "{} ({})".format(name, runs)


def _type(thread: Any) -> str:
    kind = type(thread)
    if thread is None or kind.__module__ == NOTEBOOK:
        return "threading.Thread"
    return "{}.{}".format(kind.__module__, kind.__qualname__)


def label(function: Any) -> str:
    """The name of a function, also of one that functools.partial wraps; empty where it has none."""
    name = getattr(unwrapped(function), "__name__", None)
    return name if isinstance(name, str) else ""


def unwrapped(function: Any) -> Any:
    """What a functools.partial calls in the end."""
    partial = getattr(sys.modules.get("functools"), "partial", ())
    while isinstance(function, partial):
        function = function.func
    return function


def _module(function: Any) -> str:
    """The module a function was written in; empty where that is not known."""
    module = getattr(unwrapped(function), "__module__", None)
    return module if isinstance(module, str) else ""


def _target(thread: Any) -> Any:
    return getattr(thread, "_target", None)


def _arguments(thread: Any) -> tuple[Any, ...]:
    return tuple(getattr(thread, "_args", None) or ())
