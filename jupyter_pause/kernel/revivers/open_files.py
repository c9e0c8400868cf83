# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Open files: opened again at their position, never emptied."""

from __future__ import annotations

import io
import os
import stat
import sys
from typing import Any, Dict, Optional, Tuple

from .. import recipes
from ..context import reaches_out
from .base import CannotRevive, Help, Reviver


class _File(Reviver):
    types = ("_io.TextIOWrapper", "_io.BufferedReader", "_io.BufferedWriter", "_io.BufferedRandom", "_io.FileIO")

    def describe(self, value: Any) -> Optional[str]:
        if value is sys.stdout or value is sys.stderr or value is sys.stdin or value.closed:
            return None
        if _inner(value) is not None:
            return "opened again at the same position"
        path, status = self._facts(value)
        now = os.stat(path)
        if (now.st_dev, now.st_ino) != (status.st_dev, status.st_ino):
            raise CannotRevive("another file has taken the place of the one that is open")
        return "opened again at the same position"

    def _facts(self, value: Any) -> Tuple[str, os.stat_result]:
        raw = _raw_file(value)
        try:
            descriptor = raw.fileno()
            status = os.fstat(descriptor)
        except (OSError, ValueError):
            raise CannotRevive("it has no file behind it") from None
        if not stat.S_ISREG(status.st_mode):
            raise CannotRevive("it is open on a pipe, a device or a connection, not on a file")
        if status.st_nlink == 0:
            raise CannotRevive("the file behind it was deleted")
        path = _path_of(raw, descriptor)
        if not os.path.isabs(path) or not os.path.exists(path):
            raise CannotRevive("the file behind it has no name any more")
        return path, status

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        for name in ("stdin", "stdout", "stderr"):
            if value is getattr(sys, name):
                return recipes.live_stream, (name,)
        kind = type(value).__name__
        if value.closed:
            return recipes.make_closed_file, (kind,), _names_of(value), None, None, set_names
        if _inner(value) is not None:
            return self._wrapped(value)
        self.describe(value)
        raw = _raw_file(value)
        position = _position(value)
        if raw.writable():
            value.flush()
        path, status = self._facts(value)
        text = None
        if kind == "TextIOWrapper":
            text = (value.encoding, value.errors, value.line_buffering, _newline_of(value, path))
        arguments = (kind, path, _mode(raw), position, text, (status.st_size, status.st_mtime_ns))
        return recipes.open_file, arguments, _names_of(value), None, None, set_names

    def _wrapped(self, value: Any) -> Tuple[Any, ...]:
        """A text file over something that is no plain file, but can be made again: a compressed file, bytes."""
        value.flush() if value.writable() else None
        arguments = (value.buffer, value.encoding, value.errors, value.line_buffering, value.tell())
        return wrap_text, arguments


def _inner(value: Any) -> Any:
    """What a text file lies on where that is no file of the system's; else None."""
    if type(value) is not io.TextIOWrapper:
        return None
    inner = value.buffer
    return None if type(inner) in (io.BufferedReader, io.BufferedWriter, io.BufferedRandom) else inner


@reaches_out  # what it lies on may do so
def wrap_text(inner: Any, encoding: str, errors: str, line_buffering: bool, position: int) -> Any:
    """A text file over something that was made again."""
    made = io.TextIOWrapper(inner, encoding, errors, line_buffering=line_buffering)
    made.seek(position)
    return made


def _names_of(value: Any) -> Dict[str, Any]:
    """The name and mode that it was opened with, as far as they are plain text."""
    found = {}
    for name in ("name", "mode"):
        try:
            item = getattr(value, name)
        except Exception:
            continue
        if isinstance(item, (str, bytes)):
            found[name] = item
    return found


def set_names(made: Any, names: Dict[str, Any]) -> None:
    """A person sees the name and the mode that they gave; what lies below was opened by its full path."""
    if not isinstance(made, io.IOBase):
        return  # a tombstone
    raw: Any = made
    while hasattr(raw, "buffer") or hasattr(raw, "raw"):
        raw = raw.buffer if hasattr(raw, "buffer") else raw.raw
    if "name" in names:
        raw.name = names["name"]
    if "mode" in names and isinstance(made, io.TextIOWrapper):
        made.mode = names["mode"]  # type: ignore[misc]


#: A file's beginning is looked at up to here (bytes) for line ends.
_BEGINNING = 64 * 1024


def _newline_of(value: Any, path: str) -> Optional[str]:
    """ "" where line ends are not translated while reading; None otherwise.

    A text file does not tell: what it gives for line ends that are in the file does.
    """
    if not (value.readable() and value.seekable()):
        return None
    try:
        with open(path, "rb") as again:
            if b"\r" not in again.read(_BEGINNING):
                return None
        position = value.tell()
        value.seek(0)
        try:
            return "" if "\r" in value.read(_BEGINNING) else None
        finally:
            value.seek(position)
    except (OSError, ValueError):
        return None


def _raw_file(value: Any) -> Any:
    if isinstance(value, io.TextIOWrapper):
        value = value.buffer
    if type(value) in (io.BufferedReader, io.BufferedWriter, io.BufferedRandom):
        value = value.raw
    if type(value) is not io.FileIO:
        raise CannotRevive("it is not a plain file")
    return value


def _path_of(raw: Any, descriptor: int) -> str:
    """The absolute path. The system knows it even after a change of directory or a rename."""
    try:
        return os.readlink("/proc/self/fd/%d" % descriptor)
    except OSError:
        pass
    if isinstance(raw.name, int):
        raise CannotRevive("it was opened from a descriptor, so the file's name is not known")
    return os.path.abspath(os.fsdecode(raw.name))


def _mode(raw: Any) -> str:
    """How to open it again: never in a mode that empties the file."""
    if "a" in raw.mode:
        return "a+" if raw.readable() else "a"
    return "r+" if raw.writable() else "r"


def _position(value: Any) -> int:
    try:
        return int(value.tell())
    except (OSError, ValueError):
        pass
    if not isinstance(value, io.TextIOWrapper):
        raise CannotRevive("its position cannot be read")
    return _position_inside_iteration(value)


def _position_inside_iteration(value: Any) -> int:
    """`tell` is off while a text file is read by a for loop: find the position by what is left to read."""
    size = os.fstat(value.fileno()).st_size
    if size - value.buffer.tell() > 64 * 1024 * 1024:
        raise CannotRevive("its position inside a for loop cannot be read")
    rest = value.read()
    for ending in ("\n", "\r\n"):
        data = rest.replace("\n", ending).encode(value.encoding, value.errors)
        start = size - len(data)
        with open(value.fileno(), "rb", closefd=False, buffering=0) as again:
            again.seek(start)
            if start >= 0 and again.read(len(data) + 1) == data:
                value.seek(start)
                return int(start)
    raise CannotRevive("its position inside a for loop cannot be read")
