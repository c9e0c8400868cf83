# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The gateway: one origin for Kubeflow's backend and for the servers in the pods, WebSockets too.

A pod is behind it while it is Ready, as it is in its Service's endpoints. When it stops being Ready, all its
connections are cut and new ones are answered 503 (facts/cluster.md section 3: "every open browser connection drops").
"""

from __future__ import annotations

import asyncio
import contextlib
import re

from tests.cluster.rest import Object

from .api import Cache, Key, is_true
from .backend import BASE, Backend
from .http_server import HEAD_LIMIT, Answer, Head, close, port_of, read_body, read_head, write_answer

#: Paths of workspaces and of Notebooks v1, and the label by which their Service finds the pod.
ROUTES = (
    (re.compile(r"^/workspace/connect/([^/]+)/([^/]+)/[^/]+(/|$)"), "notebooks.kubeflow.org/workspace-name"),
    (re.compile(r"^/notebook/([^/]+)/([^/]+)(/|$)"), "notebook-name"),
)
CHUNK = 64 * 1024


class Gateway:
    """Listens on loopback from `start` to `stop`."""

    def __init__(self, backend: Backend, pods: Cache) -> None:
        self._backend = backend
        self._pods = pods
        self._server: asyncio.Server | None = None
        self._open: dict[str, set[asyncio.StreamWriter]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        pods.listen(self._changed)

    async def start(self, port: int = 0) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port, limit=HEAD_LIMIT)

    async def stop(self) -> None:
        """Cut everything and stop listening."""
        if self._server is not None:
            self._server.close()
        for uid in list(self._open):
            self._cut(uid)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def port(self) -> int:
        """Its port."""
        assert self._server is not None
        return port_of(self._server)

    def _changed(self, _: Key, pod: Object | None) -> None:
        served = {pod["metadata"]["uid"] for pod in self._pods.objects.values() if _is_served(pod)}
        for uid in [uid for uid in self._open if uid not in served]:
            self._cut(uid)

    def _cut(self, uid: str) -> None:
        for writer in self._open.pop(uid, set()):
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            head = await read_head(reader)
            if head is not None:
                await self._answer(head, reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._tasks.discard(task)
            await close(writer)

    async def _answer(self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if head.path.startswith(BASE):
            body = await read_body(head, reader)
            await write_answer(writer, await self._backend.handle(head, body))
            return
        route = next(((match, label) for path, label in ROUTES if (match := path.match(head.path))), None)
        pod = self._pod(route[0][1], route[0][2], route[1]) if route else None
        if route is None:
            await write_answer(writer, Answer(404, "not found", "text/plain"))
        elif pod is None:
            await write_answer(writer, Answer(503, "no healthy upstream", "text/plain"))
        else:
            await self._forward(pod, head, reader, writer)

    def _pod(self, namespace: str, name: str, label: str) -> Object | None:
        for (place, _), pod in self._pods.objects.items():
            named = pod["metadata"].get("labels", {}).get(label) == name
            if place == namespace and named and _is_served(pod):
                return pod
        return None

    async def _forward(
        self, pod: Object, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        port = pod["spec"]["containers"][0]["ports"][0]["containerPort"]
        try:
            up_reader, up_writer = await asyncio.open_connection(pod["status"]["podIP"], port)
        except OSError:
            await write_answer(writer, Answer(503, "upstream connect error", "text/plain"))
            return
        both = self._open.setdefault(pod["metadata"]["uid"], set())
        both |= {writer, up_writer}
        try:
            up_writer.write(_request(head))
            await _both_ways((reader, up_writer), (up_reader, writer))
        finally:
            both -= {writer, up_writer}
            await close(up_writer)


def _is_served(pod: Object) -> bool:
    return is_true(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]


def _request(head: Head) -> bytes:
    """The head as it goes on: one request per connection, so that the next one is looked at again."""
    if head.headers.get("upgrade", "").lower() == "websocket":
        return head.raw
    lines = head.raw.rstrip(b"\r\n").split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith((b"connection:", b"keep-alive:"))]
    return b"\r\n".join([*kept, b"Connection: close", b"", b""])


async def _both_ways(*directions: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Copy until the upstream has closed, or either side is gone."""
    (down, to_up), (up, to_down) = directions
    asking = asyncio.create_task(_copy(down, to_up))
    answering = asyncio.create_task(_copy(up, to_down))
    try:
        await answering
    finally:
        asking.cancel()
        answering.cancel()
        await asyncio.wait([asking, answering])


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
