# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The files of a checkpoint: how they are written, hashed, signed, checked and put in their place.

Shared by the kernel and the server, so that both have one idea of what a complete checkpoint is. Sizes are bytes.
Nothing here ever unpickles. The format is described in docs/developers/checkpoint-format.md.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import mmap
import os
import re
import stat
import time
import zlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

FORMAT = 1
PAGE = 4096
CHUNK = 4 * 1024 * 1024
FRAMES = "frames.bin"
PACK = "pack.bin"
MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
RESULT = "result.json"
#: What the kernel imported, and its search path: for the process that tries the checkpoint out.
START = "start.json"
#: Files of the conversation between server and kernel: they never become part of a checkpoint.
SCRATCH = ("request.json", "progress.json", RESULT, "cancel", START)
#: Frames up to this size are compressed: they are mostly text-like and small; larger ones go straight to the disk,
#: which is faster than the compressor.
COMPRESS_BELOW = 4 * 1024 * 1024

ID = re.compile(r"[0-9a-f]{32}\Z")
_PACK_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")

Progress = Callable[[int, int], None]
Cancelled = Callable[[], bool]


class LayoutError(Exception):
    """A checkpoint cannot be written or is not what it should be. `code` is stable, `params` say more.

    Codes: incomplete, damaged, signature_mismatch, unsupported_format, no_space, unwritable, cancelled.
    """

    def __init__(self, code: str, **params: Any) -> None:
        self.code = code
        self.params = params
        super().__init__(code)


def is_id(value: object) -> bool:
    """Whether `value` is a checkpoint id: 32 lower-case hex digits, and so never a path."""
    return isinstance(value, str) and ID.match(value) is not None


def code_of_os_error(error: OSError) -> str:
    """The stable code for a failed write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "no_space"
    return "unwritable"


# --- small files ---------------------------------------------------------------------------------------------------


def canonical_json(value: Any) -> bytes:
    """Sorted keys, UTF-8, no spaces: the same value always gives the same bytes, which are what is signed."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


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


def read_secret(path: str) -> bytes:
    """The key of a checkpoint folder, from its ``secret`` file (hex). Raises OSError or ValueError."""
    secret = bytes.fromhex(read_file(path, 4096).decode("ascii").strip())
    if len(secret) < 32:
        raise ValueError("the secret file is too short")
    return secret


# --- signature -----------------------------------------------------------------------------------------------------


def sign(data: bytes, secret: bytes) -> str:
    """Hex HMAC-SHA256."""
    return hmac.new(secret, data, hashlib.sha256).hexdigest()


def is_signed(data: bytes, signature: str, secret: bytes) -> bool:
    """Whether `signature` belongs to `data`, compared in constant time."""
    return hmac.compare_digest(sign(data, secret).encode(), signature.strip().encode("ascii", "replace"))


# --- writing frames ------------------------------------------------------------------------------------------------


class FrameWriter:
    """Appends frames to ``frames.bin``. A frame is opened, fed by a pickler through `write`, and closed.

    `on_bytes` is called with the number of bytes fed since the last call; it may raise to stop the writing.
    """

    def __init__(self, path: str, on_bytes: Optional[Callable[[int], None]] = None) -> None:
        self._descriptor = open_private(path)
        self._offset = 0
        self._on_bytes = on_bytes
        self.frames: List[Dict[str, Any]] = []
        self._reset()

    def _reset(self) -> None:
        self._held: List[bytes] = []
        self._held_bytes = 0
        self._fed = 0
        self._told = 0
        self._digest: Any = None

    def write(self, data: Any) -> int:
        """What the pickler calls; takes any buffer."""
        length = len(data) if isinstance(data, (bytes, bytearray)) else memoryview(data).nbytes
        self._fed += length
        if self._digest is None and self._held_bytes + length <= COMPRESS_BELOW:
            self._held.append(bytes(data))
            self._held_bytes += length
        else:
            self._stream(data)
        if self._on_bytes is not None and self._fed - self._told >= 1 << 20:
            self._on_bytes(self._fed - self._told)
            self._told = self._fed
        return length

    def _stream(self, data: Any) -> None:
        if self._digest is None:
            self._digest = hashlib.sha256()
            held = b"".join(self._held)
            self._held = []
            self._digest.update(held)
            write_all(self._descriptor, held)
        self._digest.update(data)
        write_all(self._descriptor, data)

    def end(self) -> int:
        """Close the frame; returns its number."""
        if self._digest is not None:
            encoding, stored, digest = "plain", self._fed, self._digest.hexdigest()
        else:
            raw = b"".join(self._held)
            packed = zlib.compress(raw, 1) if len(raw) > 512 else raw
            encoding = "zlib" if len(packed) < len(raw) else "plain"
            body = packed if encoding == "zlib" else raw
            write_all(self._descriptor, body)
            stored, digest = len(body), hashlib.sha256(body).hexdigest()
        frame = {"offset": self._offset, "stored": stored, "bytes": self._fed, "encoding": encoding, "sha256": digest}
        self._offset += stored
        if self._on_bytes is not None:
            self._on_bytes(self._fed - self._told)
        self.frames.append(frame)
        self._reset()
        return len(self.frames) - 1

    def add(self, data: bytes) -> int:
        """A whole frame at once; returns its number."""
        self.write(data)
        return self.end()

    def close(self, sync: bool) -> None:
        """Close the file, after making it durable where asked."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


# --- writing raw buffers -------------------------------------------------------------------------------------------


class PackWriter:
    """Writes memory regions to a pack file: page aligned, in chunks, hashed in a thread beside the write.

    Each chunk is copied once into one of a few blocks of our own, so that a thread of the person's that changes the
    memory meanwhile cannot make hash and bytes disagree; extra memory stays at ``BLOCKS`` chunks.
    """

    BLOCKS = 4

    def __init__(self, path: str, name: str = PACK) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._descriptor = open_private(path)
        self._offset = 0
        self._name = name
        self._hasher = ThreadPoolExecutor(1, "jupyter-pause-hash")
        self._free: List[bytearray] = []
        self._made = 0
        self._running: List[Tuple[Any, bytearray, Dict[str, Any]]] = []

    @property
    def bytes(self) -> int:
        """Bytes in the file so far, padding included."""
        return self._offset

    def _block(self) -> bytearray:
        if self._free:
            return self._free.pop()
        if self._made < self.BLOCKS:
            self._made += 1
            return bytearray(CHUNK)
        self._settle(len(self._running) - 1)
        return self._free.pop()

    def _settle(self, keep: int) -> None:
        while len(self._running) > max(keep, 0):
            future, block, chunk = self._running.pop(0)
            chunk["sha256"] = future.result()
            self._free.append(block)

    def region(self, pieces: List[memoryview], on_bytes: Callable[[int], None]) -> Dict[str, Any]:
        """Append one region, given as pieces of memory that follow each other. Raises OSError.

        Returns its manifest entry, whose hashes are complete after `close`.
        """
        self._pad()
        chunks: List[Dict[str, Any]] = []
        total = sum(len(piece) for piece in pieces)
        rest, number, start = total, 0, 0
        while rest:
            block, filled = self._block(), 0
            while filled < min(CHUNK, rest):
                if start == len(pieces[number]):
                    number, start = number + 1, 0
                    continue
                length = min(CHUNK - filled, len(pieces[number]) - start)
                memoryview(block)[filled : filled + length] = pieces[number][start : start + length]
                filled, start = filled + length, start + length
            chunks.append(self._chunk(block, filled))
            rest -= filled
            on_bytes(filled)
        return {"bytes": total, "chunks": chunks}

    def _chunk(self, block: bytearray, length: int) -> Dict[str, Any]:
        mine = memoryview(block)[:length]
        chunk = {"pack": 0, "offset": self._offset, "bytes": length, "sha256": ""}
        self._running.append((self._hasher.submit(_sha256, mine), block, chunk))
        write_all(self._descriptor, mine)
        self._offset += length
        return chunk

    def _pad(self) -> None:
        rest = -self._offset % PAGE
        if rest:
            write_all(self._descriptor, bytes(rest))
            self._offset += rest

    def close(self, sync: bool) -> None:
        """Finish the hashes and close the file, after making it durable where asked."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            self._settle(0)
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
            self._hasher.shutdown(wait=True)


def _sha256(data: Any) -> str:
    return hashlib.sha256(data).hexdigest()


# --- reading -------------------------------------------------------------------------------------------------------


def parse_manifest(data: bytes) -> Dict[str, Any]:
    """The manifest's content. Raises LayoutError damaged or unsupported_format."""
    try:
        manifest = json.loads(data)
    except ValueError:
        raise LayoutError("damaged", file=MANIFEST) from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise LayoutError("damaged", file=MANIFEST)
    if manifest["format"] != FORMAT:
        raise LayoutError("unsupported_format", format=manifest["format"])
    return manifest


def read_manifest(folder: str) -> bytes:
    """The bytes of the manifest. Raises LayoutError incomplete where there is none."""
    try:
        return read_file(os.path.join(folder, MANIFEST))
    except OSError:
        raise LayoutError("incomplete", file=MANIFEST) from None


def read_signed_manifest(folder: str, secret: bytes) -> Dict[str, Any]:
    """The manifest, after its signature was found right.

    Raises LayoutError: incomplete (no manifest or no signature), signature_mismatch, damaged, unsupported_format.
    """
    data = read_manifest(folder)
    try:
        signature = read_file(os.path.join(folder, SIGNATURE), 4096).decode("ascii", "replace")
    except OSError:
        raise LayoutError("incomplete", file=SIGNATURE) from None
    if not is_signed(data, signature, secret):
        raise LayoutError("signature_mismatch")
    manifest = parse_manifest(data)
    if manifest.get("id") != os.path.basename(os.path.realpath(folder)):
        raise LayoutError("damaged", file=MANIFEST)
    return manifest


def check_sizes(folder: str, manifest: Dict[str, Any]) -> None:
    """Every file is there, is a plain file, and has the size that the manifest says. Raises LayoutError."""
    frames = manifest["frames"]
    wanted = [(FRAMES, sum(int(frame["stored"]) for frame in frames))]
    wanted += [(str(pack["file"]), int(pack["bytes"])) for pack in manifest["packs"]]
    for name, size in wanted:
        if not _PACK_NAME.match(name):
            raise LayoutError("damaged", file=MANIFEST)
        try:
            status = os.lstat(os.path.join(folder, name))
        except OSError:
            raise LayoutError("incomplete", file=name) from None
        if not stat.S_ISREG(status.st_mode) or status.st_size != size:
            raise LayoutError("damaged", file=name)


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
            _sha256(self.stored(number)), str(frame["sha256"])
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


def _forget_cache(descriptor: int) -> None:
    """Ask the system to drop what it remembers of a file, so that the next read comes from the disk."""
    advise = getattr(os, "posix_fadvise", None)
    if advise is not None:
        try:
            advise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError:
            pass


def _pieces(folder: str, manifest: Dict[str, Any]) -> Iterator[Tuple[str, int, int, str, Optional[int]]]:
    for frame in manifest["frames"]:
        yield FRAMES, int(frame["offset"]), int(frame["stored"]), str(frame["sha256"]), None
    packs = [str(pack["file"]) for pack in manifest["packs"]]
    for number, region in enumerate(manifest["regions"]):
        for chunk in region["chunks"]:
            yield packs[chunk["pack"]], int(chunk["offset"]), int(chunk["bytes"]), str(chunk["sha256"]), number


def hash_everything(
    folder: str,
    manifest: Dict[str, Any],
    *,
    buffers: bool = True,
    from_disk: bool = False,
    progress: Optional[Progress] = None,
    cancelled: Optional[Cancelled] = None,
) -> List[int]:
    """Compare every frame, and every chunk where `buffers`, with its hash; returns the numbers of damaged regions.

    With `from_disk` the page cache is dropped first. Raises LayoutError damaged for a frame, cancelled, incomplete.
    """
    pieces = [piece for piece in _pieces(folder, manifest) if buffers or piece[4] is None]
    total, done = sum(piece[2] for piece in pieces), 0
    damaged: List[int] = []
    files: Dict[str, int] = {}
    block = bytearray(CHUNK)
    try:
        for name, offset, length, wanted, region in pieces:
            if cancelled is not None and cancelled():
                raise LayoutError("cancelled")
            if name not in files:
                files[name] = os.open(
                    os.path.join(folder, name), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
                )
                if from_disk:
                    _forget_cache(files[name])
            right = _hash_range(files[name], offset, length, block) == wanted
            if not right and region is None:
                raise LayoutError("damaged", file=name)
            if not right and region is not None and region not in damaged:
                damaged.append(region)
            done += length
            if progress is not None:
                progress(done, total)
    except OSError:
        raise LayoutError("damaged") from None
    finally:
        for descriptor in files.values():
            os.close(descriptor)
    return damaged


def _hash_range(descriptor: int, offset: int, length: int, block: bytearray) -> str:
    digest = hashlib.sha256()
    os.lseek(descriptor, offset, os.SEEK_SET)
    view = memoryview(block)
    while length > 0:
        got = _read_into(descriptor, view[: min(length, len(block))])
        if not got:
            return ""
        digest.update(view[:got])
        length -= got
    return digest.hexdigest()


def _read_into(descriptor: int, view: memoryview) -> int:
    readv = getattr(os, "readv", None)
    if readv is not None:
        return int(readv(descriptor, [view]))
    data = os.read(descriptor, len(view))
    view[: len(data)] = data
    return len(data)


def variables_of(manifest: Dict[str, Any], regions: List[int]) -> List[str]:
    """Names of the variables that use any of these regions."""
    wanted = set(regions)
    return [str(v["name"]) for v in manifest["variables"] if wanted.intersection(v.get("regions") or ())]


# --- commit --------------------------------------------------------------------------------------------------------


def commit(
    staging: str,
    final: str,
    secret: bytes,
    progress: Optional[Progress] = None,
    cancelled: Optional[Cancelled] = None,
) -> Dict[str, Any]:
    """Turn a written checkpoint into a valid one: read all of it back from the disk, hash it, sign, sync, rename.

    Until the rename there is no checkpoint; after it there is a complete one. Returns the manifest. Raises LayoutError:
    incomplete, damaged, unsupported_format, no_space, unwritable, cancelled; the staging folder is then left as it is.
    """
    return seal(staging, final, secret, read_back(staging, progress, cancelled), cancelled)


def read_back(
    staging: str, progress: Optional[Progress] = None, cancelled: Optional[Cancelled] = None
) -> Dict[str, Any]:
    """The manifest of a written checkpoint, after all of it was read from the disk and found as it was written.

    Raises LayoutError: incomplete, damaged, unsupported_format, cancelled.
    """
    manifest = parse_manifest(read_manifest(staging))
    if manifest.get("id") != os.path.basename(staging) or not is_id(manifest.get("id")):
        raise LayoutError("damaged", file=MANIFEST)
    check_sizes(staging, manifest)
    if hash_everything(staging, manifest, from_disk=True, progress=progress, cancelled=cancelled):
        raise LayoutError("damaged", file=PACK)
    return manifest


def seal(
    staging: str, final: str, secret: bytes, manifest: Dict[str, Any], cancelled: Optional[Cancelled] = None
) -> Dict[str, Any]:
    """Write the manifest of a checkpoint that was read back, sign it, sync, rename; returns it.

    Raises LayoutError: damaged, no_space, unwritable, cancelled.
    """
    if manifest.get("id") != os.path.basename(final):
        raise LayoutError("damaged", file=MANIFEST)
    check_sizes(staging, manifest)
    if cancelled is not None and cancelled():
        raise LayoutError("cancelled")
    data = canonical_json(manifest)
    try:
        if os.path.lexists(final):
            raise LayoutError("unwritable", detail="exists")
        if data != read_manifest(staging):
            write_private(os.path.join(staging, MANIFEST), data)
        write_private(os.path.join(staging, SIGNATURE), sign(data, secret).encode("ascii"))
        remove_quietly(*[os.path.join(staging, name) for name in SCRATCH])
        fsync_folder(staging)
        os.rename(staging, final)
        fsync_folder(os.path.dirname(final))
        fsync_folder(os.path.dirname(staging))
    except OSError as error:
        raise LayoutError(code_of_os_error(error)) from error
    return manifest


def verify(folder: str, secret: bytes, *, buffers: bool) -> Tuple[Dict[str, Any], List[str]]:
    """Signature, sizes and frames, and raw buffers where asked; nothing is unpickled.

    Returns the manifest and the names of variables with damaged buffers. Raises LayoutError for everything else.
    """
    manifest = read_signed_manifest(folder, secret)
    check_sizes(folder, manifest)
    damaged = hash_everything(folder, manifest, buffers=buffers)
    return manifest, variables_of(manifest, damaged)
