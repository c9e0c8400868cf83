# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What was promised before a whole workspace was paused: on the home volume, so that it survives the pod.

`intent.json` holds digests of marks, never the marks: only a process that came back with its memory can show those. It
is written and synced before the owner is asked, and read by whichever process finds itself there afterwards.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from jupyter_pause.launch import read_private_json, write_private_json
from jupyter_pause.states import OwnerKind, UTCTime, WorkspaceResumeReport

if TYPE_CHECKING:
    from collections.abc import Iterable

IntentState = Literal["asked", "taken_back", "proved", "fresh"]
#: Why a kernel has no checkpoint beside the snapshot.
NoCheckpoint = Literal["busy", "over_budget", "failed", "not_pausable"]


class _Stored(BaseModel):
    model_config = ConfigDict(extra="allow")


class Sample(_Stored):
    """A cheap digest of one large variable, taken before the pause (kernel/samples.py)."""

    name: str
    digest: str
    bytes: int = 0
    device: bool = False


class KernelPromise(_Stored):
    """What is expected of one kernel. `mark`: SHA-256 of the mark in its memory; None: it could not be asked."""

    kernel_id: str
    path: str | None = None
    mark: str | None = None
    checkpoint: str | None = None
    no_checkpoint: NoCheckpoint | None = None
    busy: bool = False
    paused: bool = False
    samples: list[Sample] = Field(default_factory=list)


class OwnerName(_Stored):
    """Who was asked."""

    kind: OwnerKind
    namespace: str | None = None
    name: str


class Intent(_Stored):
    """One pause of the workspace. `report` is there once somebody found out how it came back."""

    version: int = 1
    id: str
    operation: str
    owner: OwnerName
    pod_uid: str | None = None
    namespace_id: str | None = None
    requested: UTCTime
    stateful: bool
    server_mark: str
    kernels: list[KernelPromise] = Field(default_factory=list)
    environment: dict[str, Any] = Field(default_factory=dict)
    connections: int | None = None
    state: IntentState = "asked"
    resumed_pod_uid: str | None = None
    resumed_namespace_id: str | None = None
    report: WorkspaceResumeReport | None = None


class IntentFile:
    """`<checkpoint_dir>/workspace/intent.json`, 0600, replaced atomically. Everything here blocks."""

    def __init__(self, checkpoint_dir: Path) -> None:
        self.path = checkpoint_dir / "workspace" / "intent.json"

    def read(self) -> Intent | None:
        """The last promise; None if there is none or it cannot be understood."""
        content = read_private_json(self.path)
        if content is None:
            return None
        try:
            return Intent.model_validate(content)
        except ValueError:
            return None

    def write(self, intent: Intent) -> None:
        """Write and sync, then read back: nothing is asked of the owner before this is on disk. Raises OSError."""
        write_private_json(self.path, intent.model_dump(mode="json"), sync=True)
        again = self.read()
        if again is None or again.model_dump(mode="json") != intent.model_dump(mode="json"):
            raise OSError("the promise read back is not the one that was written")


class ServerMark:
    """A random mark in this server's memory. A restored server still knows it, a new one cannot."""

    def __init__(self) -> None:
        self._value = secrets.token_bytes(32)

    def renew(self) -> str:
        """Take a new one; returns its SHA-256 (hex)."""
        self._value = secrets.token_bytes(32)
        return self.digest

    @property
    def digest(self) -> str:
        """SHA-256 of the mark (hex): what goes to disk."""
        return hashlib.sha256(self._value).hexdigest()


def fits(mark: object, digest: str | None) -> bool:
    """Whether a mark that was shown (hex) is the one whose digest was noted."""
    if not isinstance(mark, str) or digest is None:
        return False
    try:
        return hashlib.sha256(bytes.fromhex(mark)).hexdigest() == digest
    except ValueError:
        return False


def mismatches(before: Iterable[Sample], now: Iterable[dict[str, Any]]) -> list[str]:
    """Names whose digest is another one now, or that are gone."""
    found = {str(item.get("name")): item.get("digest") for item in now}
    return [sample.name for sample in before if found.get(sample.name) != sample.digest]
