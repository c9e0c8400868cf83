# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""List and watch: a small informer for a collection or one object. No polling.

The protocol is that of the Kubernetes API concepts, "efficient detection of changes": a list gives objects and a
resource version, a watch goes on from there, a 410 (as an answer, or as an ERROR event inside the stream) means that
the version is too old. Why not the official client's watch: it tries a 410 once and reconnects without any pause.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .errors import ClusterError, error_of_status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from jupyter_pause.clock import Clock

    from .access import Right
    from .client import ClusterClient
    from .transport import Stream

log = logging.getLogger(__name__)

Object = dict[str, Any]

#: Seconds between two tries: the first, the longest, and the longest for what only an administrator can change.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
LONGEST_PAUSE_REFUSED = 300.0
#: Seconds that a watch must have lived to count as a good one; whatever ends sooner is tried again more slowly.
GOOD_WATCH = 5.0
#: Seconds without a word after which a stream counts as dead. The API server sends a bookmark every minute.
READ_TIMEOUT = 150.0
#: The same where there are no bookmarks; the API server is asked to end the stream a little earlier by itself.
READ_TIMEOUT_SILENT = 600.0

_REFUSED = ("cluster_forbidden", "cluster_not_found", "cluster_invalid", "cluster_config_invalid")


class Pauses:
    """Growing pauses between tries: doubled each time, with up to half of it taken off by chance."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._tries = 0

    def reset(self) -> None:
        """The next pause is the first again."""
        self._tries = 0

    def next(self, longest: float = LONGEST_PAUSE) -> float:
        """Seconds to wait now."""
        pause: float = min(FIRST_PAUSE * 2.0 ** min(self._tries, 20), longest)
        self._tries += 1
        return pause * (1 - self._chance() / 2)


class Follower:
    """Objects as the API server has them, kept current by one open request.

    Attributes:
        objects: by name; by `namespace/name` when all namespaces are followed. Never older than the last list.
        synced_at: when the API server last confirmed them: a list, a watch that was opened, an event, a bookmark.
        error: why they may be out of date now; None while the watch is open.
        watching: whether the watch is open now.
    """

    def __init__(
        self,
        client: ClusterClient,
        asked: Right,
        *,
        query: Mapping[str, str],
        clock: Clock,
        read_timeout: float | None = None,
    ) -> None:
        """Made by `ClusterClient.follow`. `asked`: the watch, in RBAC's words."""
        self.objects: dict[str, Object] = {}
        self.synced_at: datetime | None = None
        self.error: ClusterError | None = None
        self.watching = False
        self._client = client
        self._asked = asked
        self._query = dict(query)
        self._clock = clock
        silent = READ_TIMEOUT if asked.resource.bookmarks else READ_TIMEOUT_SILENT
        self._read_timeout = read_timeout if read_timeout is not None else silent
        self._version: str | None = None
        self._listeners: list[Callable[[], None]] = []
        self._pauses = Pauses()
        self._task: asyncio.Task[None] | None = None
        self._first = asyncio.Event()

    def listen(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called after every change of `objects` or `error`. Returns what undoes it."""
        self._listeners.append(callback)

        def leave() -> None:
            with suppress(ValueError):
                self._listeners.remove(callback)

        return leave

    async def start(self) -> None:
        """Begin, and wait for the first list or the first error, at most for the time that one call may take."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        if self._client.is_connected:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._client.request_timeout):
                    await self._first.wait()

    async def stop(self) -> None:
        """End; the last known objects stay."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    # --- the loop -----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            await self._client.wait_connected()
            pause = await self._once()
            if pause is not None:
                await self._clock.sleep(pause)

    async def _once(self) -> float | None:
        """List if needed, then watch until that ends. Returns seconds to wait, None for going on at once."""
        lived = _Lived(self._clock)
        try:
            if self._version is None:
                await self._list()
            await self._watch(lived)
        except ClusterError as error:
            if error.code == "cluster_disconnected":
                return None  # on purpose: nothing is wrong, and `_run` waits
            self._version = None
            if error.code != "cluster_expired":
                self._fail(error)
                longest = LONGEST_PAUSE_REFUSED if error.code in _REFUSED else LONGEST_PAUSE
                return self._pauses.next(longest)
        except Exception as error:  # a fault of ours must not end the following quietly
            log.exception("jupyter-pause: following %s failed", self._asked.resource.plural)
            self._version = None
            self._fail(ClusterError("cluster_unreachable", why=type(error).__name__, **self._asked.params))
            return self._pauses.next()
        if lived.seconds >= GOOD_WATCH:
            self._pauses.reset()
            return None
        return self._pauses.next()

    async def _list(self) -> None:
        result = await self._client.read_all(replace(self._asked, verb="list"), self._query)
        self._version = result.resource_version
        objects = {self._key(one): one for one in result.items}
        changed = objects != self.objects
        self.objects = objects
        self._confirm(changed)

    async def _watch(self, lived: _Lived) -> None:
        query = {
            **self._query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version or "",
        }
        if not self._asked.resource.bookmarks:
            query["timeoutSeconds"] = str(int(self._read_timeout * 0.9) or 1)
        async with self._client.stream(self._asked, query) as stream:
            lived.begin()
            self._confirm(changed=False)
            self.watching = True
            try:
                while (line := await self._line(stream)) is not None:
                    self._take(line)
            finally:
                self.watching = False

    async def _line(self, stream: Stream) -> bytes | None:
        """The next line; None when the stream was closed, or nothing was heard for too long."""
        try:
            async with asyncio.timeout(self._read_timeout):
                return await stream.line()
        except TimeoutError:
            return None

    def _take(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            kind, thing = event["type"], event["object"]
        except (ValueError, TypeError, KeyError):
            raise ClusterError("cluster_unreachable", why="garbled", **self._asked.params) from None
        if kind == "ERROR":
            raise error_of_status(int(thing.get("code") or 500), thing, self._asked)
        self._version = thing["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            self._confirm(changed=False)
            return
        if kind == "DELETED":
            self.objects.pop(self._key(thing), None)
        else:
            self.objects[self._key(thing)] = thing
        self._confirm(changed=True)

    def _key(self, thing: Object) -> str:
        metadata = thing["metadata"]
        if self._asked.resource.namespaced and self._asked.namespace is None:
            return f"{metadata.get('namespace')}/{metadata['name']}"
        return str(metadata["name"])

    def _confirm(self, changed: bool) -> None:
        self.synced_at = self._clock.now()
        changed = changed or self.error is not None
        self.error = None
        self._first.set()
        if changed:
            self._notify()

    def _fail(self, error: ClusterError) -> None:
        before, self.error = self.error, error
        self._first.set()
        if before is None or (before.code, before.params.get("why")) != (error.code, error.params.get("why")):
            log.warning("jupyter-pause: %s", error)
            self._notify()

    def _notify(self) -> None:
        for callback in list(self._listeners):
            try:
                callback()
            except Exception:
                log.exception("jupyter-pause: a listener of %s failed", self._asked.resource.plural)


class _Lived:
    """How long a watch was open."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: float | None = None

    def begin(self) -> None:
        """It is open now."""
        self._began = self._clock.monotonic()

    @property
    def seconds(self) -> float:
        """0 for one that never was open."""
        return 0.0 if self._began is None else self._clock.monotonic() - self._began
