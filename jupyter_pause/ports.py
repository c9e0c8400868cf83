# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Holds a paused kernel's TCP ports.

A cell sent to a paused kernel waits in the server's ZeroMQ socket, which tries to connect again and again. If the
port were free, any local process could bind it and receive that cell in plain text. A listening socket of ours that
accepts and never answers keeps the message where it is: ZeroMQ sends nothing before the peer has greeted.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: A ZeroMQ client sends 64 bytes before it is answered. Whoever sends more is not one and is dropped.
MAX_GREETING = 4096
#: Connections held at most per port; the oldest is dropped first (a client then simply connects again).
MAX_CONNECTIONS = 512
_BACKLOG = 512
#: On close: no TIME_WAIT, the client sees a reset at once and connects to whoever listens next.
_LINGER_RESET = struct.pack("ii", 1, 0)


class _Silent(asyncio.Protocol):
    """Accepts, says nothing, and notices when the peer goes away (else descriptors would pile up overnight)."""

    def __init__(self, held: dict[_Silent, asyncio.Transport]) -> None:
        self._held = held
        self._received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
        self._held[self] = transport
        if len(self._held) > MAX_CONNECTIONS:
            next(iter(self._held.values())).abort()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > MAX_GREETING and self in self._held:
            self._held[self].abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._held.pop(self, None)


def listening_socket(ip: str, port: int) -> socket.socket:
    """A non-blocking listening TCP socket on `ip`:`port` (0: any free port).

    Raises OSError (EADDRINUSE) when somebody else has it.
    """
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # The kernel's old connections may still be in TIME_WAIT; a *listening* owner is refused all the same.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("" if ip == "*" else ip, port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


class PortHold:
    """The listening sockets of one kernel, held by this process.

    `accept()` starts swallowing connections (while no kernel process lives), `quiet()` stops that without letting
    the ports go (the kernel process shares the sockets and accepts itself), `free()` lets them go.
    """

    def __init__(self, ip: str) -> None:
        self.ip = ip
        self._sockets: dict[int, socket.socket] = {}
        self._servers: dict[int, asyncio.Server] = {}
        self._connections: dict[_Silent, asyncio.Transport] = {}

    @property
    def ports(self) -> frozenset[int]:
        """The ports held now."""
        return frozenset(self._sockets)

    @property
    def connections(self) -> int:
        """How many connections are being held without an answer."""
        return len(self._connections)

    def connections_by_port(self) -> Counter[int]:
        """How many clients each port holds without an answer."""
        return Counter(t.get_extra_info("sockname")[1] for t in self._connections.values())

    def filenos(self) -> dict[int, int]:
        """File descriptor of the listening socket, by port."""
        return {port: sock.fileno() for port, sock in self._sockets.items()}

    def bind(self, ports: Iterable[int]) -> set[int]:
        """Bind and listen on those of `ports` that are not held yet; returns the ones that somebody else has."""
        taken = set()
        for port in ports:
            if port in self._sockets:
                continue
            try:
                self._sockets[port] = listening_socket(self.ip, port)
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
                taken.add(port)
        return taken

    def bind_any(self) -> int:
        """Bind and listen on a port that is free now; returns it."""
        sock = listening_socket(self.ip, 0)
        port: int = sock.getsockname()[1]
        self._sockets[port] = sock
        return port

    async def accept(self) -> None:
        """Accept and hold connections on every held port, so that no backlog fills up."""
        loop = asyncio.get_running_loop()
        for port, sock in list(self._sockets.items()):
            if port not in self._servers:
                # The server gets a duplicate: closing it must not close the socket that keeps the port.
                self._servers[port] = await loop.create_server(
                    lambda: _Silent(self._connections), sock=sock.dup(), backlog=_BACKLOG
                )

    def quiet(self) -> None:
        """Stop accepting and drop held connections; the ports stay ours."""
        for server in self._servers.values():
            server.close()
        self._servers.clear()
        for transport in list(self._connections.values()):
            transport.abort()

    def share(self, on: bool) -> None:
        """Whether another process of this user may listen on the held ports too: for CRIU, which binds them anew.

        So there is no moment in which a port belongs to nobody. Other users are refused in any case (socket(7)).
        """
        for sock in self._sockets.values():
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(on))

    def replace(self, sockets: dict[int, socket.socket]) -> None:
        """Hold these sockets instead of the ones held now (ports that are missing here are let go)."""
        self.free()
        self._sockets = dict(sockets)

    def free(self, ports: Iterable[int] | None = None) -> None:
        """Let `ports` (default: all) go. Calling it again does nothing."""
        for port in list(self._sockets) if ports is None else list(ports):
            server = self._servers.pop(port, None)
            if server is not None:
                server.close()
            sock = self._sockets.pop(port, None)
            if sock is not None:
                sock.close()
        if not self._sockets:
            self.quiet()
