# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Waiting for a condition that others change, by several tasks at once, without losing a change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Signal:
    """Says that something changed; who waits looks again."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()
        self._changes = 0

    def set(self) -> None:
        """Something changed."""
        self._changes += 1
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def until(self, check: Callable[[], bool]) -> None:
        """Wait until `check` is true; it is asked now and after every change."""
        while not check():
            await self.next(self._changes)

    @property
    def changes(self) -> int:
        """How many there were."""
        return self._changes

    async def next(self, seen: int) -> None:
        """Wait until there were more changes than `seen`."""
        if self._changes == seen:
            future = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await future
            finally:
                self._waiting.discard(future)
