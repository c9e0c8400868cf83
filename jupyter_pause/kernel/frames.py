# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The frames of a checkpoint, ``frames.bin``: appended one after the other, read at random."""

from __future__ import annotations

import hashlib
import hmac
import mmap
import os
import time
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Deque, Dict, List, Optional

from .directfile import DirectFile
from .format import CHUNK, FRAMES, LayoutError

#: Larger frames are never compressed: the disk is faster than the compressor.
COMPRESS_BELOW = 4 * 1024 * 1024
#: Frames from this size on are compressed only if a sample of this size shrinks to `PAYS` of itself.
SAMPLE = 32 * 1024
PAYS = 0.7
#: Seconds that compressing may take in one checkpoint.
COMPRESS_SECONDS = 0.5
#: Bytes handed to the writing thread at once, and how many such pieces may wait for it.
PIECE, WAITING = 1 << 20, 8


class FrameWriter:
    """Appends frames to ``frames.bin``. A frame is opened, fed by a pickler through `write`, and closed.

    Compressing, hashing and writing happen on a thread beside the pickler. `on_bytes` is called with the number of
    bytes fed since the last call; it may raise to stop the writing.
    """

    def __init__(self, path: str, on_bytes: Optional[Callable[[int], None]] = None) -> None:
        self._file = DirectFile(path)
        self._on_bytes = on_bytes
        #: Manifest entries; complete after `close`.
        self.frames: List[Dict[str, Any]] = []
        self._thread = ThreadPoolExecutor(1, "jupyter-pause-frames")
        self._jobs: Deque["Future[None]"] = deque()
        self._offset = 0
        self._closed = False
        self._compressing = 0.0
        self._begin()

    def _begin(self) -> None:
        self._held: List[bytes] = []
        self._held_bytes = 0
        self._fed = 0
        self._told = 0
        self._streaming = False
        self._frame: Dict[str, Any] = {"offset": 0, "stored": 0, "bytes": 0, "encoding": "plain", "sha256": ""}
        self._digest = hashlib.sha256()

    @property
    def size(self) -> int:
        """Bytes in the file; complete after `close`."""
        return self._offset

    def write(self, data: Any) -> int:
        """What the pickler calls; takes any buffer. Raises OSError, also one of earlier bytes."""
        length = len(data) if isinstance(data, (bytes, bytearray)) else memoryview(data).nbytes
        self._fed += length
        if length >= PIECE:
            self._pass_on()
            self._large(memoryview(data).cast("B"))
        else:
            self._held.append(bytes(data))
            self._held_bytes += length
            if self._held_bytes > (PIECE if self._streaming else COMPRESS_BELOW):
                self._pass_on()
        if self._on_bytes is not None and self._fed - self._told >= 1 << 20:
            self._on_bytes(self._fed - self._told)
            self._told = self._fed
        return length

    def _pass_on(self) -> None:
        """Give what is held to the thread: this frame is too large to be compressed."""
        self._streaming = True
        if self._held:
            self._submit(self._append, self._held, self._digest)
            self._held, self._held_bytes = [], 0

    def _large(self, view: memoryview) -> None:
        """One large object, without a copy: it is the person's, so it must be written before we return."""
        for start in range(0, len(view), CHUNK):
            self._submit(self._append, [view[start : start + CHUNK]], self._digest)
        self._wait(0)

    def end(self) -> int:
        """Close the frame; returns its number."""
        self._frame["bytes"] = self._fed
        if self._streaming:
            self._pass_on()
            self._submit(self._finish, self._frame, self._digest)
        else:
            self._submit(self._whole, self._frame, self._held)
        if self._on_bytes is not None:
            self._on_bytes(self._fed - self._told)
        self.frames.append(self._frame)
        self._begin()
        return len(self.frames) - 1

    def add(self, data: bytes) -> int:
        """A whole frame at once; returns its number."""
        self.write(data)
        return self.end()

    def close(self, sync: bool) -> None:
        """Close the file, with `sync` after everything was written and made durable. Raises OSError."""
        if self._closed:
            return
        self._closed = True
        try:
            if sync:
                self._wait(0)
                self._file.finish()
        finally:
            for job in self._jobs:
                job.cancel()
            self._thread.shutdown(wait=True)
            self._file.close()

    # --- the thread ------------------------------------------------------------------------------------------------

    def _submit(self, function: Any, *arguments: Any) -> None:
        self._jobs.append(self._thread.submit(function, *arguments))
        self._wait(WAITING)

    def _wait(self, most: int) -> None:
        """Until at most so many jobs are left; raises what one of them raised."""
        while len(self._jobs) > most or (self._jobs and self._jobs[0].done()):
            self._jobs.popleft().result()

    def _append(self, parts: List[Any], digest: Any) -> None:
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        digest.update(data)
        self._file.append(data)

    def _finish(self, frame: Dict[str, Any], digest: Any) -> None:
        frame.update(offset=self._offset, stored=frame["bytes"], sha256=digest.hexdigest())
        self._offset += int(frame["stored"])

    def _whole(self, frame: Dict[str, Any], parts: List[bytes]) -> None:
        raw = b"".join(parts)
        packed = self._compressed(raw)
        if packed is not None:
            frame["encoding"] = "zlib"
        body = raw if packed is None else packed
        self._file.append(body)
        frame.update(offset=self._offset, stored=len(body), sha256=hashlib.sha256(body).hexdigest())
        self._offset += len(body)

    def _compressed(self, raw: bytes) -> Optional[bytes]:
        """The frame in fewer bytes, or None where that is not worth its time."""
        if len(raw) <= 512 or self._compressing > COMPRESS_SECONDS:
            return None
        began = time.perf_counter()
        try:
            if len(raw) > 2 * SAMPLE:
                middle = len(raw) // 2
                if len(zlib.compress(raw[middle : middle + SAMPLE], 1)) > SAMPLE * PAYS:
                    return None
            packed = zlib.compress(raw, 1)
        finally:
            self._compressing += time.perf_counter() - began
        return packed if len(packed) < len(raw) else None


class FrameReader:
    """Random access to the frames of a checkpoint. `check` hashes one, `read` gives its decoded bytes."""

    def __init__(self, folder: str, frames: List[Dict[str, Any]]) -> None:
        self._frames = frames
        self._map: Any = b""
        with open(os.path.join(folder, FRAMES), "rb") as stream:
            if os.fstat(stream.fileno()).st_size:
                self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self._view = memoryview(self._map)

    def stored(self, number: int) -> memoryview:
        """The bytes on disk."""
        frame = self._frames[number]
        return self._view[frame["offset"] : frame["offset"] + frame["stored"]]

    def check(self, number: int) -> bool:
        """Whether the bytes on disk are those that were signed."""
        frame = self._frames[number]
        return len(self.stored(number)) == frame["stored"] and hmac.compare_digest(
            hashlib.sha256(self.stored(number)).hexdigest(), str(frame["sha256"])
        )

    def read(self, number: int) -> Any:
        """The decoded frame (bytes or a view of the file). Raises LayoutError damaged."""
        frame = self._frames[number]
        if frame["encoding"] == "plain":
            return self.stored(number)
        if frame["encoding"] != "zlib":
            raise LayoutError("unsupported_format", encoding=frame["encoding"])
        try:
            data = zlib.decompress(self.stored(number), bufsize=max(int(frame["bytes"]), 64))
        except (zlib.error, ValueError):
            raise LayoutError("damaged", file=FRAMES) from None
        if len(data) != frame["bytes"]:
            raise LayoutError("damaged", file=FRAMES)
        return data

    def close(self) -> None:
        """Give the mapping back."""
        self._view.release()
        if not isinstance(self._map, bytes):
            try:
                self._map.close()
            except BufferError:
                pass  # a frame is still looked at; the mapping goes with it
