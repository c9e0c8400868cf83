# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Where process snapshots lie: `snapshots/<id>/` beside the checkpoints, owner-only, digested, signed.

    manifest.json, manifest.sig    what it is of, what it needs, the digest of every image (signed with our key)
    images/                        what CRIU wrote
    maker.json                     which server made it
    dump.log, restore.log          what CRIU said, for a support bundle

A folder without a signature is no snapshot: its making was cut short. All methods block.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jupyter_pause.checkpoint import signing
from jupyter_pause.kernel import layout
from jupyter_pause.launch import read_private_json
from jupyter_pause.processes import is_same_process, start_time
from jupyter_pause.states import UTCTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

FORMAT = 1
#: Which server made it.
_MAKER = "maker.json"
#: Bytes that one digest covers: hashing runs in several threads.
CHUNK = 64 << 20
_BLOCK = 1 << 20
_THREADS = min(4, os.cpu_count() or 1)


class SnapshotError(Exception):
    """A snapshot cannot be used or written. `code` is one of `sentences.py`; `params` belong to its sentence."""

    def __init__(self, code: str, **params: object) -> None:
        self.code = code
        self.params: dict[str, object] = dict(params)
        super().__init__(code)


class OpenFile(BaseModel):
    """A file that the process had open or mapped. `why`: "open", or "mapped" for programs and libraries."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    why: str


class SnapshotManifest(BaseModel):
    """What `manifest.json` says. Sizes are bytes, times UTC."""

    model_config = ConfigDict(extra="ignore")

    format: int = FORMAT
    id: str
    created: UTCTime
    kernel_id: str
    kernel_name: str = ""
    path: str | None = None
    checkpoint: str | None = None
    criu: list[int] = Field(default_factory=list)
    host: dict[str, Any] = Field(default_factory=dict)
    pid: int
    tasks: list[int] = Field(default_factory=list)
    #: Processes that ran before they were stopped for the dump: those are woken after a restore, children first.
    running: list[int] = Field(default_factory=list)
    #: The TCP ports that it listens on for its server.
    ports: list[int] = Field(default_factory=list)
    #: SHA-256 of the mark in the process's memory; None where the kernel has no code of ours.
    mark: str | None = None
    files: list[OpenFile] = Field(default_factory=list)
    #: The file that the kernel's own output goes to, and its length.
    output: str | None = None
    output_bytes: int = 0
    images: dict[str, list[str]] = Field(default_factory=dict)
    sizes: dict[str, int] = Field(default_factory=dict)
    bytes: int = 0


@dataclass(frozen=True)
class SnapshotFolder:
    """One snapshot's files."""

    path: Path

    @property
    def id(self) -> str:
        """32 hex digits."""
        return self.path.name

    @property
    def images(self) -> Path:
        """What CRIU wrote."""
        return self.path / "images"

    @property
    def dump_log(self) -> Path:
        """What CRIU said while it dumped."""
        return self.path / "dump.log"

    @property
    def restore_log(self) -> Path:
        """What CRIU said at the last restore."""
        return self.path / "restore.log"


class SnapshotStore:
    """The snapshots below one checkpoint folder. Making the object touches nothing."""

    def __init__(self, root: Path, secret_file: Path) -> None:
        self._folder = root / "snapshots"
        self._secret_file = secret_file

    def new(self) -> SnapshotFolder:
        """Make a folder for a dump. Raises SnapshotError `snapshot_not_written`."""
        folder = SnapshotFolder(self._folder / secrets.token_hex(16))
        try:
            layout.make_private_dir(str(folder.images))
            for name in (self._folder, folder.path, folder.images):
                os.chmod(name, 0o700)
            layout.write_private(str(folder.path / _MAKER), layout.canonical_json(_this_process()))
        except OSError as error:
            raise SnapshotError("snapshot_not_written", detail=error.strerror or "") from error
        return folder

    def commit(
        self,
        folder: SnapshotFolder,
        manifest: SnapshotManifest,
        progress: Callable[[int], None] | None = None,
    ) -> SnapshotManifest:
        """Sync and digest every image, then sign: from here on it is a snapshot. Returns the completed manifest.

        `progress` gets bytes done. Raises SnapshotError `snapshot_not_written`.
        """
        try:
            names = sorted(entry.name for entry in os.scandir(folder.images))
            digests = _digest_all(folder.images, names, progress, sync=True)
            sizes = {name: (folder.images / name).stat().st_size for name in names}
            complete = manifest.model_copy(update={"images": digests, "sizes": sizes, "bytes": sum(sizes.values())})
            data = layout.canonical_json(complete.model_dump(mode="json"))
            layout.fsync_folder(str(folder.images))
            layout.write_private(str(folder.path / layout.MANIFEST), data)
            signature = layout.sign(data, signing.key(self._secret_file))
            layout.write_private(str(folder.path / layout.SIGNATURE), signature.encode("ascii"))
            layout.fsync_folder(str(folder.path))
            layout.fsync_folder(str(self._folder))
        except (OSError, ValueError) as error:
            raise SnapshotError("snapshot_not_written", detail=getattr(error, "strerror", None) or "") from error
        return complete

    def folder(self, snapshot_id: str) -> SnapshotFolder:
        """The folder of an id. Raises SnapshotError `snapshot_missing`, also for what is no id and for links."""
        path = self._folder / snapshot_id
        if not layout.is_id(snapshot_id) or path.is_symlink() or self._folder.is_symlink() or not path.is_dir():
            raise SnapshotError("snapshot_missing")
        return SnapshotFolder(path)

    def manifest(self, snapshot_id: str) -> SnapshotManifest:
        """The manifest, after its signature was checked. Raises SnapshotError."""
        folder = self.folder(snapshot_id)
        try:
            data = layout.read_file(str(folder.path / layout.MANIFEST), 1 << 26)
            signature = layout.read_file(str(folder.path / layout.SIGNATURE), 1 << 10).decode("ascii")
            secret = layout.read_secret(str(self._secret_file))
        except (OSError, ValueError) as error:
            raise SnapshotError("snapshot_damaged") from error
        if not layout.is_signed(data, signature, secret):
            raise SnapshotError("snapshot_signature_mismatch")
        try:
            raw = json.loads(data)
            if raw.get("format") != FORMAT:
                raise SnapshotError("snapshot_unsupported_format")
            return SnapshotManifest.model_validate(raw)
        except (ValueError, ValidationError, AttributeError) as error:
            raise SnapshotError("snapshot_damaged") from error

    def verify(self, manifest: SnapshotManifest, progress: Callable[[int], None] | None = None) -> None:
        """Digest every image again and compare. Raises SnapshotError `snapshot_damaged` or `snapshot_missing`."""
        images = self.folder(manifest.id).images
        try:
            present = {entry.name for entry in os.scandir(images)}
            if not set(manifest.images) <= present:
                raise SnapshotError("snapshot_damaged")
            if any((images / name).stat().st_size != size for name, size in manifest.sizes.items()):
                raise SnapshotError("snapshot_damaged")
            if _digest_all(images, sorted(manifest.images), progress, sync=False) != manifest.images:
                raise SnapshotError("snapshot_damaged")
            for extra in present - set(manifest.images):
                os.unlink(images / extra)  # an earlier restore that was cut short left it
        except OSError as error:
            raise SnapshotError("snapshot_damaged") from error

    def delete(self, snapshot_id: str) -> None:
        """Delete for good; one that is not there is no error."""
        if layout.is_id(snapshot_id):
            path = self._folder / snapshot_id
            if path.is_symlink():
                path.unlink(missing_ok=True)
            else:
                layout.remove_quietly(str(path / layout.SIGNATURE))
                shutil.rmtree(path, ignore_errors=True)

    def ids(self) -> list[str]:
        """Every folder, also of a making that was cut short."""
        try:
            return [entry.name for entry in os.scandir(self._folder) if layout.is_id(entry.name)]
        except OSError:
            return []

    def clean(self, keep: Iterable[str]) -> None:
        """Delete the snapshots that no session names (`keep`): of crashed operations, of sessions that are over.

        Those whose server still lives are its own business: it may be about to name them.
        """
        for snapshot_id in set(self.ids()) - set(keep):
            if not _maker_lives(self._folder / snapshot_id / _MAKER):
                self.delete(snapshot_id)


def _this_process() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid(), "start_time": start_time(os.getpid())}


def _maker_lives(path: Path) -> bool:
    maker = read_private_json(path)
    if maker is None:
        return False
    if maker.get("host") != socket.gethostname():
        return True  # it cannot be asked from here
    return maker.get("pid") != os.getpid() and is_same_process(maker.get("pid"), maker.get("start_time"))


def _digest_all(
    folder: Path, names: list[str], progress: Callable[[int], None] | None, *, sync: bool
) -> dict[str, list[str]]:
    """Hex SHA-256 of each chunk of each file; with `sync` every file is on disk afterwards."""
    jobs = [(name, offset) for name in names for offset in range(0, max(1, (folder / name).stat().st_size), CHUNK)]
    done = 0
    found: dict[str, list[str]] = {name: [] for name in names}
    with ThreadPoolExecutor(_THREADS, "jupyter-pause-digest") as pool:
        # The syncs go first: the disk writes while processors hash what is still in memory.
        syncs = [pool.submit(_sync, folder / name) for name in names] if sync else []
        hashes = [pool.submit(_digest, folder / name, offset) for name, offset in jobs]
        for (name, _), one in zip(jobs, hashes, strict=True):
            digest, length = one.result()
            found[name].append(digest)
            done += length
            if progress is not None:
                progress(done)
        for one_sync in syncs:
            one_sync.result()
    return found


def _sync(path: Path) -> None:
    """Owner-only and on disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fchmod(descriptor, 0o600)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest(path: Path, offset: int) -> tuple[str, int]:
    hasher, left = hashlib.sha256(), CHUNK
    block = bytearray(_BLOCK)
    view = memoryview(block)
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb", buffering=0) as file:
        file.seek(offset)
        while left:
            length = file.readinto(view[: min(left, _BLOCK)])
            if not length:
                break
            hasher.update(view[:length])
            left -= length
    return hasher.hexdigest(), CHUNK - left
