# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The one source of time for server code that decides anything, so that tests can inject another."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What deciding code may ask about time."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds that never go backwards; only differences mean anything."""

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds` on the event loop."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds` on the event loop."""
        await asyncio.sleep(seconds)


#: The clock that is used where none is injected.
SYSTEM_CLOCK: Clock = SystemClock()
