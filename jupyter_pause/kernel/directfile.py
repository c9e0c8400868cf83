# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A new owner-only file that is only appended to, past the system's cache where the file system lets us.

Gigabytes that nobody reads soon would push everything else out of the cache, count against a container's memory limit
and cost a copy. Direct writes (open(2), O_DIRECT) need aligned memory, places and lengths. Where they are refused the
bytes go through the cache, and the system is asked to begin writing them early.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
from typing import Any, List

from .ownerfiles import open_private, write_all

#: What memory, places and lengths of direct reads and writes are multiples of (bytes): no usual disk asks for more.
SECTOR = 4096
BUFFER = 4 << 20
#: Bytes written through the cache after which the system is asked to begin bringing them to the disk.
WRITE_BEHIND = 16 << 20

DIRECT = getattr(os, "O_DIRECT", 0)


def aligned(size: int) -> Any:
    """Memory of our own that begins at a page: `size` bytes, writable."""
    return mmap.mmap(-1, size)


class DirectFile:
    """Appends to one new file. Not for several threads at once."""

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            self._descriptor = open_private(path, flags | DIRECT)
            self._direct = bool(DIRECT)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._descriptor = open_private(path, flags)
            self._direct = False
        self._buffer = memoryview(aligned(BUFFER))
        self._filled = 0
        self._flushed = 0
        self._begun = 0

    @property
    def size(self) -> int:
        """Bytes appended so far."""
        return self._flushed + self._filled

    def append(self, data: Any) -> None:
        """Append any buffer of bytes, through a buffer of our own. Raises OSError."""
        view = memoryview(data).cast("B")
        while view:
            count = min(len(view), BUFFER - self._filled)
            self._buffer[self._filled : self._filled + count] = view[:count]
            self._filled += count
            view = view[count:]
            if self._filled == BUFFER:
                self._flush()

    def append_blocks(self, blocks: List[memoryview]) -> None:
        """Append whole sectors that begin at pages: written from where they lie, in one go. Raises OSError."""
        if self._filled % SECTOR:
            for block in blocks:
                self.append(block)
            return
        self._flush()
        self._write(blocks)

    def pad(self, step: int) -> None:
        """Append zeros up to a multiple of `step`."""
        if self.size % step:
            self.append(bytes(-self.size % step))

    def _flush(self) -> None:
        """Write what the buffer holds, whole sectors."""
        filled, self._filled = self._filled, 0
        if filled:
            self._write([self._buffer[:filled]])

    def _write(self, blocks: List[memoryview]) -> None:
        try:
            self._write_all(blocks)
        except OSError as error:
            if error.errno != errno.EINVAL or not self._direct:
                raise
            self._through_the_cache()
            os.lseek(self._descriptor, self._flushed, os.SEEK_SET)
            self._write_all(blocks)
        self._flushed += sum(len(block) for block in blocks)
        if not self._direct and self._flushed - self._begun >= WRITE_BEHIND:
            _begin_writing(self._descriptor, self._begun, self._flushed - self._begun)
            self._begun = self._flushed

    def _write_all(self, blocks: List[memoryview]) -> None:
        if len(blocks) > 1 and hasattr(os, "writev"):
            done = os.writev(self._descriptor, blocks)
            while blocks and done >= len(blocks[0]):
                done -= len(blocks[0])
                blocks = blocks[1:]
            blocks = [blocks[0][done:], *blocks[1:]] if done else blocks
        for block in blocks:
            write_all(self._descriptor, block)

    def _through_the_cache(self) -> None:
        import fcntl

        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags & ~DIRECT)
        self._direct = False

    def finish(self) -> "os.stat_result":
        """Write the rest, make all of it durable; returns the file's status. Raises OSError."""
        size, filled = self.size, self._filled
        if filled % SECTOR:
            end = filled + -filled % SECTOR
            self._buffer[filled:end] = bytes(end - filled)
            self._filled = end
        self._flush()
        if self._flushed != size:
            os.ftruncate(self._descriptor, size)
        os.fsync(self._descriptor)
        return os.fstat(self._descriptor)

    def close(self) -> None:
        """Close the file as it is."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _sync_file_range() -> Any:
    """Linux's call (man 2 sync_file_range); None elsewhere, also under a C library without it."""
    if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_long) != 8:
        return None
    try:
        call = ctypes.CDLL(None, use_errno=True).sync_file_range
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return call


_SYNC_FILE_RANGE_WRITE = 2
_begin = _sync_file_range()


def _begin_writing(descriptor: int, offset: int, length: int) -> None:
    """Let the disk begin with a part of a file, so that the sync at the end finds little left. Only a hint."""
    if _begin is not None:
        _begin(descriptor, offset, length, _SYNC_FILE_RANGE_WRITE)
