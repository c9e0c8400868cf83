# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The follower against a real API server, straight or through a proxy that fails."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.cluster.access import Right
from jupyter_pause.cluster.client import EVERYWHERE, ClusterClient
from jupyter_pause.cluster.config import ClusterConfig
from jupyter_pause.cluster.errors import ClusterError
from jupyter_pause.cluster.resources import WORKSPACES, Resource
from jupyter_pause.cluster.watch import LONGEST_PAUSE_REFUSED, Follower

from .apiserver import ApiServer
from .clocks import StillClock
from .faulty import FaultyServer, refusal
from .grants import grant

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SPEC = {
    "kind": "jupyterlab",
    "podTemplate": {"volumes": {"data": []}, "options": {"imageConfig": "i", "podConfig": "p"}},
}


def config(url: str, namespace: str, folder: Path, token: str, ca: str | None = None) -> ClusterConfig:
    file = folder / "token"
    file.write_text(token)
    return ClusterConfig(host=url, ca_file=Path(ca) if ca else None, namespace=namespace, token_file=file)


@asynccontextmanager
async def straight(
    server: ApiServer, namespace: str, folder: Path, *, token: str | None = None, clock: Any = SYSTEM_CLOCK
) -> AsyncIterator[ClusterClient]:
    client = ClusterClient(config(server.url, namespace, folder, token or server.admin_token, server.ca), clock=clock)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def through(
    server: ApiServer, namespace: str, folder: Path, *, clock: Any = SYSTEM_CLOCK, **options: Any
) -> AsyncIterator[tuple[FaultyServer, ClusterClient]]:
    proxy = await FaultyServer(server.url, server.ca).start()
    client = ClusterClient(config(proxy.url, namespace, folder, server.admin_token), clock=clock, **options)
    try:
        yield proxy, client
    finally:
        await client.close()
        await proxy.stop()


class Watched:
    """What a follower's listener sees."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self._changed = asyncio.Condition()
        self._calls = 0
        self._tasks: set[asyncio.Task[None]] = set()
        follower.listen(self._heard)

    def _heard(self) -> None:
        self._calls += 1
        task = asyncio.get_running_loop().create_task(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a call after which the condition holds."""
        async with self._changed:
            await self._changed.wait_for(condition)


def workspace(name: str) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "kubeflow.org/v1beta1", "kind": "Workspace", "metadata": metadata, "spec": SPEC}


def set_paused(server: ApiServer, namespace: str, name: str, paused: bool) -> None:
    server.patch("kubeflow.org/v1beta1/Workspace", name, {"spec": {"paused": paused}}, namespace)


def paused(follower: Follower, name: str = "lab") -> bool | None:
    found = follower.objects.get(name)
    return None if found is None else bool(found["spec"]["paused"])


async def open_watch(follower: Follower) -> None:
    """Until the follower knows that its watch is open; the test's own limit ends a wait in vain."""
    while not follower.watching:  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def test_one_object_made_changed_deleted_and_made_again(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    async with straight(api_server, namespace, tmp_path) as client:
        follower = client.follow(WORKSPACES, name="lab")
        seen = Watched(follower)
        await follower.start()
        assert follower.objects == {} and follower.synced_at is not None and follower.error is None
        api_server.apply([workspace("lab"), workspace("other")], namespace)
        await seen.until(lambda: paused(follower) is False)
        set_paused(api_server, namespace, "lab", True)
        await seen.until(lambda: paused(follower) is True)
        api_server.delete("kubeflow.org/v1beta1/Workspace", "lab", namespace)
        await seen.until(lambda: follower.objects == {})
        api_server.apply(workspace("lab"), namespace)
        await seen.until(lambda: list(follower.objects) == ["lab"])


async def test_S47_a_role_for_one_name_is_enough_to_follow_it(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    api_server.apply([workspace("lab"), workspace("other")], namespace)
    token = api_server.service_account(namespace, "notebook")
    grant(api_server, namespace, "notebook", [Right(verb, WORKSPACES, name="lab") for verb in ("list", "watch")])
    async with straight(api_server, namespace, tmp_path, token=token) as client:
        follower = client.follow(WORKSPACES, name="lab")
        seen = Watched(follower)
        await follower.start()
        assert list(follower.objects) == ["lab"] and follower.error is None
        set_paused(api_server, namespace, "lab", True)
        await seen.until(lambda: paused(follower) is True)

        everything = client.follow(WORKSPACES)
        await everything.start()
        assert everything.error is not None and everything.error.params["verb"] == "list"
        await everything.stop()


async def test_S47_reading_without_watching_shows_the_list_and_names_the_missing_verb(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    api_server.apply(workspace("lab"), namespace)
    token = api_server.service_account(namespace, "notebook")
    grant(api_server, namespace, "notebook", [Right("list", WORKSPACES)])
    clock = StillClock()
    async with straight(api_server, namespace, tmp_path, token=token, clock=clock) as client:
        follower = client.follow(WORKSPACES, name="lab")
        seen = Watched(follower)
        await follower.start()
        await seen.until(lambda: follower.error is not None)
        assert follower.error is not None and paused(follower) is False
        assert (follower.error.code, follower.error.params["verb"]) == ("cluster_forbidden", "watch")
        for number in range(1, 12):
            await clock.until_asleep(number)
            clock.advance(LONGEST_PAUSE_REFUSED)
        await clock.until_asleep(12)
        assert clock.pauses[-1] >= LONGEST_PAUSE_REFUSED / 2  # what only an administrator changes is asked for rarely
        grant(api_server, namespace, "notebook", [Right(verb, WORKSPACES) for verb in ("list", "watch")])
        clock.advance(LONGEST_PAUSE_REFUSED)
        await seen.until(lambda: follower.error is None)


async def test_a_whole_cluster_is_followed_by_namespace_and_name(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    other = api_server.namespace()
    for place in (namespace, other):
        api_server.apply(workspace("lab"), place)
    async with straight(api_server, namespace, tmp_path) as client:
        follower = client.follow(WORKSPACES, namespace=EVERYWHERE)
        await follower.start()
        assert {f"{namespace}/lab", f"{other}/lab"} <= set(follower.objects)


async def test_no_requests_while_nothing_changes(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    """By the API server's own audit log: one list, one watch, and a hundred changes cost nothing more."""
    api_server.apply(workspace("lab"), namespace)
    token = api_server.service_account(namespace, "notebook")
    grant(api_server, namespace, "notebook", [Right(verb, WORKSPACES) for verb in ("list", "watch")])
    user = f"system:serviceaccount:{namespace}:notebook"
    async with straight(api_server, namespace, tmp_path, token=token) as client:
        follower = client.follow(WORKSPACES, name="lab")
        seen = Watched(follower)
        await follower.start()
        for number in range(100):
            body = {"metadata": {"annotations": {"n": str(number)}}}
            api_server.patch("kubeflow.org/v1beta1/Workspace", "lab", body, namespace)
        await seen.until(lambda: follower.objects["lab"]["metadata"].get("annotations") == {"n": "99"})
        assert [request.verb for request in api_server.audit(user=user)] == ["list", "watch"]
        assert client.requests == {("list", "workspaces"): 1, ("watch", "workspaces"): 1}


async def test_S46_a_version_that_is_compacted_is_listed_again(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    """The real API server's 410: the watch is cut and its version made impossible, as after a long time away."""
    api_server.apply(workspace("lab"), namespace)
    clock = StillClock()
    async with through(api_server, namespace, tmp_path, clock=clock) as (proxy, client):
        follower = client.follow(WORKSPACES, name="lab")
        seen = Watched(follower)
        await follower.start()
        await open_watch(follower)
        follower._version = "1"
        clock.advance(60)
        proxy.cut_watches()
        await clock.until_asleep(1)
        assert follower.error is None and paused(follower) is False
        set_paused(api_server, namespace, "lab", True)
        clock.advance(1)
        await seen.until(lambda: paused(follower) is True)
        versions = [one.query.get("resourceVersion") for one in proxy.seen if one.watch]
        assert versions[1] == "1" and proxy.count(watch=False) == 2


@pytest.mark.parametrize("abruptly", [False, True])
async def test_S46_changes_while_the_watch_was_cut_are_not_missed(
    api_server: ApiServer, namespace: str, tmp_path: Path, abruptly: bool
) -> None:
    api_server.apply(workspace("lab"), namespace)
    clock = StillClock()
    async with through(api_server, namespace, tmp_path, clock=clock) as (proxy, client):
        follower = client.follow(WORKSPACES, name="lab")
        seen = Watched(follower)
        await follower.start()
        await open_watch(follower)
        proxy.cut_watches(abruptly=abruptly)
        await clock.until_asleep(1)  # it lived too short to be opened again at once
        set_paused(api_server, namespace, "lab", True)
        clock.advance(2)
        await seen.until(lambda: paused(follower) is True)
        assert proxy.count(watch=False) == 1  # from the last version; no second list was needed


async def test_S44_a_rotated_token_is_read_again(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    """Only the newest token is taken; the watch is cut at the rotation, as some API servers do."""
    api_server.apply(workspace("lab"), namespace)
    clock = StillClock()
    async with through(api_server, namespace, tmp_path, clock=clock) as (proxy, client):
        first, second = (api_server.service_account(namespace, "notebook") for _ in range(2))
        grant(api_server, namespace, "notebook", [Right(verb, WORKSPACES) for verb in ("get", "list", "watch")])
        token = tmp_path / "token"
        token.write_text(first)
        proxy.only_token = first
        follower = client.follow(WORKSPACES, name="lab")
        seen = Watched(follower)
        await follower.start()
        await open_watch(follower)

        proxy.only_token = second
        with pytest.raises(ClusterError) as refused:  # the file still has the old one
            await client.get(WORKSPACES, "lab")
        assert refused.value.code == "cluster_unauthorized"
        proxy.cut_watches()
        await clock.until_asleep(1)
        clock.advance(1)
        await seen.until(lambda: follower.error is not None)
        assert follower.error is not None and follower.error.code == "cluster_unauthorized"  # unknown, not failed
        assert paused(follower) is False
        await clock.until_asleep(2)

        # Written within the same clock tick and of the same length: only its content tells.
        stat = token.stat()
        token.write_text(second)
        os.utime(token, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        before = len(proxy.seen)
        assert (await client.get(WORKSPACES, "lab"))["metadata"]["name"] == "lab"
        assert [one.token for one in proxy.seen[before:]] == [first, second]
        clock.advance(5)
        await seen.until(lambda: follower.error is None)
        set_paused(api_server, namespace, "lab", True)
        await seen.until(lambda: paused(follower) is True)


async def test_S44_a_token_that_the_real_api_server_ends(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    expired = api_server.service_account(namespace, "notebook", seconds=-61)
    fresh = api_server.service_account(namespace, "notebook")
    grant(api_server, namespace, "notebook", [Right("list", WORKSPACES)])
    async with straight(api_server, namespace, tmp_path, token=expired) as client:
        with pytest.raises(ClusterError) as refused:
            await client.list(WORKSPACES)
        assert refused.value.code == "cluster_unauthorized"
        (tmp_path / "token").write_text(fresh)
        assert (await client.list(WORKSPACES)).items == []


@pytest.mark.parametrize(
    ("how", "why"), [("refuse", "refused"), ("unavailable", "status"), ("hang", "timeout"), ("garbled", "garbled")]
)
async def test_S48_an_api_server_that_is_away_for_minutes(
    api_server: ApiServer, namespace: str, tmp_path: Path, how: str, why: str
) -> None:
    """The last known state stays, with its age; it is tried again more and more slowly; it recovers alone."""
    api_server.apply(workspace("lab"), namespace)
    clock = StillClock()
    async with through(api_server, namespace, tmp_path, clock=clock) as (proxy, client):
        follower = client.follow(WORKSPACES, name="lab")
        seen = Watched(follower)
        await follower.start()
        await open_watch(follower)
        last_seen = clock.now()
        clock.advance(60)  # the watch is a good one: it is opened again at once

        undo = await _break(proxy, how)
        if how == "hang":
            client.request_timeout = 0.3  # nothing has to be quick while everything hangs
        proxy.cut_watches()
        await proxy.until(lambda: proxy.watches == 0)
        set_paused(api_server, namespace, "lab", True)
        await seen.until(lambda: follower.error is not None)
        assert follower.error is not None
        assert (follower.error.code, follower.error.params["why"]) == ("cluster_unreachable", why)
        with pytest.raises(ClusterError) as failed:
            await client.get(WORKSPACES, "lab")
        assert failed.value.code == "cluster_unreachable" and failed.value.params["why"] == why

        for number in range(1, 4):
            await clock.until_asleep(number)
            clock.advance(clock.pauses[-1])
        await clock.until_asleep(4)
        assert clock.pauses[0] < clock.pauses[-1] and clock.pauses[-1] <= 30
        assert paused(follower) is False and follower.synced_at == last_seen  # old, and known to be

        client.request_timeout = 10.0
        await undo()
        clock.advance(clock.pauses[-1])
        await seen.until(lambda: follower.error is None)
        assert paused(follower) is True and follower.synced_at == clock.now()


async def _break(proxy: FaultyServer, how: str) -> Callable[[], Any]:
    """Break it in one way; returns what repairs it."""
    from aiohttp import web

    if how == "refuse":
        await proxy.refuse()
        return proxy.start
    if how == "hang":
        proxy.hanging = True
    else:

        async def rule(_: Any) -> web.Response:
            return refusal(503) if how == "unavailable" else web.Response(text="<html>a proxy's page</html>")

        proxy.rules.append(rule)

    async def repair() -> None:
        proxy.rules.clear()
        proxy.release()

    return repair


async def test_S48_a_real_api_server_that_dies_and_comes_back(own_api_server: ApiServer, tmp_path: Path) -> None:
    clock = StillClock()
    async with straight(own_api_server, "default", tmp_path, clock=clock) as client:
        follower = client.follow(CONFIG_MAPS)
        seen = Watched(follower)
        await follower.start()
        await open_watch(follower)
        before = follower.synced_at
        clock.advance(60)
        own_api_server.kill()
        await seen.until(lambda: follower.error is not None)
        assert follower.error is not None and follower.error.params["why"] == "refused"
        assert follower.synced_at == before
        await clock.until_asleep(1)
        await asyncio.to_thread(own_api_server.start)
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "after"}}
        await asyncio.to_thread(own_api_server.apply, made, "default")
        clock.advance(30)
        await seen.until(lambda: "after" in follower.objects)
        assert follower.error is None


async def test_following_starts_while_disconnected_and_waits(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    api_server.apply(workspace("lab"), namespace)
    async with straight(api_server, namespace, tmp_path) as client:
        await client.disconnect()
        follower = client.follow(WORKSPACES)
        seen = Watched(follower)
        await follower.start()
        assert follower.synced_at is None and not client.requests
        await client.reconnect()
        await seen.until(lambda: list(follower.objects) == ["lab"])


async def test_disconnect_stops_a_follower_that_waits_for_its_next_try(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    clock = StillClock()
    async with through(api_server, namespace, tmp_path, clock=clock) as (proxy, client):
        await proxy.refuse()
        follower = client.follow(WORKSPACES)
        await follower.start()
        assert follower.error is not None
        await clock.until_asleep(1)
        await client.disconnect()
        await proxy.start()
        counted = client.requests.copy()
        clock.advance(600)
        for _ in range(100):
            await asyncio.sleep(0)
        assert client.requests == counted and proxy.count() == 0
        await client.reconnect()
        await proxy.until(lambda: proxy.watches == 1)
        assert follower.error is None
