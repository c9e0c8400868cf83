# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Owner-only files: private from creation, never through a symbolic link, written completely or not at all."""

from __future__ import annotations

import errno
import os
import stat
import time
from typing import Any, Optional


def open_private(path: str, flags: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL) -> int:
    """A descriptor of a new owner-only file. Never follows a symbolic link, never opens an existing file."""
    return os.open(
        path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o600
    )


def write_all(descriptor: int, data: Any) -> None:
    """Write every byte of a buffer. Raises OSError."""
    view = memoryview(data).cast("B")
    while view:
        view = view[os.write(descriptor, view) :]


def fsync_folder(path: str) -> None:
    """Make names in a folder durable. Systems that cannot sync folders (Windows) do it themselves."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        if os.name == "nt":
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def write_private(path: str, data: bytes) -> None:
    """Write an owner-only file completely or not at all: temporary name, sync, rename. Raises OSError."""
    temporary = "%s.%d.%x.tmp" % (path, os.getpid(), time.monotonic_ns())
    descriptor = open_private(temporary)
    try:
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        remove_quietly(temporary)
        raise
    fsync_folder(os.path.dirname(path))


def remove_quietly(*paths: str) -> None:
    """Delete files that may not be there."""
    for path in paths:
        try:
            os.unlink(path)
        except OSError:
            pass


def read_file(path: str, limit: int = 1 << 31) -> bytes:
    """A regular file's bytes; symbolic links are refused. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return stream.read(limit)


def make_private_dir(path: str) -> None:
    """Make a folder, and those above it that are missing, for the owner only. Raises OSError."""
    parent = os.path.dirname(path)
    if parent and parent != path and not os.path.isdir(parent):
        make_private_dir(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def stat_plain(path: str) -> Optional[os.stat_result]:
    """Status of a plain file; None for anything else, also a symbolic link. Raises OSError where there is nothing."""
    status = os.lstat(path)
    return status if stat.S_ISREG(status.st_mode) else None
