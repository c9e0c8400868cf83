# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A stored checkpoint as REST and command line show it (`Checkpoint` of openapi.yaml)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .states import ShadowReport

if TYPE_CHECKING:
    from .checkpoint.store import StoredCheckpoint


def checkpoint_row(entry: StoredCheckpoint, *, in_use: bool) -> dict[str, Any]:
    """JSON of one checkpoint. `in_use`: a paused kernel will come back from it."""
    row: dict[str, Any] = {
        "id": entry.id,
        "signature_ok": entry.signature_ok,
        "damaged": entry.damaged,
        "in_use": in_use,
        "bytes": entry.bytes_on_disk,
        "created": None,
        "kernel_id": None,
        "kernel_name": None,
        "path": None,
        "cause": None,
        "python": {},
        "packages": {},
        "variables": [],
        "losses": [],
        "not_stored": [],
        "shadow": None,
    }
    if entry.manifest is not None:
        full = entry.manifest.model_dump(mode="json")
        for key in ("created", "kernel_id", "kernel_name", "path", "cause", "packages", "losses"):
            row[key] = full[key]
        row["python"] = {key: str(value) for key, value in full["python"].items()}
        wanted = ("name", "type", "kind", "bytes", "fate", "reason")
        row["variables"] = [{key: variable.get(key) for key in wanted} for variable in full["variables"]]
        row["not_stored"] = full["interpreter"].get("env", {}).get("not_stored", [])
        row["shadow"] = _shadow(full)
    return row


def _shadow(manifest: dict[str, Any]) -> dict[str, Any]:
    """Whether it was tried out; a kernel that saved itself without a server, or an older version, did not do so."""
    code = "orphaned" if manifest["cause"] == "orphaned" else "not_reached"
    report = manifest["shadow"] or {"state": "not_checked", "code": code}
    return ShadowReport.model_validate(report).model_dump(mode="json")
