# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What is read or written through something else: compressed files, archives, mappings of memory, csv."""

from __future__ import annotations

import gc
import os
import stat
import sys
from typing import Any, Callable, Dict, Optional, Tuple

from ..context import current, reaches_out
from ..regions import address_of
from .base import CannotRevive, Help, Reviver


def _stamp(path: str) -> Tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def unchanged(kind: str, path: str, saved: Any) -> Any:
    """None where a file is as it was, else the tombstone that says what became of it."""
    try:
        if _stamp(path) != tuple(saved):
            return current().tombstone(kind, "its file was changed since the pause")
    except OSError as error:
        return current().tombstone(kind, "its file could not be found again: %s" % (error.strerror or error))
    return None


def file_behind(name: Any) -> Tuple[str, Tuple[int, int]]:
    """Absolute path and (size, change time in nanoseconds) of a file that is read by name. Raises CannotRevive."""
    if not isinstance(name, (str, bytes, os.PathLike)) or not name:
        raise CannotRevive("it has no file of its own")
    path = os.path.abspath(os.fsdecode(os.fspath(name)))
    try:
        status = os.stat(path)
    except OSError as error:
        raise CannotRevive("its file could not be found: %s" % error.strerror) from None
    if not stat.S_ISREG(status.st_mode):
        raise CannotRevive("it is not read from a plain file")
    return path, (status.st_size, status.st_mtime_ns)


def make_closed(module: str) -> Any:
    """What is closed already: it says so to whoever uses it."""
    import importlib
    import io

    kind = {"gzip": "GzipFile", "bz2": "BZ2File", "lzma": "LZMAFile", "tarfile": "TarFile", "mmap": "mmap"}[module]
    make = getattr(importlib.import_module(module), kind)
    if module == "mmap":
        made = make(-1, 1)
    elif module == "tarfile":
        made = make(fileobj=io.BytesIO(), mode="w")
    else:
        made = make(io.BytesIO(), "rb") if module != "gzip" else make(fileobj=io.BytesIO(), mode="rb")
    made.close()
    return made


# --- compressed files ----------------------------------------------------------------------------------------------

_COMPRESSED = {"gzip.GzipFile": "gzip", "bz2.BZ2File": "bz2", "lzma.LZMAFile": "lzma"}


class _Compressed(Reviver):
    types = tuple(_COMPRESSED)

    def describe(self, value: Any) -> Optional[str]:
        if value.closed:
            return None
        if not value.readable():
            raise CannotRevive("a compressed file cannot be continued in the middle; close it, then pause")
        file_behind(_name_of(value))
        return "opened again at the same position"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        self.describe(value)
        if value.closed:
            return make_closed, (type(value).__module__,)
        path, saved = file_behind(_name_of(value))
        return open_compressed, (type(value).__module__, path, value.tell(), saved)


def _name_of(value: Any) -> Any:
    return getattr(value, "name", None) or getattr(getattr(value, "_fp", None), "name", None)


@reaches_out
def open_compressed(module: str, path: str, position: int, saved: Any) -> Any:
    """A compressed file, read up to where it was."""
    import importlib

    changed = unchanged(module, path, saved)
    if changed is not None:
        return changed
    made = importlib.import_module(module).open(path, "rb")
    made.seek(position)
    return made


class _Zip(Reviver):
    types = ("zipfile.ZipFile",)

    def describe(self, value: Any) -> Optional[str]:
        if value.mode != "r" or value.fp is None:
            return None
        file_behind(value.filename)
        return "opened again"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        if value.mode != "r" or value.fp is None:
            recipe: Tuple[Any, ...] = value.__reduce_ex__(5)
            return recipe
        path, saved = file_behind(value.filename)
        return open_archive, ("zipfile", path, saved, value.filename), (value.pwd,), None, None, set_password


def set_password(archive: Any, state: Any) -> None:
    """What was set with ``setpassword``."""
    archive.pwd = state[0]


class _Tar(Reviver):
    types = ("tarfile.TarFile",)

    def describe(self, value: Any) -> Optional[str]:
        if value.closed:
            return None
        if value.mode != "r":
            raise CannotRevive("an archive that is being written cannot be continued; close it, then pause")
        file_behind(value.name)
        return "opened again"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        self.describe(value)
        if value.closed:
            return make_closed, ("tarfile",)
        path, saved = file_behind(value.name)
        return open_archive, ("tarfile", path, saved, value.name)


@reaches_out
def open_archive(module: str, path: str, saved: Any, name: Any) -> Any:
    """An archive for reading."""
    import importlib

    changed = unchanged(module, path, saved)
    if changed is not None:
        return changed
    if module == "zipfile":
        made = importlib.import_module(module).ZipFile(path)
        made.filename = name
        return made
    return importlib.import_module(module).open(path)


# --- mappings of memory --------------------------------------------------------------------------------------------


class _Mapping(Reviver):
    types = ("mmap.mmap",)

    def describe(self, value: Any) -> Optional[str]:
        if value.closed:
            return None
        path, _, private = _mapped_file(value)
        if path is None:
            return "made again with the same content; other processes do not see it"
        if private:
            return "made again with the same content; it is no longer a mapping of its file"
        file_behind(path)
        return "mapped again"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        import pickle

        self.describe(value)
        if value.closed:
            return make_closed, ("mmap",)
        path, offset, private = _mapped_file(value)
        view = memoryview(value)
        if path is None or private:
            return make_mapping, (pickle.PickleBuffer(view.toreadonly()), len(value), value.tell(), view.readonly)
        if not view.readonly:
            value.flush()
        _, saved = file_behind(path)
        return map_file, (path, len(value), offset, value.tell(), view.readonly, saved)


def _mapped_file(value: Any) -> Tuple[Optional[str], int, bool]:
    """Path of the file (None for memory only), offset in it (bytes), and whether writing stays private.

    Source: proc_pid_maps(5). Raises CannotRevive where the system does not tell.
    """
    address = address_of(memoryview(value))
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                parts = line.rstrip("\n").split(None, 5)
                low, high = (int(part, 16) for part in parts[0].split("-"))
                if low <= address < high:
                    path = parts[5] if len(parts) > 5 else ""
                    known = path.startswith("/") and not path.endswith(" (deleted)")
                    return (path if known else None), int(parts[2], 16) + address - low, parts[1][3] == "p"
    except (OSError, ValueError):
        pass
    raise CannotRevive("what a memory mapping maps is not known on this system")


def make_mapping(data: Any, length: int, position: int, readonly: bool) -> Any:
    """Memory of this process with the same content."""
    import mmap

    made = mmap.mmap(-1, length)
    made[:] = bytes(data) if length < 1 << 20 else data
    made.seek(position)
    return made


@reaches_out
def map_file(path: str, length: int, offset: int, position: int, readonly: bool, saved: Any) -> Any:
    """The file mapped again."""
    import mmap

    changed = unchanged("mmap.mmap", path, saved)
    if changed is not None:
        return changed
    with open(path, "rb" if readonly else "r+b") as stream:
        access = mmap.ACCESS_READ if readonly else mmap.ACCESS_WRITE
        made = mmap.mmap(stream.fileno(), length, access=access, offset=offset)
    made.seek(position)
    return made


# --- csv -----------------------------------------------------------------------------------------------------------


class _CsvReader(Reviver):
    types = ("_csv.reader",)

    def describe(self, value: Any) -> Optional[str]:
        _inside_csv(value)
        return "made again over the same lines; its count of lines begins anew" if value.line_num else None

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        source, dialect = _inside_csv(value)
        return make_csv, ("reader", source, _dialect(dialect))


class _CsvWriter(Reviver):
    types = ("_csv.writer",)

    def describe(self, value: Any) -> Optional[str]:
        _inside_csv(value)
        return None

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        write, dialect = _inside_csv(value)
        return make_csv, ("writer", write, _dialect(dialect))


def _inside_csv(value: Any) -> Tuple[Any, Any]:
    """The iterator that is read, or the method that writes, and the dialect. Raises CannotRevive."""
    own = (type(value), value.dialect, getattr(sys.modules.get("_csv"), "Error", None))
    inside = [item for item in gc.get_referents(value) if not any(item is one for one in own)]
    inside = [item for item in inside if callable(item) or hasattr(type(item), "__next__")]
    if len(inside) != 1:
        raise CannotRevive("what it reads or writes is not known")
    return inside[0], value.dialect


def _dialect(dialect: Any) -> Dict[str, Any]:
    names = ("delimiter", "doublequote", "escapechar", "lineterminator", "quotechar", "quoting", "skipinitialspace")
    return {name: getattr(dialect, name) for name in (*names, "strict")}


class _Writes:
    """What ``csv.writer`` writes to: something with a method ``write``."""

    def __init__(self, write: Callable[[str], Any]) -> None:
        self.write = write


def make_csv(kind: str, inside: Any, dialect: Dict[str, Any]) -> Any:
    """A reader over an iterator, or a writer through a method."""
    import csv

    if kind == "reader":
        return csv.reader(inside, **dialect)
    return csv.writer(_Writes(inside), **dialect)
