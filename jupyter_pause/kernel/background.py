# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What lives in or under the process beside variables: threads, asyncio tasks, children, connections, open files.

None of it comes back from a checkpoint. Everything is read from this process and from /proc; where there is no /proc
the answer is None: unknown, not "none".
"""

from __future__ import annotations

import asyncio
import io
import os
import socket
import struct
import sys
import threading
from typing import Any, Dict, Iterator, Tuple

from . import interpreter, scheduled, threads

_PROCESS_PACKAGES = ("subprocess", "multiprocessing", "asyncio")
_FILES = (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO)
_TCP_LISTEN = "0A"
_LISTS = frozenset((list, tuple, set, frozenset))
#: Longer lists are not searched for threads and tasks: those in them are said twice then, never left out.
_LISTED = 1000
#: Objects that stand for it where a variable holds one of them, and the inventory item.
_Found = Tuple[Tuple[Any, ...], Dict[str, Any]]


class Background:
    """Tells a person's threads, connections and files from those the kernel started with."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._threads = set(threading.enumerate())
        self._files = set((_open_files() or {}).values())
        self._sockets = _socket_inodes() or set()
        ports = getattr(kernel, "_recorded_ports", None) or {}
        self._ports = set(ports.values())

    # --- in the process -----------------------------------------------------------------------------------------

    def threads(self) -> list[dict[str, Any]]:
        """Threads started since, as inventory items; `details.own` is True where a person would miss it."""
        return [item for _, item in self._found_threads()]

    def tasks(self) -> list[dict[str, Any]]:
        """asyncio tasks and scheduled calls of a person that are still pending, as inventory items."""
        return [item for _, item in self._found_tasks() + self._found_calls(set())]

    def losses(self, values: list[Any]) -> list[dict[str, Any]]:
        """What a person would miss although no variable stands for it; `values` are the variables' values."""
        named = _held(values)
        pids = {getattr(value, "pid", None) for value in values if type(value).__module__.startswith(_PROCESS_PACKAGES)}
        found = self._found_threads() + self._found_tasks() + self._found_calls(named)
        items = [item for holders, item in found if named.isdisjoint(map(id, holders))]
        items += [item for item in self.processes() or () if item["details"]["pid"] not in pids]
        return [
            interpreter.loss(item["name"], item["name"], item["type"] or item["kind"], item["reason"])
            for item in items
            if item["details"]["own"]
        ]

    def _found_threads(self) -> list[_Found]:
        return [
            (thread.holders, _item(thread.name, "thread", thread.reason, thread.type, own=thread.own))
            for thread in threads.find(self._threads, getattr(self._kernel, "shell", None))
        ]

    def _loop(self) -> Any:
        return getattr(getattr(self._kernel, "io_loop", None), "asyncio_loop", None)

    def _found_calls(self, named: set[int]) -> list[_Found]:
        reason = "A scheduled call ends with the process; schedule it again after the resume."
        return [
            ((handle,), _item(name, "task", reason, "asyncio." + type(handle).__name__, own=True))
            for handle, name in scheduled.find(self._loop(), named)
        ]

    def _found_tasks(self) -> list[_Found]:
        loop = self._loop()
        if loop is None:
            return []
        try:
            tasks = asyncio.all_tasks(loop)
        except RuntimeError:  # the set changed under us, again and again
            return []
        found = []
        for task in tasks:
            frame = getattr(task.get_coro(), "cr_frame", None)
            if frame is None or frame.f_globals.get("__name__") != "__main__":
                continue
            if frame.f_code.co_name.startswith(("<module>", "<cell")):
                continue  # a cell that awaits
            reason = "An asyncio task ends with the process; start it again after the resume."
            name = "{} ({})".format(task.get_name(), frame.f_code.co_name)
            found.append(((task,), _item(name, "task", reason, "asyncio.Task", own=True)))
        return found

    # --- under and around the process ---------------------------------------------------------------------------

    def processes(self) -> list[dict[str, Any]] | None:
        """Child processes with their memory in bytes, as inventory items; None where they cannot be listed."""
        pids = _children()
        if pids is None:
            return None
        workers = _pool_workers()
        items = []
        for pid in pids:
            command = _command(pid)
            if command is None or "resource_tracker" in command:
                continue
            reason = "A child process ends with the kernel."
            item = _item(command[:200], "process", reason, None, pid=pid, own=pid not in workers)
            item["bytes"] = _resident(pid)
            items.append(item)
        return items

    def connections(self) -> list[dict[str, Any]] | None:
        """Open network connections and listening sockets, as inventory items; None where they cannot be listed."""
        mine = _socket_inodes()
        if mine is None:
            return None
        items = []
        for kind in ("tcp", "tcp6", "udp", "udp6"):
            for local, remote, state, inode in _network(kind):
                if inode not in mine or inode in self._sockets or local[1] in self._ports or remote[1] in self._ports:
                    continue
                listening = state == _TCP_LISTEN if kind.startswith("tcp") else remote[1] == 0
                name = "listening on {}:{}".format(*local) if listening else "{}:{}".format(*remote)
                reason = "An open connection ends with the process."
                items.append(_item(name, kind[:3], reason, "socket", listening=listening))
        return items

    def files(self, variables: dict[str, Any] | None = None) -> list[dict[str, Any]] | None:
        """Regular files opened since, as inventory items; None where they cannot be listed.

        One that a variable holds is opened again (`details.variable`). Of any other it is not known what holds it: an
        object further down, then it is opened again too, or a library, then it is not.
        """
        found = _open_files()
        if found is None:
            return None
        holders = _file_holders(variables or {})
        items = []
        for path in sorted(set(found.values()) - self._files):
            item = _item(path, "file", None, "open file")
            item["fate"] = "unknown"
            if path in holders:
                item["fate"], item["details"]["variable"] = "rebuilt", holders[path]
            items.append(item)
        return items


def _held(values: list[Any]) -> set[int]:
    """Ids of the values and of what they list, down to a second level; None is left out, it stands for nothing."""
    pool = getattr(sys.modules.get("multiprocessing.pool"), "Pool", ())
    found: set[int] = set()
    level: list[Any] = values
    for _ in range(3):
        found.update(map(id, level))
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind in _LISTS:
                if len(value) <= _LISTED:
                    below += value
            elif kind is dict:
                if len(value) <= _LISTED:
                    below += value.values()
            elif pool and issubclass(kind, pool):
                below.append(getattr(value, "_cache", None))
        level = below
    found.discard(id(None))
    return found


def _file_holders(variables: dict[str, Any]) -> dict[str, str]:
    """Path -> variable, of variables that are open files. Runs no code of other people's objects."""
    found = {}
    for name, value in variables.items():
        if type(value) not in _FILES:
            continue
        try:
            path = value.name
        except (AttributeError, ValueError):  # text over a buffer in memory, or detached
            continue
        if isinstance(path, str) and not value.closed:
            found[os.path.realpath(path)] = name
    return found


def _item(name: str, kind: str, reason: str | None, type_name: str | None, **details: Any) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "bytes": None,
        "complete": True,
        "fate": "lost",
        "reason": reason,
        "type": type_name,
        "details": details,
    }


# --- /proc --------------------------------------------------------------------------------------------------------


def _children() -> list[int] | None:
    """Pids of direct children that still run, or None."""
    pids = _listed_children()
    if pids is None:
        pids = _searched_children()
    return pids if pids is None else [pid for pid in pids if (_parent_and_state(pid) or (0, b"Z"))[1] != b"Z"]


def _listed_children() -> list[int] | None:
    """As the system lists them for each thread (proc(5), built in almost everywhere), or None."""
    found: list[int] = []
    try:
        for thread in os.listdir("/proc/self/task"):
            with open("/proc/self/task/{}/children".format(thread), "rb") as stream:
                found += map(int, stream.read().split())
    except OSError:  # not built in, or a thread ended just now
        return None
    return found


def _searched_children() -> list[int] | None:
    me = os.getpid()
    try:
        entries = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    except OSError:
        return None
    return [pid for pid in entries if (_parent_and_state(pid) or (0, b""))[0] == me]


def _parent_and_state(pid: int) -> tuple[int, bytes] | None:
    try:
        with open("/proc/{}/stat".format(pid), "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return (int(fields[1]), fields[0]) if len(fields) > 1 else None


def _command(pid: int) -> str | None:
    try:
        with open("/proc/{}/cmdline".format(pid), "rb") as stream:
            return stream.read().replace(b"\0", b" ").decode("utf-8", "replace").strip() or "process {}".format(pid)
    except OSError:
        return None


def _resident(pid: int) -> int | None:
    try:
        with open("/proc/{}/statm".format(pid), "rb") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _pool_workers() -> set[int]:
    """Pids of multiprocessing workers that belong to a pool: the pool, not the worker, is what a person made."""
    module = sys.modules.get("multiprocessing.process")
    found = set()
    for process in list(getattr(module, "_children", ()) or ()):
        try:
            if "PoolWorker" in process.name or type(process).__name__ in ("ForkProcess", "SpawnProcess"):
                found.add(process.pid)
        except Exception:  # a process object of another library
            continue
    return found


def _fd_targets() -> dict[int, str] | None:
    try:
        entries = os.listdir("/proc/self/fd")
    except OSError:
        return None
    targets = {}
    for entry in entries:
        try:
            targets[int(entry)] = os.readlink("/proc/self/fd/" + entry)
        except OSError:
            continue
    return targets


def _socket_inodes() -> set[str] | None:
    targets = _fd_targets()
    if targets is None:
        return None
    return {target[8:-1] for target in targets.values() if target.startswith("socket:[")}


def _open_files() -> dict[int, str] | None:
    targets = _fd_targets()
    if targets is None:
        return None
    skip = ("/dev/", "/proc/", "/memfd:", "/sys/")
    return {fd: path for fd, path in targets.items() if path.startswith("/") and not path.startswith(skip)}


def _network(kind: str) -> Iterator[tuple[tuple[str, int], tuple[str, int], str, str]]:
    """(local, remote, state, inode) for each line of /proc/net/<kind>; addresses are (text, port)."""
    try:
        with open("/proc/self/net/" + kind, encoding="ascii") as stream:
            lines = stream.read().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split()
        if len(fields) > 9:
            yield _address(fields[1]), _address(fields[2]), fields[3], fields[9]


def _address(text: str) -> tuple[str, int]:
    raw, _, port = text.partition(":")
    words = [int(raw[start : start + 8], 16) for start in range(0, len(raw), 8)]
    packed = struct.pack("={}I".format(len(words)), *words)  # the kernel prints words in its own byte order
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, packed), int(port, 16)
