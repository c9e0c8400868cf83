# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class StillClock:
    """Both clocks move only by `advance`. `pauses`: every sleep that was asked for, in seconds."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self._now = datetime(2026, 12, 1, 18, 0, tzinfo=UTC)
        self._seconds = 1000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._asleep = asyncio.Condition()

    def now(self) -> datetime:
        """The wall clock."""
        return self._now

    def monotonic(self) -> float:
        """The monotonic clock."""
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        """Until the clock has been moved far enough."""
        self.pauses.append(seconds)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (self._seconds + seconds, future)
        self._sleepers.append(entry)
        async with self._asleep:
            self._asleep.notify_all()
        try:
            await future
        finally:
            if entry in self._sleepers:
                self._sleepers.remove(entry)

    def advance(self, seconds: float) -> None:
        """Move both clocks and wake who has slept long enough."""
        self._seconds += seconds
        self._now += timedelta(seconds=seconds)
        for end, future in list(self._sleepers):
            if end <= self._seconds and not future.done():
                future.set_result(None)

    async def until_asleep(self, sleeps: int) -> None:
        """Wait until so many sleeps were begun since the test began, and the last of them still goes on."""
        async with self._asleep:
            await self._asleep.wait_for(lambda: len(self.pauses) >= sleeps and bool(self._sleepers))
