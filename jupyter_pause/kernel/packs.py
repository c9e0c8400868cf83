# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Writes memory regions to a pack file, in chunks, and refers to chunks that lie on the disk already."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from .directfile import DirectFile, aligned
from .format import CHUNK, PAGE
from .regions import address_of
from .sharing import Shared

#: Regions from this size on (bytes) are mapped one by one and begin on a page; smaller ones are packed tightly.
LARGE = 1 << 20
#: Small regions begin at multiples of this, as vector instructions like it.
ALIGN = 64
#: Threads that copy and hash, blocks that are copied, hashed or written at a time, and blocks in one write.
HASHERS, BLOCKS, AT_ONCE = 2, 12, 4


def alignment(size: int) -> int:
    """Where in a file a region of `size` bytes may begin: at multiples of this."""
    return PAGE if size >= LARGE else ALIGN


class _Block:
    """Memory of our own for one chunk, and the chunk that is in it."""

    __slots__ = ("address", "align", "chunk", "digest", "source", "view")

    def __init__(self) -> None:
        memory = aligned(CHUNK)
        self.view = memoryview(memory)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.chunk: Dict[str, Any] = {}
        self.align = ALIGN
        self.digest: Any = None
        #: What keeps the person's memory alive until it was copied.
        self.source: Any = None

    @property
    def filled(self) -> memoryview:
        """The chunk's bytes."""
        return self.view[: self.chunk["bytes"]]

    def take(self, address: int) -> str:
        """Copy the chunk from `address` and hash the copy; the interpreter is free meanwhile."""
        ctypes.memmove(self.address, address, self.chunk["bytes"])
        return sha256(self.filled)


class PackWriter:
    """Writes regions to one new pack file.

    Each chunk is copied once into one of a few blocks of our own, hashed in threads and written from there, unless a
    chunk with the same content lies on the disk already. So a thread of the person's that changes the memory meanwhile
    cannot make hash and bytes disagree, and extra memory stays at ``BLOCKS`` chunks. Memory that is an unwritten
    mapping of a shared pack is neither copied nor hashed.
    """

    def __init__(self, path: str, shared: Optional[Shared] = None) -> None:
        self._path = path
        self._file = DirectFile(path)
        self._shared = shared or Shared(os.path.dirname(path))
        self._hashers = ThreadPoolExecutor(HASHERS, "jupyter-pause-hash")
        self._writer = ThreadPoolExecutor(1, "jupyter-pause-write")
        self._free: List[_Block] = []
        self._made = 0
        self._hashing: Deque[_Block] = deque()
        self._batch: List[_Block] = []
        self._writing: Deque[Tuple["Future[None]", List[_Block]]] = deque()
        self._offset = 0
        self._regions: List[Dict[str, Any]] = []
        self._closed = False

    def region(self, pieces: List[memoryview], on_bytes: Callable[[int], None]) -> Dict[str, Any]:
        """Append one region, given as pieces of memory that follow each other. Raises OSError.

        Returns its manifest entry, whose places and hashes are complete after `close`.
        """
        total = sum(len(piece) for piece in pieces)
        region: Dict[str, Any] = {"bytes": total, "chunks": []}
        self._regions.append(region)
        address = address_of(pieces[0]) if total else 0
        for start in range(0, total, CHUNK):
            length = min(CHUNK, total - start)
            known = self._shared.unwritten(address + start, length)
            chunk = {"pack": 0, "offset": 0, "bytes": length, "sha256": ""} if known is None else dict(known)
            region["chunks"].append(chunk)
            if known is None:
                block = self._block()
                block.chunk, block.align, block.source = chunk, alignment(total), pieces
                block.digest = self._hashers.submit(block.take, address + start)
                self._hashing.append(block)
            on_bytes(length)
        return region

    def _block(self) -> _Block:
        if not self._free and self._made < BLOCKS:
            self._made += 1
            return _Block()
        while not self._free:
            if self._hashing:
                self._settle()
            elif self._batch:
                self._write_batch()
            if not self._free and self._writing and (len(self._writing) > 1 or not self._hashing):
                self._written()
        return self._free.pop()

    def _settle(self) -> None:
        """Find or make the place of the oldest chunk that is hashed."""
        block = self._hashing.popleft()
        chunk = block.chunk
        chunk["sha256"], block.source = block.digest.result(), None
        known = self._shared.same(chunk["sha256"], chunk["bytes"], block.align)
        if known is not None:
            chunk.update(pack=known["pack"], offset=known["offset"])
            self._free.append(block)
            return
        self._offset += -self._offset % block.align
        chunk["offset"] = self._offset
        self._offset += chunk["bytes"]
        self._shared.add(chunk)
        self._batch.append(block)
        if len(self._batch) == AT_ONCE:
            self._write_batch()

    def _write_batch(self) -> None:
        batch, self._batch = self._batch, []
        self._writing.append((self._writer.submit(self._write, batch), batch))

    def _write(self, batch: List[_Block]) -> None:
        """On the writing thread: whole blocks that follow each other in one go, others one by one."""
        whole: List[memoryview] = []
        for block in batch:
            if whole and len(block.filled) < CHUNK:
                self._file.append_blocks(whole)
                whole = []
            if not whole:
                self._file.pad(block.align)
            if len(block.filled) == CHUNK:
                whole.append(block.filled)
            else:
                self._file.append(block.filled)
        if whole:
            self._file.append_blocks(whole)

    def _written(self) -> None:
        """Wait for the oldest write. Raises OSError."""
        job, batch = self._writing.popleft()
        job.result()
        self._free += batch

    def close(self, sync: bool) -> List[Dict[str, Any]]:
        """Close the file; with `sync` after everything has its place and is durable. Returns the manifest's `packs`.

        Without `sync` the checkpoint is given up: nothing is shared any more. Raises OSError.
        """
        if self._closed:
            return []
        self._closed = True
        finished = False
        try:
            if not sync:
                return []
            while self._hashing:
                self._settle()
            if self._batch:
                self._write_batch()
            while self._writing:
                self._written()
            status = self._file.finish()
            mine = {"file": os.path.basename(self._path), "bytes": status.st_size, "modified": status.st_mtime_ns}
            packs = [mine, *self._shared.finish(self._regions)]
            finished = True
            return packs
        finally:
            if not finished:
                self._shared.drop()
            self._hashers.shutdown(wait=True)
            self._writer.shutdown(wait=True)
            self._file.close()


def sha256(data: Any) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()
