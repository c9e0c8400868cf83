# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Keeps a process that only tries something out from having any effect outside: no writing, connecting, starting.

An audit hook refuses what Python code asks for; code in C that asks the system itself is not seen by it, which is why
the process also has no GPU and a folder of its own to work in. Must be loadable by its path alone: it imports nothing
of ours.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List, Optional

#: Environment of such a process: no GPU, no windows, one thread for each library.
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "ROCR_VISIBLE_DEVICES": "",
    "ZE_AFFINITY_MASK": "",
    "JAX_PLATFORMS": "cpu",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}

_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Events that are refused whatever they are asked for, with what they would do.
_REFUSED = {
    "connects to the network": "socket.connect socket.bind socket.sendto socket.sendmsg socket.getaddrinfo "
    "socket.gethostbyname socket.gethostbyaddr",
    "starts another process": "subprocess.Popen os.system os.exec os.posix_spawn os.spawn os.fork os.forkpty pty.spawn "
    "os.startfile",
    "sends a signal": "os.kill os.killpg signal.pthread_kill",
}
#: Events that change files, whose first arguments are paths (so many).
_CHANGING = {
    "os.mkdir": 1, "os.rmdir": 1, "os.remove": 1, "os.rename": 2, "os.link": 2, "os.symlink": 2, "os.truncate": 1,
    "os.chmod": 1, "os.chown": 1, "os.utime": 1, "os.setxattr": 1, "os.removexattr": 1,
}  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


class RefusedError(PermissionError):
    """Something that this process may not do; libraries take it for a file system that cannot be written to."""


class Confinement:
    """Refuses, and remembers what it refused since `forget`."""

    def __init__(self, folder: str) -> None:
        """Writing is allowed below `folder` only."""
        self._folder = os.path.realpath(folder) + os.sep
        #: What was asked for, as clauses: "connects to the network".
        self.asked: List[str] = []
        self._rules: Dict[str, Callable[[Any], Optional[str]]] = {"open": self._open, "sqlite3.connect": self._database}
        for what, events in _REFUSED.items():
            for event in events.split():
                self._rules[event] = lambda arguments, what=what: what  # type: ignore[misc]
        for event, count in _CHANGING.items():
            self._rules[event] = lambda arguments, count=count: self._change(arguments[:count])  # type: ignore[misc]

    def begin(self) -> None:
        """From now on, for good."""
        sys.addaudithook(self._audit)

    def forget(self) -> None:
        """Begin to remember anew."""
        self.asked = []

    def _audit(self, event: str, arguments: Any) -> None:
        rule = self._rules.get(event)
        if rule is None:
            return
        what = rule(arguments)
        if what is not None:
            self.asked.append(what)
            if what != _RELATIVE:
                raise RefusedError(13, "not done while a checkpoint is only tried out: it %s" % what)

    def _open(self, arguments: Any) -> Optional[str]:
        path, mode, flags = arguments
        if isinstance(path, int) or path is None:
            return None
        writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(flags & _WRITING_FLAGS)
        if writes:
            return self._change((path,))
        return None if os.path.isabs(os.fsdecode(path)) else _RELATIVE

    def _change(self, paths: Any) -> Optional[str]:
        for path in paths:
            if isinstance(path, int):
                continue
            whole = os.path.realpath(os.fsdecode(path))
            if not whole.startswith(self._folder) and whole not in _DEVICES:
                return "changes files"
        return None

    def _database(self, arguments: Any) -> Optional[str]:
        name = os.fsdecode(arguments[0]) if isinstance(arguments[0], (str, bytes, os.PathLike)) else ""
        inside = os.path.realpath(name).startswith(self._folder)
        return None if name in (":memory:", "") or inside else "connects to a database file"


#: Not refused, but the answer is another one than in the person's folder.
_RELATIVE = "reads a file by a relative name"
