# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Where a kernel's own standard output and error go.

A kernel that outlives its server must not write to what the server held: a closed terminal answers EIO, a pipe whose
reader died EPIPE, a full pipe blocks it for ever. So both streams go to a small file of the kernel's own, and the
server, while it lives, copies what appears there to its own standard error, where people look for it.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from .launch import remove_file

if TYPE_CHECKING:
    from pathlib import Path

#: The file is emptied once it is longer than this (bytes) and has been copied.
MAX_BYTES = 1 << 20
_COPY_AT_ONCE = 1 << 16
_INTERVAL = 1.0


class KernelOutput:
    """One kernel's output file (0600) and the task that copies it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._copied = 0
        self._task: asyncio.Task[None] | None = None

    def open(self) -> int:
        """Empty the file and return a descriptor to give to the kernel. Raises OSError."""
        remove_file(self.path)
        self._copied = 0
        # O_APPEND: after the file was emptied the next write starts at 0 again, without a hole.
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)

    def attach(self) -> None:
        """Take over the file of a kernel that another server started: what it holds was not ours to print."""
        try:
            self._copied = self.path.stat().st_size
        except OSError:
            self._copied = 0

    def start(self) -> None:
        """Start copying."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Copy what is left and stop."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.copy()

    def remove(self) -> None:
        """Stop and delete the file."""
        self.stop()
        remove_file(self.path)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL)
            self.copy()

    def copy(self) -> None:
        """Copy what is new, at most 64 KiB at a time; empty the file when it has grown too long."""
        try:
            size = self.path.stat().st_size
            if size < self._copied:
                self._copied = 0
            if size > self._copied:
                with self.path.open("rb") as file:
                    file.seek(self._copied)
                    text = file.read(_COPY_AT_ONCE)
                self._copied += len(text)
                os.write(2, text)
            if size > MAX_BYTES:
                os.truncate(self.path, 0)
                self._copied = 0
        except OSError:
            return  # no file, or nobody reads our standard error: neither is the kernel's problem
