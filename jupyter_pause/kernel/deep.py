# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Runs work on a thread with a large stack, so that deeply nested objects can be pickled, while the main thread
serves it.

Objects that belong to the main thread (database connections) are asked for there.
"""

from __future__ import annotations

import contextvars
import queue
import sys
import threading
from typing import Any, Callable, List, Optional

#: Stack sizes to try, largest first (bytes). Memory is only used where the stack is used.
STACKS = (1 << 32, 1 << 30, 1 << 28, 1 << 26)
#: Stack bytes that one level of recursion is allowed to need.
PER_LEVEL = 4096


#: From Python 3.12 on, calls from Python to Python need no stack, and C code has a limit of its own.
PYTHON_LEVELS = 1_000_000


def _levels(stack: int) -> int:
    return PYTHON_LEVELS if sys.version_info >= (3, 12) else stack // PER_LEVEL


class Deep:
    """Calls a function on a thread with a large stack and a recursion limit that fits it."""

    def __init__(self) -> None:
        self._requests: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._alone = False

    def on_main_thread(self, function: Callable[[], Any]) -> Any:
        """Called by the work: run `function` on the thread that called `run`; returns or raises what it did."""
        if self._alone:
            return function()
        answer: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._requests.put((function, answer))
        error, value = answer.get()
        if error is not None:
            raise error
        return value

    def run(self, work: Callable[[], Any]) -> Any:
        """Returns or raises what `work` does."""
        outcome: List[Any] = []
        context = contextvars.copy_context()
        limit = sys.getrecursionlimit()
        thread, stack = self._start(lambda: context.run(self._do, work, outcome))
        if thread is None:  # no thread can be had: shallow objects can still be saved
            self._alone = True
            return work()
        try:
            sys.setrecursionlimit(max(limit, _levels(stack)))
            self._go.set()
            self._serve()
        finally:
            thread.join()
            sys.setrecursionlimit(limit)
        if outcome[0] is not None:
            raise outcome[0]
        return outcome[1]

    def _do(self, work: Callable[[], Any], outcome: List[Any]) -> None:
        self._go.wait()
        try:
            outcome[:] = [None, work()]
        except BaseException as error:
            outcome[:] = [error, None]
        finally:
            self._requests.put(None)

    def _start(self, target: Callable[[], Any]) -> Any:
        self._go = threading.Event()
        before = threading.stack_size()
        for stack in STACKS:
            try:
                threading.stack_size(stack)
                thread = threading.Thread(target=target, name="jupyter-pause-capture")
                thread.start()
                return thread, stack
            except (ValueError, RuntimeError, MemoryError):
                continue
            finally:
                threading.stack_size(before)
        return None, 0

    def _serve(self) -> None:
        """Answer requests until the work is done. An interrupt is kept until then: half a capture helps nobody."""
        interrupted: Optional[BaseException] = None
        while True:
            try:
                request = self._requests.get()
            except KeyboardInterrupt as error:
                interrupted = error
                continue
            if request is None:
                break
            function, answer = request
            try:
                answer.put((None, function()))
            except BaseException as error:
                answer.put((error, None))
        if interrupted is not None:
            raise interrupted
