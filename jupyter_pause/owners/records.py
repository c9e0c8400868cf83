# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`sessions/<kernel id>/session.json`: the truth about each session, on disk. Everything here blocks."""

from __future__ import annotations

import contextlib
from pathlib import Path

from jupyter_pause.launch import read_private_json, remove_file, valid_kernel_id, write_private_json
from jupyter_pause.states import SessionRecord

RECORD = "session.json"
LEASE = "lease"


class SessionFiles:
    """The records below one checkpoint directory. Ids are checked before they become part of a path."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "sessions"

    def prepare(self) -> None:
        """Make the folders, owner-only. Raises OSError."""
        for folder in (self.root, self.folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, kernel_id: str, name: str) -> Path:
        """A session's file; raises ValueError for an id that is none."""
        if not valid_kernel_id(kernel_id):
            raise ValueError("not a kernel id")
        return self.folder / kernel_id / name

    def read(self, kernel_id: str) -> SessionRecord | None:
        """The record; None if there is none or it cannot be understood (a hand-made or half-known file)."""
        content = read_private_json(self.path(kernel_id, RECORD))
        if content is None or content.get("kernel_id", kernel_id) != kernel_id:
            return None  # an id inside a file never stands for its folder
        try:
            return SessionRecord.model_validate(content)
        except ValueError:
            return None

    def write(self, record: SessionRecord, *, sync: bool = True) -> None:
        """Replace the record atomically. Raises OSError."""
        self.prepare()
        path = self.path(record.kernel_id, RECORD)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_private_json(path, record.model_dump(mode="json"), sync=sync)

    def delete(self, kernel_id: str) -> None:
        """Forget the session; its lease goes last."""
        remove_file(self.path(kernel_id, RECORD))
        remove_file(self.path(kernel_id, LEASE))
        with contextlib.suppress(OSError):  # something else lies there: not ours to delete
            (self.folder / kernel_id).rmdir()

    def kernel_ids(self) -> list[str]:
        """Ids of all sessions on disk."""
        try:
            entries = sorted(self.folder.iterdir())
        except OSError:
            return []
        return [e.name for e in entries if valid_kernel_id(e.name) and e.is_dir() and not e.is_symlink()]

    def all(self) -> list[SessionRecord]:
        """All records that can be understood."""
        records = (self.read(kernel_id) for kernel_id in self.kernel_ids())
        return [record for record in records if record is not None]
