# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Calls that may hang for good (a dead network mount, a driver, a file lock), with a limit.

`asyncio.to_thread` is not enough for them: its pool is joined when the process ends, so that one call that never
returns would keep the server from stopping. The threads here are daemons: they are left behind.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")


class _Call(Generic[Answer]):
    """One call in a daemon thread; `done` is set when `answer` or `error` is there."""

    def __init__(self, work: Callable[[], Answer]) -> None:
        self._work = work
        self.done = threading.Event()
        self.answer: Answer | None = None
        self.error: BaseException | None = None

    def start(self, name: str, finished: Callable[[], object] | None = None) -> None:
        def run() -> None:
            try:
                self.answer = self._work()
            except BaseException as error:
                self.error = error
            self.done.set()
            if finished is not None:
                try:
                    finished()
                except RuntimeError:  # the event loop was closed meanwhile: nobody waits any more
                    return

        threading.Thread(target=run, name=f"jupyter-pause-{name}", daemon=True).start()

    def result(self) -> Answer:
        if self.error is not None:
            raise self.error
        return self.answer  # type: ignore[return-value]


def call_bounded(work: Callable[[], Answer], limit: float, name: str = "call") -> Answer:
    """The answer of `work`, run in a thread; raises TimeoutError after `limit` seconds, else what `work` raises."""
    call = _Call(work)
    call.start(name)
    if not call.done.wait(limit):
        raise TimeoutError(f"{name}: no answer within {limit:g} s")
    return call.result()


async def bounded(work: Callable[[], Answer], limit: float, name: str = "call") -> Answer:
    """Like :func:`call_bounded`, without blocking the event loop."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    call = _Call(work)
    call.start(name, lambda: loop.call_soon_threadsafe(arrived.set))
    async with asyncio.timeout(limit):
        await arrived.wait()
    return call.result()
