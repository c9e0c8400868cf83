# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Another process's sockets (Linux): what a restored kernel listens on is held by us as well, and a kernel that was
stopped for good is cut off from its clients, so that these keep what they send.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
from collections import Counter
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Collection

#: pidfd_getfd(2), the same number on every architecture.
_PIDFD_GETFD = 438


def listening_sockets(pid: int, ports: Collection[int]) -> dict[int, socket.socket]:
    """Our own copy of each socket on which `pid` listens at one of `ports`; those that cannot be had are left out.

    It takes the right to trace the process, which a parent has. Blocks for some milliseconds.
    """
    return dict(_copies(pid, ports, psutil.CONN_LISTEN))


def shut_connections(pid: int, ports: Collection[int]) -> None:
    """End the connections that clients have to `pid` at one of `ports`; they connect again. Blocks for milliseconds."""
    for _, connection in _copies(pid, ports, psutil.CONN_ESTABLISHED):
        with connection, contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def clients(pid: int, ports: Collection[int]) -> Counter[int]:
    """How many clients `pid` serves at each of `ports`. Blocks for milliseconds."""
    return Counter(entry.laddr.port for entry in _entries(pid, ports, psutil.CONN_ESTABLISHED))


def _entries(pid: int, ports: Collection[int], status: str) -> list[Any]:
    try:
        entries = psutil.Process(pid).net_connections("tcp")
    except (psutil.Error, OSError, AttributeError):
        return []
    return [entry for entry in entries if entry.status == status and entry.laddr.port in ports]


def _copies(pid: int, ports: Collection[int], status: str) -> list[tuple[int, socket.socket]]:
    try:
        process = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return []
    found = []
    try:
        for entry in _entries(pid, ports, status):
            descriptor = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, entry.fd, 0)
            if descriptor >= 0:
                found.append((entry.laddr.port, socket.socket(fileno=descriptor)))
    finally:
        os.close(process)
    return found
