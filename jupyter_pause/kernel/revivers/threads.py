# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Locks and what is built on them, queues, threads."""

from __future__ import annotations

import queue
import threading
from typing import Any, List, Optional, Tuple

from .. import recipes
from .base import CannotRevive, Help, Reviver


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


# --- threads -------------------------------------------------------------------------------------------------------


class _Thread(Reviver):
    types = ("threading.Thread",)
    derived = True

    def describe(self, value: Any) -> Optional[str]:
        if value is threading.main_thread():
            return None
        if value.is_alive():
            raise CannotRevive("a running thread cannot be saved")
        return "it had ended" if value.ident is not None else "it was not started"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        self.describe(value)
        if value is threading.main_thread():
            return threading.main_thread, ()
        work = [getattr(value, name, None) for name in _WORK]
        own = {name: item for name, item in vars(value).items() if name not in _of_every_thread() and name not in _WORK}
        arguments = (type(value), value.name, value.daemon, value.ident is not None)
        return make_thread, arguments, (work, own), None, None, fill_thread


_WORK = ("_target", "_args", "_kwargs")


def _of_every_thread() -> Any:
    return vars(threading.Thread(name="never started"))


def make_thread(cls: Any, name: str, daemon: bool, ended: bool) -> Any:
    """A thread that was not started, or one that has ended: it runs for a moment and does nothing."""
    made = cls.__new__(cls)
    threading.Thread.__init__(made, name=name, daemon=daemon)
    if ended:
        made.__dict__["run"] = lambda: None
        threading.Thread.start(made)
        threading.Thread.join(made)
        del made.__dict__["run"]
    return made


def fill_thread(made: Any, state: Any) -> None:
    """Its work, and what a type of one's own keeps in it."""
    work, own = state
    if made.ident is None:
        made.__dict__.update(zip(_WORK, work))
    made.__dict__.update(own)


class _Local(Reviver):
    types = ("_thread._local",)
    derived = True

    def describe(self, value: Any) -> Optional[str]:
        return "it has the values of the main thread only"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        inside = help.on_main_thread(lambda: dict(value.__dict__))
        return make_local, (type(value),), inside, None, None, fill_local


def make_local(cls: Any) -> Any:
    """Values of single threads, still empty."""
    return cls.__new__(cls)


def fill_local(made: Any, inside: Any) -> None:
    """Values of the thread that loads: the main one."""
    made.__dict__.update(inside)
