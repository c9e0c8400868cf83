# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The way from the pods to the API server: a relay that can be cut, byte for byte otherwise (TLS goes through it)."""

from __future__ import annotations

import asyncio
import contextlib

from .faults import Faults
from .http_server import close, port_of

CHUNK = 64 * 1024


class ApiRelay:
    """Listens on loopback from `start` to `stop`; refuses while `faults.api_unreachable`."""

    def __init__(self, target_port: int, faults: Faults) -> None:
        self._target = target_port
        self._faults = faults
        self._server: asyncio.Server | None = None
        self._port = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._switching = asyncio.Lock()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that pods are given."""
        return "127.0.0.1", self._port

    async def start(self) -> None:
        """Listen, always on the same port."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = port_of(self._server)

    async def stop(self) -> None:
        """Refuse, and cut what is open."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def cut(self) -> None:
        """Cut all connections, watches too; new ones are let through."""
        for writer in list(self._open):
            writer.transport.abort()

    async def look_again(self) -> None:
        """Refuse or accept, as the fault says."""
        async with self._switching:
            if self._faults.api_unreachable:
                await self.stop()
            elif self._server is None:
                await self.start()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                await asyncio.wait(
                    [asyncio.create_task(_copy(reader, up_writer)), asyncio.create_task(_copy(up_reader, writer))],
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                await close(up_writer)
        except OSError:
            pass
        finally:
            self._tasks.discard(task)
            self._open.discard(writer)
            await close(writer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
