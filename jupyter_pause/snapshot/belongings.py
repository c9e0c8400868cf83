# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What a process snapshot needs to find again: the machine, process numbers, files. Noted at the dump, compared before
a restore, so that what changed can be listed instead of guessed from CRIU's log.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psutil

from .sentences import reason
from .store import OpenFile, SnapshotManifest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jupyter_pause.states import Reason

_SQLITE = b"SQLite format 3\0"
_DELETED = " (deleted)"
#: How many names a sentence lists.
_MOST_NAMES = 5


@dataclass
class Belongings:
    """What a stopped tree of processes has. `changeable`: files that may change without harm to the process."""

    pids: list[int]
    tasks: list[int] = field(default_factory=list)
    files: list[OpenFile] = field(default_factory=list)
    changeable: set[str] = field(default_factory=set)


def tree(pid: int) -> list[int]:
    """The process and all below it. Blocks; raises psutil.Error when it is gone."""
    top = psutil.Process(pid)
    return [pid, *(child.pid for child in top.children(recursive=True))]


def belongings(pid: int) -> Belongings:
    """Look at a tree that does not run. Blocks; raises psutil.Error, OSError when it is gone."""
    found = Belongings(tree(pid))
    locked = _locked_inodes(found.pids)
    files: dict[str, OpenFile] = {}
    for one in found.pids:
        found.tasks += sorted(int(name) for name in os.listdir(f"/proc/{one}/task"))
        for opened in [*_mapped(one), *_opened(one), *_folder(one)]:
            if opened.why == "open" and opened.inode not in locked and _is_sqlite(opened.path):
                found.changeable.add(opened.path)  # SQLite looks whether its file was changed before each use
            else:
                files.setdefault(opened.path, opened)
    found.files = [entry for path, entry in files.items() if path not in found.changeable]
    return found


def host_facts() -> dict[str, Any]:
    """The machine that a snapshot is bound to. Blocks."""
    return {
        "machine": _machine(),
        "processor": _processor(),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "user": os.geteuid(),
    }


def in_the_way(manifest: SnapshotManifest, criu_version: tuple[int, ...]) -> Reason | None:
    """The first thing that keeps a snapshot from being restored here and now; None when nothing is known to. Blocks."""
    saved, now = manifest.host, host_facts()
    if any(saved.get(name) != now[name] for name in ("machine", "processor", "architecture")):
        return reason("machine_changed")
    if saved.get("user") != now["user"]:
        return reason("user_changed")
    if saved.get("kernel") != now["kernel"]:
        return reason("kernel_changed", saved=saved.get("kernel"), current=now["kernel"])
    if tuple(manifest.criu) > criu_version:
        text = [".".join(map(str, numbers)) for numbers in (manifest.criu, criu_version)]
        return reason("criu_changed", saved=text[0], current=text[1])
    return _files_in_the_way(manifest.files) or _pid_in_the_way(manifest.tasks)


def _files_in_the_way(files: Iterable[OpenFile]) -> Reason | None:
    gone: list[str] = []
    changed: list[str] = []
    libraries: list[str] = []
    for entry in files:
        try:
            status = os.stat(entry.path)
        except OSError:
            gone.append(entry.path)
            continue
        if entry.why == "folder":
            continue
        same_time = entry.why == "shared" or status.st_mtime_ns == entry.mtime_ns
        if status.st_size != entry.size or not same_time:
            (libraries if entry.why == "mapped" else changed).append(entry.path)
    for code, names in (("files_gone", gone), ("libraries_changed", libraries), ("files_changed", changed)):
        if names:
            shown = [*names[:_MOST_NAMES], *(["..."] if len(names) > _MOST_NAMES else [])]
            return reason(code, names=shown, count=len(names))
    return None


def _pid_in_the_way(tasks: Iterable[int]) -> Reason | None:
    """Also numbers of threads: they come from the same row."""
    taken = next((task for task in tasks if os.path.exists(f"/proc/{task}")), None)
    return reason("pid_taken", pid=taken) if taken is not None else None


# --- looking at a process ---------------------------------------------------------------------------------------------


def _opened(pid: int) -> Iterable[OpenFile]:
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            path = os.readlink(f"/proc/{pid}/fd/{name}")
            status = os.stat(f"/proc/{pid}/fd/{name}")
            flags = _flags(pid, name)
        except (OSError, ValueError):
            continue
        log_file = flags & os.O_ACCMODE == os.O_WRONLY and flags & os.O_APPEND  # it may grow; CRIU says so too
        if stat.S_ISREG(status.st_mode) and path.startswith("/") and not path.endswith(_DELETED) and not log_file:
            yield OpenFile(path=path, size=status.st_size, mtime_ns=status.st_mtime_ns, inode=status.st_ino, why="open")


def _flags(pid: int, descriptor: str) -> int:
    with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("flags:"))
    return int(line.split()[1], 8)


def _mapped(pid: int) -> Iterable[OpenFile]:
    """Files in the address space; "shared" for those that the process itself may write through its memory."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
        lines = [line.rstrip("\n").split(None, 5) for line in file]
    ways = {(words[5], words[1][3] == "s") for words in lines if len(words) == 6 and words[5].startswith("/")}
    for path, shared in sorted(ways, reverse=True):
        with contextlib.suppress(OSError):
            status = os.stat(path)
            if stat.S_ISREG(status.st_mode):
                yield OpenFile(
                    path=path,
                    size=status.st_size,
                    mtime_ns=status.st_mtime_ns,
                    inode=status.st_ino,
                    why="shared" if shared else "mapped",
                )


def _folder(pid: int) -> Iterable[OpenFile]:
    with contextlib.suppress(OSError):
        yield OpenFile(path=os.readlink(f"/proc/{pid}/cwd"), size=0, mtime_ns=0, inode=0, why="folder")


def _is_sqlite(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_SQLITE)) in (_SQLITE, b"")
    except OSError:
        return False


def _locked_inodes(pids: list[int]) -> set[int]:
    """Inodes on which one of these processes holds a lock (proc(5): /proc/locks)."""
    found = set()
    with contextlib.suppress(OSError), open("/proc/locks", encoding="ascii") as file:
        for line in file:
            match = re.search(r" (\d+) [0-9a-f]+:[0-9a-f]+:(\d+) ", line)
            if match is not None and int(match[1]) in pids:
                found.add(int(match[2]))
    return found


def _machine() -> str:
    for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError), open(name, encoding="ascii") as file:
            text = file.read().strip()
            if text:
                return text
    return platform.node()


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return ""
