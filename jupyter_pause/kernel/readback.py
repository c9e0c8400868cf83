# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Reads a checkpoint's bytes again and compares them with their hashes. Nothing is ever unpickled here."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from .directfile import DIRECT, SECTOR, aligned
from .format import CHUNK, FRAMES, MANIFEST, PACK_NAME, Cancelled, LayoutError, Progress
from .ownerfiles import stat_plain

#: Threads that read and hash: more than cores, so that the disk works while they hash.
READERS = min(4, 2 * (os.cpu_count() or 1))

#: (pack number, offset, bytes, sha256) of a chunk.
Chunk = Tuple[int, int, int, str]


class _Piece:
    """Bytes of one file with the hash that they must have, and the regions that they belong to (frames: none)."""

    __slots__ = ("length", "name", "offset", "regions", "sha256")

    def __init__(self, name: str, offset: int, length: int, sha256: str) -> None:
        self.name = name
        self.offset = offset
        self.length = length
        self.sha256 = sha256
        self.regions: List[int] = []


def check_sizes(folder: str, manifest: Dict[str, Any]) -> None:
    """Every file is there, is a plain file, and has the size that the manifest says. Raises LayoutError."""
    frames = manifest["frames"]
    wanted = [(FRAMES, sum(int(frame["stored"]) for frame in frames))]
    wanted += [(str(pack["file"]), int(pack["bytes"])) for pack in manifest["packs"]]
    for name, size in wanted:
        if not PACK_NAME.match(name):
            raise LayoutError("damaged", file=MANIFEST)
        try:
            found = stat_plain(os.path.join(folder, name))
        except OSError:
            raise LayoutError("incomplete", file=name) from None
        if found is None or found.st_size != size:
            raise LayoutError("damaged", file=name)


def chunks_of(manifest: Dict[str, Any]) -> Iterator[Tuple[int, Chunk]]:
    """Every chunk, with the number of its region."""
    for number, region in enumerate(manifest["regions"]):
        for chunk in region["chunks"]:
            yield number, (int(chunk["pack"]), int(chunk["offset"]), int(chunk["bytes"]), str(chunk["sha256"]))


def _pieces(manifest: Dict[str, Any], buffers: bool, trusted: Set[Chunk]) -> List[_Piece]:
    """What is to be read, each byte once, in the order in which it lies in the files."""
    found = [
        _Piece(FRAMES, int(frame["offset"]), int(frame["stored"]), str(frame["sha256"])) for frame in manifest["frames"]
    ]
    packs = [str(pack["file"]) for pack in manifest["packs"]]
    once: Dict[Chunk, _Piece] = {}
    for number, chunk in chunks_of(manifest) if buffers else ():
        if chunk in trusted:
            continue
        if chunk not in once:
            once[chunk] = _Piece(packs[chunk[0]], *chunk[1:])
        once[chunk].regions.append(number)
    return found + sorted(once.values(), key=lambda piece: (piece.name, piece.offset))


def hash_everything(
    folder: str,
    manifest: Dict[str, Any],
    *,
    buffers: bool = True,
    from_disk: bool = False,
    trusted: Optional[Set[Chunk]] = None,
    progress: Optional[Progress] = None,
    cancelled: Optional[Cancelled] = None,
) -> List[int]:
    """Compare every frame, and every chunk where `buffers`, with its hash; returns the numbers of damaged regions.

    Chunks in `trusted` are not read. With `from_disk` the page cache is dropped first. Raises LayoutError damaged for a
    frame, cancelled, incomplete.
    """
    work = _Work(folder, _pieces(manifest, buffers, trusted or set()), from_disk, progress, cancelled)
    readers = min(READERS, max(len(work.pieces), 1))
    try:
        if readers == 1:
            work.run()
        else:
            with ThreadPoolExecutor(readers, "jupyter-pause-read") as pool:
                for future in [pool.submit(work.run) for _ in range(readers)]:
                    future.result()
    except OSError:
        raise LayoutError("damaged") from None
    finally:
        work.close()
    return sorted(work.damaged)


class _Work:
    """The pieces still to be read; several threads take from it."""

    def __init__(
        self,
        folder: str,
        pieces: List[_Piece],
        from_disk: bool,
        progress: Optional[Progress],
        cancelled: Optional[Cancelled],
    ) -> None:
        self.pieces = pieces
        self.damaged: Set[int] = set()
        self._folder = folder
        self._from_disk = from_disk
        self._progress = progress
        self._cancelled = cancelled
        self._total = sum(piece.length for piece in pieces)
        self._done = 0
        self._left = iter(pieces)
        self._files: Dict[str, _File] = {}
        self._lock = threading.Lock()
        self._stopped = False

    def run(self) -> None:
        """Take and check pieces until none is left. Raises LayoutError, OSError."""
        block = memoryview(aligned(CHUNK))
        try:
            while True:
                taken = self._take()
                if taken is None:
                    return
                piece, file = taken
                self._checked(piece, file.sha256(piece.offset, piece.length, block) == piece.sha256)
        except BaseException:
            self._stopped = True
            raise

    def _take(self) -> Optional[Tuple[_Piece, "_File"]]:
        with self._lock:
            piece = None if self._stopped else next(self._left, None)
            if piece is None:
                return None
            if self._cancelled is not None and self._cancelled():
                raise LayoutError("cancelled")
            if piece.name not in self._files:
                self._files[piece.name] = _File(os.path.join(self._folder, piece.name), self._from_disk)
            return piece, self._files[piece.name]

    def _checked(self, piece: _Piece, right: bool) -> None:
        with self._lock:
            if not right and piece.name == FRAMES:
                raise LayoutError("damaged", file=FRAMES)
            if not right:
                self.damaged.update(piece.regions)
            self._done += piece.length
            if self._progress is not None:
                self._progress(self._done, self._total)

    def close(self) -> None:
        for file in self._files.values():
            file.close()


class _File:
    """One file, read at any place by several threads; `from_disk` goes past the cache, or empties it first."""

    def __init__(self, path: str, from_disk: bool) -> None:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        self._path = path
        self._flags = flags
        self._lock = threading.Lock()
        self._descriptor = -1
        self._refused = -1
        self._direct = bool(from_disk and DIRECT and hasattr(os, "preadv"))
        if self._direct:
            try:
                self._descriptor = os.open(path, flags | DIRECT)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self._direct = False
        if not self._direct:
            self._through_the_cache(empty=from_disk)

    def _through_the_cache(self, empty: bool) -> None:
        self._refused = self._descriptor  # another thread may be reading from it just now
        self._descriptor = os.open(self._path, self._flags)
        advise = getattr(os, "posix_fadvise", None)
        if advise is not None:
            try:
                if empty:
                    advise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                advise(self._descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
            except OSError:
                return

    def sha256(self, offset: int, length: int, block: memoryview) -> str:
        """Hex digest of a part, empty where the file ends before; `block` begins at a page. Raises OSError."""
        digest = hashlib.sha256()
        while length > 0:
            skip = offset % SECTOR if self._direct else 0
            wanted = min(length + skip, len(block))
            got = self._read(block[: wanted + -wanted % SECTOR] if self._direct else block[:wanted], offset - skip)
            got = min(got, wanted) - skip
            if got <= 0:
                return ""
            digest.update(block[skip : skip + got])
            length -= got
            offset += got
        return digest.hexdigest()

    def _read(self, view: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return self._preadv(view, offset)
        with self._lock:
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            data = os.read(self._descriptor, len(view))
        view[: len(data)] = data
        return len(data)

    def _preadv(self, view: memoryview, offset: int) -> int:
        used = self._descriptor
        try:
            return int(os.preadv(used, [view], offset))
        except OSError as error:
            if error.errno != errno.EINVAL or not self._give_up_direct(used):
                raise
        return int(os.preadv(self._descriptor, [view], offset))

    def _give_up_direct(self, refusing: int) -> bool:
        """A file system took the flag and refuses now; False where it was not the flag that it refused."""
        with self._lock:
            if refusing != self._descriptor:
                return True  # another thread has changed over while this one was being refused
            if not self._direct:
                return False
            self._through_the_cache(empty=True)
            self._direct = False
            return True

    def close(self) -> None:
        for descriptor in (self._descriptor, self._refused):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._refused = -1


def variables_of(manifest: Dict[str, Any], regions: List[int]) -> List[str]:
    """Names of the variables that use any of these regions."""
    wanted = set(regions)
    return [str(v["name"]) for v in manifest["variables"] if wanted.intersection(v.get("regions") or ())]
