# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which Unix sockets are connected to which, and by which name: the kernel tells by netlink (sock_diag(7)); what
/proc/net/unix tells lacks the other end.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST_DUMP = 0x1 | 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_UDIAG_SHOW_NAME, _UDIAG_SHOW_PEER = 0x1, 0x4
_UNIX_DIAG_NAME, _UNIX_DIAG_PEER = 0, 2
_HEADER = struct.Struct("=IHHII")
#: family, protocol, padding, states, inode, what to show, cookie (linux/unix_diag.h)
_REQUEST = struct.Struct("=BBHIII2I")
#: family, type, state, padding, inode, cookie
_ANSWER = struct.Struct("=BBBBI2I")
_ATTRIBUTE = struct.Struct("=HH")


def peers() -> dict[int, int]:
    """Inode of each connected Unix socket -> inode of its other end. Blocks (milliseconds); raises OSError."""
    return {
        inode: struct.unpack_from("=I", value)[0]
        for inode, attribute, value in _all_sockets(_UDIAG_SHOW_PEER)
        if attribute == _UNIX_DIAG_PEER
    }


def bound_to(path: Path) -> set[int]:
    """Inodes of the sockets with this name: the one that listens, and one for each connection that it accepted.

    Blocks (milliseconds); raises OSError.
    """
    name = os.fsencode(path)
    return {
        inode
        for inode, attribute, value in _all_sockets(_UDIAG_SHOW_NAME)
        if attribute == _UNIX_DIAG_NAME and value.rstrip(b"\0") == name
    }


def _all_sockets(show: int) -> Iterator[tuple[int, int, bytes]]:
    """Inode, attribute and value, for every Unix socket of this network namespace."""
    request = _REQUEST.pack(socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, show, 0xFFFFFFFF, 0xFFFFFFFF)
    message = _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST_DUMP, 1, 0) + request
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as link:
        link.settimeout(5.0)
        link.send(message)
        while True:
            for kind, body in _messages(link.recv(1 << 16)):
                if kind == _NLMSG_DONE:
                    return
                if kind == _NLMSG_ERROR:
                    (code,) = struct.unpack_from("=i", body)
                    raise OSError(-code, os.strerror(-code))
                inode = _ANSWER.unpack_from(body)[4]
                for attribute, value in _attributes(body[_ANSWER.size :]):
                    yield inode, attribute, value


def sockets_of(pids: Iterable[int]) -> dict[int, int]:
    """Inode of every socket that one of these processes has open -> that process. Skips what may not be seen."""
    found: dict[int, int] = {}
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for name in names:
            try:
                target = os.readlink(f"/proc/{pid}/fd/{name}")
            except OSError:
                continue
            if target.startswith("socket:["):
                found.setdefault(int(target[8:-1]), pid)
    return found


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position + _HEADER.size <= len(data):
        length, kind = _HEADER.unpack_from(data, position)[:2]
        if length < _HEADER.size:
            return
        yield kind, data[position + _HEADER.size : position + length]
        position += (length + 3) & ~3


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, position)
        if length < _ATTRIBUTE.size:
            return
        yield kind, data[position + _ATTRIBUTE.size : position + length]
        position += (length + 3) & ~3
