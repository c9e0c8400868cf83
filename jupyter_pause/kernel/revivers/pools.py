# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Pools of threads and processes, which come back idle and of the same size; results; the kernel's event loop."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from .. import recipes
from ..context import kernel_io_loop, kernel_loop, reaches_out
from .base import CannotRevive, Help, Reviver


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


class _ProcessExecutor(Reviver):
    types = ("concurrent.futures.process.ProcessPoolExecutor",)

    def describe(self, value: Any) -> Optional[str]:
        waiting = len(value._pending_work_items or ())
        return "%d pieces of work in it are gone" % waiting if waiting else "its workers are started anew"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        method = value._mp_context.get_start_method()
        arguments = (value._max_workers, method, getattr(value, "_max_tasks_per_child", None))
        state = (value._initializer, value._initargs, value._shutdown_thread)
        return make_process_executor, arguments, state, None, None, fill_process_executor


def make_process_executor(size: int, method: str, tasks: Optional[int]) -> Any:
    """An idle pool of the same size; it starts its workers when it gets work."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    more: Any = {} if tasks is None else {"max_tasks_per_child": tasks}
    return ProcessPoolExecutor(size, multiprocessing.get_context(method), **more)


def fill_process_executor(made: Any, state: Any) -> None:
    """What its workers do first, and whether it takes work."""
    made._initializer, made._initargs, closed = state
    if closed:
        made.shutdown()


class _Pool(Reviver):
    types = ("multiprocessing.pool.Pool", "multiprocessing.pool.ThreadPool")

    def describe(self, value: Any) -> Optional[str]:
        if _state_of(value) != "RUN":
            raise CannotRevive("the pool was closed")
        waiting = len(value._cache)
        return "%d pieces of work in it are gone" % waiting if waiting else "its workers are started anew"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        self.describe(value)
        threads = type(value).__name__ == "ThreadPool"
        method = None if threads else value._ctx.get_start_method()
        return make_pool, (method, value._processes, value._initializer, value._initargs, value._maxtasksperchild)


def _state_of(pool: Any) -> str:
    state = pool._state
    return state if isinstance(state, str) else ("RUN" if state == 0 else "CLOSE")


@reaches_out
def make_pool(method: Optional[str], size: int, initializer: Any, arguments: Any, tasks: Optional[int]) -> Any:
    """A pool with new workers."""
    import multiprocessing
    import multiprocessing.pool

    if method is None:
        return multiprocessing.pool.ThreadPool(size, initializer, arguments)
    return multiprocessing.get_context(method).Pool(size, initializer, arguments, tasks)


class _Loop(Reviver):
    types = ("asyncio.events.AbstractEventLoop",)
    derived = True

    def describe(self, value: Any) -> Optional[str]:
        if value is not kernel_loop():
            raise CannotRevive("an event loop cannot be saved")
        return "it is the new kernel's loop; what waited on the old one is gone"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        self.describe(value)
        return kernel_loop, ()


class _IOLoop(Reviver):
    types = ("tornado.ioloop.IOLoop",)
    derived = True

    def describe(self, value: Any) -> Optional[str]:
        if value is not kernel_io_loop():
            raise CannotRevive("an event loop cannot be saved")
        return "it is the new kernel's loop; what waited on the old one is gone"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        self.describe(value)
        return kernel_io_loop, ()
