# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The step of a pause that takes the exact snapshot, after the checkpoint is on disk and before the process ends.

A pause without one is a pause all the same; what is then lost is asked about, as if there were no snapshots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import PauseError
from .kernel_channel import control_request
from .launch import output_file
from .operations import Cancelled
from .snapshot.engine import NotTaken, Subject

if TYPE_CHECKING:
    from pathlib import Path

    from .operations import RunningOperation
    from .pauser import Pauser
    from .snapshot.engine import Frozen, SnapshotEngine
    from .states import Cause, Loss, Reason

#: Others stop the server and give it seconds: they go to the checkpoint.
_NO_TIME: tuple[Cause, ...] = ("stop", "exit")


class SnapshotStep:
    """One kernel's snapshot inside its pause. `reasons`: why there is none, once that is known."""

    def __init__(self, pauser: Pauser, operation: RunningOperation, kernel_id: str, cause: Cause) -> None:
        self._pauser = pauser
        self._operation = operation
        self._kernel_id = kernel_id
        self._km = pauser.kernel_manager.get_kernel(kernel_id)
        self._provisioner = pauser.kernels.provisioner(kernel_id)
        self._alone = self._provisioner.by_snapshot_only  # nothing else can keep this kernel, and nobody can be asked
        self._wanted = self._alone or cause not in _NO_TIME
        self._frozen: Frozen | None = None
        self.reasons: list[Reason] = []

    @property
    def _engine(self) -> SnapshotEngine | None:
        return self._pauser.snapshots if self._wanted else None

    @property
    def snapshot(self) -> str | None:
        """The complete snapshot's id."""
        return self._frozen.manifest.id if self._frozen is not None else None

    @property
    def bytes(self) -> int | None:
        """Its size on disk."""
        return self._frozen.manifest.bytes if self._frozen is not None else None

    async def expected(self) -> bool:
        """Whether a snapshot can be taken, as far as is known. Raises PauseError where one is required and cannot."""
        self.reasons = await self._pauser.snapshot_obstacles(self._kernel_id) if self._engine is not None else []
        if self._engine is not None and self.reasons and self._engine.availability.mode == "on":
            raise self.required()
        return self._engine is not None and not self.reasons

    def required(self) -> PauseError:
        """The error where a pause needs a snapshot and has none."""
        first = self.reasons[0]
        return PauseError("snapshot_required", why=first.code, detail=first.message, reasons=_plain(self.reasons))

    async def take(self, checkpoint: str | None) -> bool:
        """Take it; True when it is complete and the process is stopped. Else the process runs as before.

        Raises PauseError where a snapshot is required, and Cancelled.
        """
        engine, pid = self._engine, self._provisioner.kernel_pid
        if engine is None or pid is None:
            return False
        self._operation.enter("snapshotting")
        subject = await self._subject(pid, checkpoint)
        try:
            self._frozen = await engine.take(subject, self._operation.progress)
        except NotTaken as why:
            self.reasons = why.reasons
            if engine.availability.mode == "on":
                raise self.required() from why
            await self._ask({"op": "hold"})  # only the checkpoint comes back: cells that wait are answered
            return False
        if self._operation.cancel_requested.is_set():
            raise Cancelled
        return True

    async def let_go(self) -> None:
        """The pause is off: the process goes on, the snapshot is deleted."""
        frozen, self._frozen = self._frozen, None
        if frozen is not None:
            await frozen.let_go()

    async def _subject(self, pid: int, checkpoint: str | None) -> Subject:
        await self._ask({"op": "hold", "park": True})
        renewed = await self._ask({"op": "mark", "renew": True})
        session = await self._pauser.session_of(self._kernel_id)
        return Subject(
            pid=pid,
            kernel_id=self._kernel_id,
            kernel_name=self._km.kernel_name,
            path=(session or {}).get("path"),
            transport=self._km.transport,
            ports=list(self._km.ports) if self._km.transport == "tcp" else [],
            checkpoint=checkpoint,
            mark=(renewed or {}).get("digest"),
            output=self._output(),
            stopped=self._provisioner.cut_off,
            going_on=self._provisioner.reconnect,
        )

    def _output(self) -> Path:
        return output_file(self._km.connection_file, self._kernel_id)

    async def _ask(self, content: dict[str, Any]) -> dict[str, Any] | None:
        if self._alone:
            return None
        return await control_request(self._km, content, self._pauser.settings.control_timeout)


def not_exact(losses: list[Loss]) -> list[Loss]:
    """What is lost even where the whole process comes back: connections to other programs come back closed."""
    return [loss for loss in losses if "socket" in loss.type.lower() or "connection" in loss.type.lower()]


def _plain(reasons: list[Reason]) -> list[dict[str, Any]]:
    return [one.model_dump(mode="json") for one in reasons]
