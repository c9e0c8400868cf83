# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What keeps a running kernel from being dumped, found before the click: CRIU would only say it after it has begun."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from . import unix_peers
from .belongings import tree
from .criu import GHOST_LIMIT
from .sentences import reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jupyter_pause.states import Reason

#: Where packages put CRIU's plugins (`criu --libdir`).
_PLUGIN_FOLDERS = ("lib/criu", "lib64/criu")
#: A dump is a little larger than the memory that is in use.
_ROOM_FACTOR, _ROOM_EXTRA = 1.05, 64 << 20


def obstacles(pid: int, *, transport: str, criu: Path, folder: Path, link: Path | None = None) -> list[Reason]:
    """All that is known to stand in the way of dumping this kernel; empty when nothing is. Blocks.

    `folder` is where the snapshot would go. `link` is the socket at which we listen to kernels: one that is just asking
    us to pause it is connected to that, and will not be when it is dumped.
    """
    try:
        pids = tree(pid)
        found = [*_room(pids, folder)]
        for one in pids:
            strangers = list(_owner(one))  # what they have open may not be looked at, and they are reason enough
            found += strangers or [*_tracer(one), *_open_things(one, pids, criu)]
        found += _unix_sockets(pids, transport, link)
    except (psutil.Error, OSError):
        return [reason("process_gone")]
    unique: dict[str, Reason] = {}
    for one_reason in found:
        unique.setdefault(one_reason.message, one_reason)
    return list(unique.values())


def bytes_in_memory(pid: int) -> int:
    """What a dump of the tree will hold, about (bytes): memory that no file stands for. Blocks."""
    total = 0
    for one in tree(pid):
        try:
            info = psutil.Process(one).memory_info()
        except psutil.Error:
            continue
        total += max(0, info.rss - getattr(info, "shared", 0))
    return total


def _room(pids: list[int], folder: Path) -> Iterator[Reason]:
    needed = int(bytes_in_memory(pids[0]) * _ROOM_FACTOR) + _ROOM_EXTRA
    free = shutil.disk_usage(folder).free
    if needed > free:
        yield reason("no_room_for_snapshot", needed=needed, free=free)


def _owner(pid: int) -> Iterator[Reason]:
    if os.geteuid() != 0 and set(psutil.Process(pid).uids()) != {os.geteuid()}:
        yield reason("other_users_process", pid=pid)


def _tracer(pid: int) -> Iterator[Reason]:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        tracer = next((line.split()[1] for line in file if line.startswith("TracerPid:")), "0")
    if tracer != "0":
        yield reason("being_traced", pid=pid)


def _open_things(pid: int, pids: list[int], criu: Path) -> Iterator[Reason]:
    masters = None
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            path = os.readlink(f"/proc/{pid}/fd/{name}")
            status = os.stat(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and path.endswith(" (deleted)") and status.st_size > GHOST_LIMIT:
            yield reason("deleted_file_too_large", bytes=status.st_size)
        elif path.startswith("/dev/nvidia") and not _has_cuda_plugin(criu):
            yield reason("gpu_without_plugin")
        elif path.startswith("/dev/pts/"):
            masters = _terminal_masters(pids) if masters is None else masters
            if path.rpartition("/")[2] not in masters:
                yield reason("terminal_outside", name=path)


def _terminal_masters(pids: list[int]) -> set[str]:
    """Numbers of the pseudo-terminals whose other side one of these processes has (proc(5): tty-index)."""
    found = set()
    for one in pids:
        try:
            names = os.listdir(f"/proc/{one}/fd")
        except OSError:
            continue
        for name in names:
            try:
                if os.readlink(f"/proc/{one}/fd/{name}") not in ("/dev/ptmx", "/dev/pts/ptmx"):
                    continue
                with open(f"/proc/{one}/fdinfo/{name}", encoding="ascii") as file:
                    found |= {line.split()[1] for line in file if line.startswith("tty-index:")}
            except OSError:
                continue
    return found


def _has_cuda_plugin(criu: Path) -> bool:
    """CRIU's CUDA plugin and the driver's tool. Untested: no GPU has run this yet."""
    folders = [criu.parent.parent / name for name in _PLUGIN_FOLDERS] + [
        Path("/usr") / name for name in _PLUGIN_FOLDERS
    ]
    plugin = any((folder / "cuda_plugin.so").exists() for folder in folders)
    return plugin and shutil.which("cuda-checkpoint") is not None


def _unix_sockets(pids: list[int], transport: str, link: Path | None) -> Iterator[Reason]:
    mine = unix_peers.sockets_of(pids)
    outside = {peer for inode, peer in unix_peers.peers().items() if inode in mine and peer not in mine and peer}
    if outside and link is not None:
        outside -= unix_peers.bound_to(link)
    if not outside:
        return
    if transport == "ipc":
        yield reason("ipc_transport")
        return
    holders = unix_peers.sockets_of(psutil.pids())
    for peer in sorted(outside):
        try:
            program = psutil.Process(holders[peer]).name()
        except (KeyError, psutil.Error):
            program = "another program"
        yield reason("unix_socket_outside", program=program)
