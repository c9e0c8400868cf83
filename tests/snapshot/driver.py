# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What the tests of process snapshots do with a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.harness import ServerProcess


def snapshots(server: ServerProcess) -> list[Path]:
    """The snapshots on disk."""
    folder = server.checkpoints / "snapshots"
    return sorted(folder.iterdir()) if folder.exists() else []


def row(server: ServerProcess, kernel: str) -> dict[str, Any]:
    """The kernel's row; it must be there."""
    found = server.row(kernel)
    assert found is not None
    return found


def paused(server: ServerProcess, kernel: str, **options: Any) -> dict[str, Any]:
    """Pause, without accepting any loss unless told so; the row afterwards."""
    operation = server.pause(kernel, **options)
    assert operation["state"] == "done", operation
    found = row(server, kernel)
    assert found["state"] == "paused"
    return found


def resumed(server: ServerProcess, kernel: str, **options: Any) -> dict[str, Any]:
    """Resume; the report."""
    operation = server.resume(kernel=kernel, **options)
    assert operation["state"] == "done", operation
    report: dict[str, Any] = row(server, kernel)["last_resume"]
    return report
