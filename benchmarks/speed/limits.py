# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What the machine can do at best: its disk, its memory, its hash. Times are seconds."""

from __future__ import annotations

import hashlib
import mmap
import os
import random
import time
from pathlib import Path
from typing import Any

BLOCK = 4 << 20
PAGE = 4096


def touch(view: memoryview) -> int:
    """Read one byte of every page."""
    return sum(view[start] for start in range(0, len(view), PAGE)) if len(view) else 0


def forget(path: Path) -> None:
    """Drop a file's pages from the page cache (they must be on disk)."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def measure(folder: Path, size: int) -> dict[str, Any]:
    """Write and sync, read cold, read warm, map and touch cold, copy, hash: each of `size` bytes."""
    path = folder / "raw.bin"
    view = memoryview(mmap.mmap(-1, size))
    numbers = random.Random(1)  # a disk may notice equal blocks, so no two are
    for start in range(0, size, BLOCK):
        view[start : start + BLOCK] = numbers.randbytes(min(BLOCK, size - start))
    direct = _write_past_the_cache(path, view)
    return {
        "direct": direct,
        "write": _write(path, view),
        "read": _cold(path, lambda: _read(path)),
        "warm": _read(path),
        "touch": _cold(path, lambda: _map(path)),
        "copy": _copy(view),
        "hash": _hash(view),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def _write(path: Path, view: memoryview) -> float:
    path.unlink(missing_ok=True)
    began = time.perf_counter()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    rest = view
    while rest:
        rest = rest[os.write(descriptor, rest[: 64 << 20]) :]
    os.fsync(descriptor)
    os.close(descriptor)
    return time.perf_counter() - began


def _write_past_the_cache(path: Path, view: memoryview) -> float | None:
    """Whole blocks only; None where the file system has no direct writes."""
    path.unlink(missing_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_DIRECT", 0), 0o600)
        began = time.perf_counter()
        for start in range(0, len(view) // BLOCK * BLOCK, 4 * BLOCK):
            os.write(descriptor, view[start : min(start + 4 * BLOCK, len(view) // BLOCK * BLOCK)])
        os.fsync(descriptor)
        seconds = time.perf_counter() - began
        os.close(descriptor)
    except OSError:
        return None
    return seconds if len(view) >= BLOCK else None


def _cold(path: Path, work: Any) -> float:
    forget(path)
    seconds: float = work()
    return seconds


def _read(path: Path) -> float:
    block = bytearray(BLOCK)
    began = time.perf_counter()
    with path.open("rb", buffering=0) as stream:
        while stream.readinto(block):
            continue
    return time.perf_counter() - began


def _map(path: Path) -> float:
    began = time.perf_counter()
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        touch(memoryview(mapped))
    return time.perf_counter() - began


def _copy(view: memoryview) -> float:
    target = bytearray(min(len(view), 256 << 20))
    rounds = max(len(view) // len(target), 1)
    began = time.perf_counter()
    for number in range(rounds):
        target[:] = view[number * len(target) : (number + 1) * len(target)]
    return (time.perf_counter() - began) * len(view) / (rounds * len(target))


def _hash(view: memoryview) -> float:
    began = time.perf_counter()
    for start in range(0, len(view), BLOCK):
        hashlib.sha256(view[start : start + BLOCK]).digest()
    return time.perf_counter() - began
