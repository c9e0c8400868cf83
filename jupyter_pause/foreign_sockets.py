# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Copies of another process's listening sockets (Linux): what a restored kernel bound itself is held by us as well."""

from __future__ import annotations

import ctypes
import os
import socket
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Collection

#: pidfd_getfd(2), the same number on every architecture.
_PIDFD_GETFD = 438


def listening_sockets(pid: int, ports: Collection[int]) -> dict[int, socket.socket]:
    """Our own copy of each socket on which `pid` listens at one of `ports`; those that cannot be had are left out.

    It takes the right to trace the process, which a parent has. Blocks for some milliseconds.
    """
    try:
        entries = psutil.Process(pid).net_connections("tcp")
        process = os.pidfd_open(pid)
    except (psutil.Error, OSError, AttributeError):
        return {}
    found: dict[int, socket.socket] = {}
    try:
        for entry in entries:
            if entry.status == psutil.CONN_LISTEN and entry.laddr.port in ports:
                descriptor = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, entry.fd, 0)
                if descriptor >= 0:
                    found[entry.laddr.port] = socket.socket(fileno=descriptor)
    finally:
        os.close(process)
    return found
