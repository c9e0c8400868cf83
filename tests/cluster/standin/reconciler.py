# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The loop that every controller of the stand-in is: a queue of names, one at a time, again after a conflict."""

from __future__ import annotations

import asyncio
import logging

import httpx

from tests.cluster.rest import ApiError

from .api import Key

log = logging.getLogger("standin")

CONFLICT = 0.02
FAILURE = 0.5


class Reconciler:
    """A level-triggered controller. Subclasses write `reconcile`."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._waiting: set[Key] = set()

    async def reconcile(self, key: Key) -> float | None:
        """Bring one object forward. Returns seconds until it is looked at again, None: when something changes."""
        raise NotImplementedError

    def enqueue(self, key: Key) -> None:
        """Look at this object soon."""
        if key not in self._waiting:
            self._waiting.add(key)
            self._queue.put_nowait(key)

    async def run(self) -> None:
        """Work until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            key = await self._queue.get()
            self._waiting.discard(key)
            delay = await self._once(key)
            if delay is not None:
                loop.call_later(delay, self.enqueue, key)

    async def _once(self, key: Key) -> float | None:
        try:
            return await self.reconcile(key)
        except ApiError as error:
            if error.status in (404, 409):
                return CONFLICT
            log.warning("%s %s: %s", type(self).__name__, key, error)
        except (httpx.HTTPError, OSError) as error:
            log.warning("%s %s: %r", type(self).__name__, key, error)
        except Exception:
            log.exception("%s %s", type(self).__name__, key)
        return FAILURE
