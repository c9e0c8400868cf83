# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The follower against an API server that answers by a script: what no real one does on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.cluster.client import ClusterClient
from jupyter_pause.cluster.config import ClusterConfig
from jupyter_pause.cluster.resources import EVENTS, WORKSPACES
from jupyter_pause.cluster.watch import LONGEST_PAUSE, READ_TIMEOUT_SILENT, Follower, Pauses

from .clocks import StillClock
from .faulty import FaultyServer, refusal, status


def workspace(version: int, paused: bool = False, name: str = "lab") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "team", "resourceVersion": str(version)},
        "spec": {"paused": paused},
    }


class Script:
    """Lists and watches of workspaces, each answered by the next line of a script; the last list is repeated."""

    def __init__(self, server: FaultyServer) -> None:
        self.server = server
        self.lists: list[tuple[int, list[dict[str, Any]]]] = []
        self.watches: list[Any] = []
        server.rules.append(self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") != "true":
            version, items = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
            return web.json_response({"metadata": {"resourceVersion": str(version)}, "items": items})
        step = self.watches.pop(0) if self.watches else []
        if isinstance(step, web.Response):
            return step
        close = bool(step) and step[-1] == "close"
        return await self.server.open_watch(request, *(one for one in step if one != "close"), close=close)


@asynccontextmanager
async def following(
    clock: Any, *, read_timeout: float | None = None, limit: float = 10.0, resource: Any = WORKSPACES
) -> AsyncIterator[tuple[FaultyServer, Script, Follower]]:
    server = await FaultyServer().start()
    script = Script(server)
    client = ClusterClient(ClusterConfig(host=server.url, namespace="team"), clock=clock, request_timeout=limit)
    follower = client.follow(resource, name="lab", read_timeout=read_timeout)
    try:
        yield server, script, follower
    finally:
        await client.close()
        await server.stop()


def changes(follower: Follower) -> asyncio.Queue[Any]:
    """What a listener sees, one entry per call."""
    seen: asyncio.Queue[Any] = asyncio.Queue()
    follower.listen(lambda: seen.put_nowait(({k: v["spec"] for k, v in follower.objects.items()}, follower.error)))
    return seen


async def test_S46_a_410_in_the_stream_then_at_once_then_a_silent_close() -> None:
    """Three events, a 410 object in the stream, a 410 again at once, a silent close: listed again, slower each time."""
    clock = StillClock()
    gone = {"type": "ERROR", "object": status(410, "Expired")}
    async with following(clock) as (server, script, follower):
        script.lists = [(10, [workspace(10)]), (20, [workspace(20, True)]), (30, [workspace(30)])]
        script.watches = [
            [*({"type": "MODIFIED", "object": workspace(v, v == 12)} for v in (11, 12, 13)), gone, "close"],
            refusal(410, "Expired"),
            ["close"],
        ]
        seen = changes(follower)
        await follower.start()
        states = [await seen.get() for _ in range(4)]
        assert [objects["lab"]["paused"] for objects, _ in states] == [False, False, True, False]

        await clock.until_asleep(1)  # 410 inside the stream
        assert follower.error is None and server.count() == 2
        clock.advance(1)
        assert await seen.get() == ({"lab": {"paused": True}}, None)  # the list, not the last event
        await clock.until_asleep(2)  # 410 at once
        clock.advance(2)
        assert await seen.get() == ({"lab": {"paused": False}}, None)
        await clock.until_asleep(3)  # a silent close at once: from the same version, no list
        clock.advance(4)
        await server.until(lambda: server.watches == 1)

        asked = [("watch", one.query["resourceVersion"]) if one.watch else ("list", None) for one in server.seen]
        assert asked == [
            ("list", None),
            ("watch", "10"),
            ("list", None),
            ("watch", "20"),
            ("list", None),
            ("watch", "30"),
            ("watch", "30"),
        ]
        assert all("resourceVersion" not in one.query for one in server.seen if not one.watch)
        first, second, third = clock.pauses
        assert 0.5 <= first <= 1 and 1 <= second <= 2 and 2 <= third <= 4


async def test_S46_a_watch_that_lived_is_opened_again_at_once_and_from_its_last_event() -> None:
    clock = StillClock()
    async with following(clock) as (server, script, follower):
        script.lists = [(10, [workspace(10)])]
        await follower.start()
        for round_ in (1, 2, 3):
            await server.until(lambda round_=round_: server.watches == 1 and server.count(watch=True) == round_)
            seen = changes(follower)
            await server.say({"type": "MODIFIED", "object": workspace(10 + round_, True)})
            await seen.get()
            await server.say({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(100 * round_)}}})
            clock.advance(60)
            await _until(lambda round_=round_: follower._version == str(100 * round_))
            server.cut_watches(abruptly=round_ == 2)
        await server.until(lambda: server.count(watch=True) == 4)
        watched = [one.query["resourceVersion"] for one in server.seen if one.watch]
        assert watched == ["10", "100", "200", "300"] and server.count(watch=False) == 1
        assert clock.pauses == [] and follower.error is None


async def test_bookmarks_confirm_and_change_nothing() -> None:
    clock = StillClock()
    async with following(clock) as (server, script, follower):
        script.lists = [(10, [workspace(10)])]
        await follower.start()
        await server.until(lambda: server.watches == 1)
        seen = changes(follower)
        clock.advance(60)
        await server.say({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "99"}}})
        await _until(lambda: follower.synced_at == clock.now())
        assert seen.empty() and follower.objects["lab"]["metadata"]["resourceVersion"] == "10"


async def test_a_deleted_object_is_seen_to_be_gone_by_event_and_by_list() -> None:
    clock = StillClock()
    async with following(clock) as (server, script, follower):
        script.lists = [(10, [workspace(10)]), (30, [workspace(30)]), (40, [])]
        script.watches = [[], refusal(410), []]
        seen = changes(follower)
        await follower.start()
        assert (await seen.get())[0] == {"lab": {"paused": False}}
        await server.until(lambda: server.watches == 1)
        await server.say({"type": "DELETED", "object": workspace(20)})
        assert await seen.get() == ({}, None)
        clock.advance(60)
        server.cut_watches()
        await clock.until_asleep(1)  # the version was too old
        clock.advance(1)
        assert (await seen.get())[0] == {"lab": {"paused": False}}  # made again meanwhile
        await server.until(lambda: server.watches == 1)
        await server.say({"type": "ERROR", "object": status(410)})
        await clock.until_asleep(2)
        clock.advance(2)
        assert await seen.get() == ({}, None)  # gone between two watches: the list shows it


async def test_a_silent_stream_is_opened_again() -> None:
    """Nothing for `read_timeout` (here 0.05 s of real time): a half-open connection would stay silent for ever."""
    async with following(SYSTEM_CLOCK, read_timeout=0.05) as (server, script, follower):
        script.lists = [(10, [workspace(10)])]
        await follower.start()
        await server.until(lambda: server.count(watch=True) == 2)
        assert server.count(watch=False) == 1 and follower.error is None


async def test_events_have_no_bookmarks_so_the_server_ends_the_stream() -> None:
    async with following(StillClock(), resource=EVENTS) as (server, script, follower):
        script.lists = [(10, [])]
        await follower.start()
        await server.until(lambda: server.watches == 1)
        assert int(server.seen[-1].query["timeoutSeconds"]) < READ_TIMEOUT_SILENT


async def test_what_is_not_json_and_what_fails_inside_the_stream_is_an_error_with_its_reason() -> None:
    clock = StillClock()
    async with following(clock) as (_server, script, follower):
        script.lists = [(10, [workspace(10)])]
        script.watches = [["not an event", "close"], [{"type": "ERROR", "object": status(500)}, "close"]]
        seen = changes(follower)
        await follower.start()
        await seen.get()
        for number, why in ((1, "garbled"), (2, "status")):
            _, error = await seen.get()
            assert error is not None and (error.code, error.params["why"]) == ("cluster_unreachable", why)
            assert follower.objects["lab"]["spec"] == {"paused": False}  # the last known state stays
            await clock.until_asleep(number)
            clock.advance(30)
            assert (await seen.get())[1] is None  # listed again


async def test_a_listener_that_fails_hurts_nobody(caplog: Any) -> None:
    async with following(StillClock()) as (server, script, follower):
        script.lists = [(10, [workspace(10)])]
        follower.listen(lambda: 1 / 0)  # type: ignore[arg-type,return-value]
        seen = changes(follower)
        await follower.start()
        assert (await seen.get())[0] == {"lab": {"paused": False}}
        await server.until(lambda: server.watches == 1)
        assert "listener of workspaces failed" in caplog.text


def test_pauses_grow_to_a_limit_with_some_chance_in_them() -> None:
    longest = Pauses(chance=lambda: 0.0)
    assert [longest.next() for _ in range(8)] == [1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    longest.reset()
    assert longest.next() == 1
    shortest = Pauses(chance=lambda: 1.0)
    assert [shortest.next() for _ in range(3)] == [0.5, 1, 2]


async def _until(condition: Any) -> None:
    """The event loop gets on with its work until the condition holds; the test's own limit ends a wait in vain."""
    while not condition():  # noqa: ASYNC110 (nothing of it tells when it changes)
        await asyncio.sleep(0.001)
