# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""An API server that fails when it is told to: a plain HTTP proxy in front of a real one, or a scripted one alone.

Faults are set while it runs. What it passes on is untouched, so the real API server still decides what is right.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


@dataclass(frozen=True)
class Seen:
    """A request that came in. `token`: of the Authorization header."""

    method: str
    path: str
    query: dict[str, str]
    token: str | None

    @property
    def watch(self) -> bool:
        """Whether it is a watch."""
        return self.query.get("watch") == "true"


def status(code: int, reason: str = "", name: str = "") -> dict[str, Any]:
    """A `Status` object as the API server sends it."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": f"scripted {code}",
        "details": {"name": name} if name else {},
        "code": code,
    }


def refusal(code: int, reason: str = "", name: str = "") -> web.Response:
    """An HTTP answer with a `Status`."""
    return web.json_response(status(code, reason, name), status=code)


class FaultyServer:
    """On loopback, until `stop`.

    Attributes:
        seen: every request that came in.
        rules: tried in order; the first that answers wins, else the real API server is asked.
        hanging: accept requests and answer none.
        only_token: 401 for every other one.
    """

    def __init__(self, upstream: str | None = None, ca: str | None = None) -> None:
        self.seen: list[Seen] = []
        self.rules: list[Handler] = []
        self.hanging = False
        self.only_token: str | None = None
        self._upstream = upstream
        self._ca = ca
        self._http: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._watches: dict[web.StreamResponse, asyncio.Event] = {}
        self._wake = asyncio.Event()
        self._changed = asyncio.Condition()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> FaultyServer:
        """Listen; on the same port as before."""
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        if self._upstream is not None and self._http is None:
            context = ssl.create_default_context(cafile=self._ca)
            self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), auto_decompress=False)
        return self

    async def refuse(self) -> None:
        """Close everything, listen no more: connections are refused until `start`."""
        self.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def stop(self) -> None:
        """End."""
        self.release()
        await self.refuse()
        if self._http is not None:
            await self._http.close()

    def release(self) -> None:
        """Let requests go on that hang."""
        self.hanging = False
        self._wake.set()
        self._wake = asyncio.Event()

    def cut_watches(self, *, abruptly: bool = False) -> None:
        """Close all open watches without a word; `abruptly`: with a reset in the middle of the stream."""
        for response, cut in list(self._watches.items()):
            if abruptly and response._req is not None and response._req.transport is not None:
                response._req.transport.abort()
            cut.set()

    async def say(self, event: dict[str, Any]) -> None:
        """Put an event into every open watch."""
        for response in list(self._watches):
            await response.write(json.dumps(event).encode() + b"\n")

    @property
    def watches(self) -> int:
        """Watches that are open now."""
        return len(self._watches)

    def count(self, *, watch: bool | None = None) -> int:
        """Requests so far: watches, others, or all."""
        return sum(watch is None or one.watch is watch for one in self.seen)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds; it is looked at after every request and every end of a watch."""
        async with self._changed:
            await self._changed.wait_for(condition)

    async def open_watch(
        self, request: web.Request, *events: dict[str, Any], close: bool = False
    ) -> web.StreamResponse:
        """Answer a watch with these events, then close it or keep it open until `cut_watches`. For rules."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for event in events:
            await response.write(json.dumps(event).encode() + b"\n")
        if not close:
            await self._while_open(response, asyncio.Event().wait())
        await self._end(response)
        return response

    async def _while_open(self, response: web.StreamResponse, work: Awaitable[object]) -> None:
        """Do the work of a watch until it ends or the watch is cut."""
        cut = asyncio.Event()
        self._watches[response] = cut
        await self._tell()
        tasks = {asyncio.ensure_future(work), asyncio.ensure_future(cut.wait())}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._watches[response]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _end(self, response: web.StreamResponse) -> None:
        with suppress(ConnectionError):
            await response.write_eof()
        await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        authorization = request.headers.get("Authorization", "")
        token = authorization.removeprefix("Bearer ") or None
        self.seen.append(Seen(request.method, request.path, dict(request.query), token))
        await self._tell()
        if self.hanging:
            await self._wake.wait()
        if self.only_token is not None and token != self.only_token:
            return refusal(401, "Unauthorized")
        for rule in list(self.rules):
            answer = await rule(request)
            if answer is not None:
                return answer
        return await self._pass_on(request)

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        assert self._http is not None, f"no real API server behind this one, and no rule for {request.path_qs}"
        headers = {k: v for k, v in request.headers.items() if k not in ("Host", "Content-Length", "Transfer-Encoding")}
        url = f"{self._upstream}{request.path_qs}"
        body = await request.read()
        with suppress(ConnectionError):  # the other side has gone meanwhile
            return await self._fetch(request, url, headers, body)
        return web.Response(status=502)

    async def _fetch(self, request: web.Request, url: str, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        assert self._http is not None
        async with self._http.request(request.method, url, headers=headers, data=body or None) as theirs:
            kept = ("Content-Type", "Content-Encoding", "Audit-Id")
            passed = {k: v for k, v in theirs.headers.items() if k in kept}
            ours = web.StreamResponse(status=theirs.status, headers=passed)
            await ours.prepare(request)
            if request.query.get("watch") == "true":
                await self._while_open(ours, _pump(theirs, ours))
            else:
                await _pump(theirs, ours)
        await self._end(ours)
        return ours


async def _pump(theirs: aiohttp.ClientResponse, ours: web.StreamResponse) -> None:
    with suppress(aiohttp.ClientError, ConnectionError):
        async for chunk in theirs.content.iter_any():
            await ours.write(chunk)
