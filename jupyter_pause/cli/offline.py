# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Checkpoints read from their folder, without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .server import CliError

if TYPE_CHECKING:
    from jupyter_pause.checkpoint.store import CheckpointStore


def configured_folder() -> Path:
    """`PauseApp.checkpoint_dir` as the server would read it, else its default."""
    from jupyter_core.application import JupyterApp
    from jupyter_core.paths import jupyter_data_dir

    for name in ("jupyter_jupyter_pause", "jupyter_server"):
        app = JupyterApp()
        app.name = name
        app.raise_config_file_errors = True
        try:
            app.load_config_file()
        except Exception as error:
            raise CliError(
                "bad_config",
                f"Jupyter's configuration cannot be read ({type(error).__name__}). Name the folder with --dir.",
            ) from error
        chosen = app.config.get("PauseApp", {}).get("checkpoint_dir")
        if isinstance(chosen, str) and chosen:
            return Path(chosen).expanduser().absolute()
    return Path(jupyter_data_dir()) / "jupyter_pause"


class OfflineCheckpoints:
    """The same answers as `GET checkpoints`, from the folder itself."""

    source = "directory"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list(self) -> list[dict[str, Any]]:
        """All checkpoints as rows of the REST interface, newest first; none when there is no such folder."""
        if not self.folder.is_dir():
            return []
        from jupyter_pause.checkpoint_row import checkpoint_row

        used = self._used()
        return [checkpoint_row(entry, in_use=entry.id in used) for entry in self._store().entries()]

    def show(self, checkpoint_id: str) -> dict[str, Any]:
        """One row; raises CliError `not_found`."""
        for row in self.list():
            if row["id"] == checkpoint_id:
                return row
        raise CliError("not_found", f"There is no checkpoint {checkpoint_id} in {self.folder}.")

    def delete(self, checkpoint_id: str, *, force: bool) -> None:
        """Delete for good. Raises CliError `checkpoint_in_use` while a paused session needs it, unless forced."""
        from jupyter_pause.checkpoint.store import CheckpointError

        if not force and checkpoint_id in self._used():
            raise CliError(
                "checkpoint_in_use",
                "A paused notebook will come back from this checkpoint. Resume it first, or delete it with --force.",
            )
        try:
            self._store().delete(checkpoint_id)
        except CheckpointError as error:
            raise CliError(error.code, f"The checkpoint cannot be deleted ({error.code}).") from error

    def _store(self) -> CheckpointStore:
        from jupyter_pause.checkpoint.store import CheckpointStore

        return CheckpointStore(self.folder)

    def _used(self) -> set[str]:
        """Checkpoints that paused sessions name."""
        used = set()
        for path in self.folder.glob("sessions/*/session.json"):
            try:
                record = json.loads(path.read_bytes())
            except (OSError, ValueError):
                continue
            paused = isinstance(record, dict) and record.get("state") == "paused"
            if paused and isinstance(record.get("checkpoint"), str):
                used.add(record["checkpoint"])
        return used
