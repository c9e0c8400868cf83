# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Where checkpoints lie on disk: making room for one, committing, verifying, listing, deleting.

An id is checked before it becomes part of a path, symbolic links in the store are refused, and nothing here
unpickles. All methods block; the server calls them through ``asyncio.to_thread``.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import secrets
import shutil
import socket
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jupyter_pause.kernel import layout
from jupyter_pause.states import UTCTime

from . import signing

#: A staging folder of a process that cannot be asked is a leftover after so many seconds without a change.
STALE_AFTER = 3600.0


class CheckpointError(Exception):
    """Something is wrong with a checkpoint or its place. `code` is stable; `params` never hold values or secrets.

    Codes: bad_id, not_found, signature_mismatch, damaged, incomplete, unsupported_format, no_space, unwritable,
    cancelled.
    """

    def __init__(self, code: str, **params: object) -> None:
        self.code = code
        self.params: dict[str, object] = dict(params)
        super().__init__(code)


class CheckpointManifest(BaseModel):
    """What ``manifest.json`` says; fields of newer versions are ignored. Sizes are bytes, times UTC."""

    model_config = ConfigDict(extra="ignore")

    format: int
    id: str
    created: UTCTime
    kernel_id: str = ""
    kernel_name: str = ""
    path: str = ""
    cause: str = ""
    python: dict[str, str] = Field(default_factory=dict)
    packages: dict[str, str] = Field(default_factory=dict)
    modules: list[dict[str, str]] = Field(default_factory=list)
    #: Kinds of devices that hold arrays of it; None in checkpoints from before they were noted.
    devices: list[str] | None = None
    #: GPUs and image of the machine (`machine.py`); empty where nobody noted it.
    machine: dict[str, Any] = Field(default_factory=dict)
    interpreter: dict[str, Any] = Field(default_factory=dict)
    variables: list[dict[str, Any]] = Field(default_factory=list)
    losses: list[dict[str, Any]] = Field(default_factory=list)
    shadow: dict[str, Any] = Field(default_factory=dict)
    frames: list[dict[str, Any]] = Field(default_factory=list)
    bytes: int = 0
    #: Of `bytes`, what its own pause wrote; None in checkpoints from before packs were shared.
    written: int | None = None


@dataclass(frozen=True)
class Verification:
    """What was found right. Damage is raised, never returned."""

    manifest: CheckpointManifest
    frames: int
    buffers_checked: bool
    damaged_variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredCheckpoint:
    """One folder of the store, also where it cannot be used: `damaged` is then a code."""

    id: str
    manifest: CheckpointManifest | None
    signature_ok: bool
    damaged: str | None
    bytes_on_disk: int


class CheckpointStore:
    """The checkpoints below one folder. Making the object touches nothing."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.abspath(root))
        self.secret_file = self.root / "secret"
        self._checkpoints = self.root / "checkpoints"
        self._staging = self.root / "staging"
        self._trash = self.root / "trash"

    def prepare(self) -> None:
        """Make the signing key now: a kernel that saves itself because its server is gone can only read one.

        Raises CheckpointError unwritable, no_space.
        """
        try:
            self._key()
        except OSError as error:
            raise CheckpointError(layout.code_of_os_error(error)) from error

    # --- while one is written ----------------------------------------------------------------------------------

    def new_staging(self, request: dict[str, object]) -> Path:
        """Make ``staging/<new id>/`` with ``request.json``; returns its path. Raises CheckpointError no_space,
        unwritable."""
        checkpoint_id = secrets.token_hex(16)
        staging = self._staging / checkpoint_id
        try:
            self._key()
            for folder in (self._checkpoints, staging):
                layout.make_private_dir(str(folder))
            content = {**request, "checkpoint_id": checkpoint_id, "server": _this_process()}
            layout.write_private(str(staging / "request.json"), layout.canonical_json(content))
        except OSError as error:
            shutil.rmtree(staging, ignore_errors=True)
            raise CheckpointError(layout.code_of_os_error(error)) from error
        return staging

    def read_progress(self, staging: Path) -> dict[str, Any] | None:
        """The kernel's progress, or None before its first."""
        return _read_json(staging / "progress.json")

    def read_result(self, staging: Path) -> dict[str, Any] | None:
        """What the kernel said at its end, or None before."""
        return _read_json(staging / layout.RESULT)

    def request_cancel(self, staging: Path) -> None:
        """Ask the kernel to stop; a folder that is gone needs no asking."""
        try:
            os.close(layout.open_private(str(staging / "cancel")))
        except OSError:
            return

    def discard_staging(self, staging: Path) -> None:
        """Delete a staging folder with all that is in it."""
        if staging.parent == self._staging and layout.is_id(staging.name):
            self._throw_away_if_there(staging)

    def commit(
        self,
        staging: Path,
        progress: Callable[[int, int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> CheckpointManifest:
        """Read back and hash all of it, sign, sync, rename into place. Until then there is no checkpoint.

        `progress` gets bytes done and in all. Raises CheckpointError, also with code ``cancelled``; the staging folder
        then stays, for `discard_staging`.
        """
        return self.seal(staging, self.read_back(staging, progress, cancelled), cancelled)

    def read_back(
        self,
        staging: Path,
        progress: Callable[[int, int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> dict[str, Any]:
        """The first half of `commit`: read and hash all of it; returns the manifest as it was written."""
        return _raising(lambda: layout.read_back(str(staging), self._key(), progress, cancelled))

    def written_manifest(self, staging: Path) -> dict[str, Any]:
        """What the kernel wrote, before anything was read back. Raises CheckpointError incomplete, damaged."""
        return _raising(lambda: layout.parse_manifest(layout.read_manifest(str(staging))))

    def seal(
        self, staging: Path, manifest: dict[str, Any], cancelled: Callable[[], bool] | None = None
    ) -> CheckpointManifest:
        """The second half: sign `manifest` (what was read back, perhaps with more losses), sync, rename."""
        final = self.path(staging.name)
        return _model(_raising(lambda: layout.seal(str(staging), str(final), self._key(), manifest, cancelled)))

    # --- afterwards --------------------------------------------------------------------------------------------

    def path(self, checkpoint_id: str) -> Path:
        """The folder of an id, whether it exists or not. Raises CheckpointError bad_id for anything that is no id."""
        if not layout.is_id(checkpoint_id):
            raise CheckpointError("bad_id")
        folder = self._checkpoints / checkpoint_id
        if folder.is_symlink() or self._checkpoints.is_symlink():
            raise CheckpointError("bad_id")
        return folder

    def manifest(self, checkpoint_id: str) -> CheckpointManifest:
        """The manifest, after its signature was checked. Raises CheckpointError."""
        folder = self._existing(checkpoint_id)
        try:
            return _model(layout.read_signed_manifest(str(folder), self._key()))
        except layout.LayoutError as error:
            raise CheckpointError(error.code, **error.params) from error
        except OSError as error:
            raise CheckpointError("unwritable") from error

    def verify(self, checkpoint_id: str, *, buffers: bool) -> Verification:
        """Signature, sizes and frames; raw buffers too where asked. Nothing is unpickled.

        Raises CheckpointError; for damaged buffers ``damaged`` with ``variables`` (their names) in its params.
        """
        folder = self._existing(checkpoint_id)
        try:
            raw, names = layout.verify(str(folder), self._key(), buffers=buffers)
        except layout.LayoutError as error:
            raise CheckpointError(error.code, **error.params) from error
        except (OSError, KeyError, TypeError, ValueError, IndexError) as error:
            raise CheckpointError("damaged") from error
        if names:
            raise CheckpointError("damaged", file=layout.PACK, variables=names)
        return Verification(manifest=_model(raw), frames=len(raw["frames"]), buffers_checked=buffers)

    def entries(self) -> builtins.list[StoredCheckpoint]:
        """Every checkpoint folder, newest first, also those that cannot be used (they are marked)."""
        try:
            names = [entry.name for entry in os.scandir(self._checkpoints) if layout.is_id(entry.name)]
        except OSError:
            return []
        found = []
        for name in names:
            try:
                found.append(self.entry(name))
            except CheckpointError:
                continue  # a symbolic link, or deleted meanwhile
        return sorted(
            found,
            key=lambda entry: (entry.manifest is not None and entry.manifest.created.timestamp()) or 0.0,
            reverse=True,
        )

    def entry(self, checkpoint_id: str) -> StoredCheckpoint:
        """One of them. Raises CheckpointError bad_id or not_found."""
        folder = self._existing(checkpoint_id)
        size = _size(folder)
        try:
            raw = layout.read_signed_manifest(str(folder), self._key())
            manifest = _model(raw)
        except layout.LayoutError as error:
            return StoredCheckpoint(checkpoint_id, None, error.code != "signature_mismatch", error.code, size)
        except (CheckpointError, OSError):
            return StoredCheckpoint(checkpoint_id, None, False, "damaged", size)
        try:
            layout.check_sizes(str(folder), raw)
        except layout.LayoutError as error:
            return StoredCheckpoint(checkpoint_id, manifest, True, error.code, size)
        return StoredCheckpoint(checkpoint_id, manifest, True, None, size)

    def list(self) -> builtins.list[CheckpointManifest]:
        """Manifests of the checkpoints whose signature and sizes are right, newest first."""
        return [entry.manifest for entry in self.entries() if entry.manifest is not None and entry.damaged is None]

    def delete(self, checkpoint_id: str) -> None:
        """Delete for good. It is gone from the store at once, whatever happens to the deleting of its bytes."""
        folder = self._existing(checkpoint_id)
        try:
            self._throw_away(folder)
        except OSError as error:
            raise CheckpointError("unwritable") from error

    def clean(self) -> None:
        """Remove what crashed operations left: staging folders nobody writes to, half-deleted checkpoints."""
        for leftover in _folders(self._trash):
            shutil.rmtree(leftover, ignore_errors=True)
        for staging in _folders(self._staging):
            if layout.is_id(staging.name) and _is_leftover(staging):
                self._throw_away_if_there(staging)

    def _throw_away(self, folder: Path) -> None:
        """Take a folder out of the store at once, then delete its bytes.

        A kernel that still writes into it, by its name, finds nothing there and stops; were its files deleted under
        that name, a file it made meanwhile would keep the folder.
        """
        trash = self._trash / f"{folder.name}-{secrets.token_hex(4)}"
        layout.make_private_dir(str(self._trash))
        os.rename(folder, trash)
        shutil.rmtree(trash)

    def _throw_away_if_there(self, folder: Path) -> None:
        with contextlib.suppress(OSError):  # what is left in the trash goes with the next `clean`
            self._throw_away(folder)

    # --- inside ------------------------------------------------------------------------------------------------

    def _key(self) -> bytes:
        try:
            return signing.key(self.secret_file)
        except ValueError as error:
            raise CheckpointError("unwritable", file="secret") from error

    def _existing(self, checkpoint_id: str) -> Path:
        folder = self.path(checkpoint_id)
        try:
            status = os.lstat(folder)
        except OSError:
            raise CheckpointError("not_found") from None
        if not stat.S_ISDIR(status.st_mode):
            raise CheckpointError("not_found")
        return folder


def _raising(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `work` gives; its errors as CheckpointError."""
    try:
        return work()
    except layout.LayoutError as error:
        raise CheckpointError(error.code, **error.params) from error
    except OSError as error:
        raise CheckpointError(layout.code_of_os_error(error)) from error


def _model(raw: dict[str, Any]) -> CheckpointManifest:
    try:
        return CheckpointManifest.model_validate(raw)
    except ValidationError as error:
        raise CheckpointError("damaged", file=layout.MANIFEST) from error


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(layout.read_file(str(path), 1 << 28))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _folders(parent: Path) -> builtins.list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(parent) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _size(folder: Path) -> int:
    """Bytes on disk; of files that several checkpoints share only this one's part, so that the sum is right."""
    total = 0
    try:
        for entry in os.scandir(folder):
            status = entry.stat(follow_symlinks=False)
            total += (getattr(status, "st_blocks", 0) * 512 or status.st_size) // max(status.st_nlink, 1)
    except OSError:
        pass
    return total


def _this_process() -> dict[str, object]:
    return {"host": socket.gethostname(), "pid": os.getpid(), "start_time": psutil.Process().create_time()}


def _is_leftover(staging: Path) -> bool:
    """Whether the server that asked for it is gone, or, where that cannot be told, nothing has changed for long."""
    request = _read_json(staging / "request.json") or {}
    server = request.get("server")
    if isinstance(server, dict) and server.get("host") == socket.gethostname():
        try:
            alive = psutil.Process(int(server["pid"])).create_time() == server["start_time"]
        except (psutil.Error, KeyError, TypeError, ValueError):
            alive = False
        if alive or server.get("pid") != os.getpid():
            return not alive
    try:
        times = [entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(staging)]
        newest = max([*times, staging.stat().st_mtime])
    except OSError:
        return False
    return time.time() - newest > STALE_AFTER
