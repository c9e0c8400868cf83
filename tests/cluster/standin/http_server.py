# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A small HTTP/1.1 server, one request per connection: for the webhooks, the backend and the control endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

HEAD_LIMIT = 64 * 1024


@dataclass
class Head:
    """The beginning of a request."""

    method: str
    #: Path and query.
    target: str
    headers: dict[str, str]
    #: As it was received, with the empty line.
    raw: bytes

    @property
    def path(self) -> str:
        """Without the query."""
        return self.target.split("?", 1)[0]


@dataclass
class Answer:
    """What is answered; `body` is sent as JSON unless it is text."""

    status: int
    body: Any
    content_type: str = "application/json"


Handler = Callable[[Head, bytes], Awaitable[Answer]]


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The head of the next request, None when there is none."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
        return None
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3:
        return None
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return Head(parts[0], parts[1], {name.strip().lower(): value.strip() for name, value in pairs}, raw)


async def read_body(head: Head, reader: asyncio.StreamReader) -> bytes:
    """The body of a request that says how long it is."""
    return await reader.readexactly(int(head.headers.get("content-length", "0")))


async def write_answer(writer: asyncio.StreamWriter, answer: Answer) -> None:
    """Send the answer; the connection is done with it."""
    body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    data = body.encode()
    phrase = HTTPStatus(answer.status).phrase
    head = f"HTTP/1.1 {answer.status} {phrase}\r\nContent-Type: {answer.content_type}\r\n"
    head += f"Content-Length: {len(data)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + data)
    with contextlib.suppress(OSError):
        await writer.drain()


async def close(writer: asyncio.StreamWriter) -> None:
    """Close a connection; that the other side was quicker is no error."""
    writer.close()
    with contextlib.suppress(OSError, ssl.SSLError):
        await writer.wait_closed()


async def serve(handler: Handler, *, port: int = 0, tls: ssl.SSLContext | None = None) -> asyncio.Server:
    """Serve on loopback until the returned server is closed."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await read_head(reader)
            if head is not None:
                await write_answer(writer, await handler(head, await read_body(head, reader)))
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            await close(writer)

    return await asyncio.start_server(connected, "127.0.0.1", port, ssl=tls, limit=HEAD_LIMIT)


def port_of(server: asyncio.Server) -> int:
    """The port it listens on."""
    port: int = server.sockets[0].getsockname()[1]
    return port
