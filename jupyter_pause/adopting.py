# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Sessions of a server that is gone become this one's: paused ones stay paused, live ones go on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .kernel_channel import control_request
from .pausing import POLL_INTERVAL
from .states import MissedOutput

if TYPE_CHECKING:
    from .owners.local import Adopted
    from .pauser import Pauser
    from .states import CheckpointSummary


class Adopting:
    """Takes sessions over that the owner found."""

    def __init__(self, pauser: Pauser) -> None:
        self._pauser = pauser
        self._kernels = pauser.kernels

    async def take_over(self, adopted: Adopted) -> None:
        """A session of an earlier server is ours now."""
        record = adopted.record
        if record is not None:
            entry = self._kernels.entry(adopted.kernel_id)
            entry.aborted_cells = record.aborted_cells
            entry.aborted_notebook_cells = record.aborted_notebook_cells
            self._pauser.outputs.note(adopted.kernel_id, record.missed_output)
        if adopted.live:
            await self._live(adopted.kernel_id, adopted.server_seen)
            return
        self.paused(adopted.kernel_id, await self._pauser.checkpoints.summary(adopted.checkpoint), adopted.since)
        await self._pauser.keep_snapshot(adopted.kernel_id, record.snapshot if record is not None else None)

    def paused(self, kernel_id: str, checkpoint: CheckpointSummary | None, since: datetime) -> None:
        """A paused session was taken over from disk, or begins paused."""
        entry = self._kernels.entry(kernel_id)
        entry.checkpoint = checkpoint
        self._kernels.show(kernel_id, "paused")
        entry.since = since

    async def _live(self, kernel_id: str, server_seen: datetime | None) -> None:
        """A live kernel was taken over from a server that is gone; a pause that it was in the middle of is off."""
        if await self._kernels.really_busy(kernel_id):
            # Jupyter Server starts from "idle"; its culler would end a cell that runs long without printing.
            self._pauser.kernel_manager.get_kernel(kernel_id).execution_state = "busy"
        await self._note_output_without_server(kernel_id, server_seen)
        if await self._let_go(kernel_id, self._pauser.settings.adoption_timeout):
            self._kernels.announce()
            return
        self._kernels.show(kernel_id, "unknown", code="adopting")
        self._pauser.background(self._let_go_later(kernel_id))

    async def _note_output_without_server(self, kernel_id: str, server_seen: datetime | None) -> None:
        """A cell that ran while the kernel had no server may have printed: nobody could count that."""
        status = await self._kernels.ask_status(kernel_id)
        if status is None or server_seen is None:
            return
        now = self._pauser.clock.now()
        alone = status.get("ended_alone_at")
        until = now if status.get("busy") else datetime.fromtimestamp(alone, UTC) if alone else None
        if until is not None and until > server_seen:
            missed = MissedOutput(since=server_seen, until=min(until, now), cause="no_server")
            self._pauser.outputs.note(kernel_id, missed)

    async def _let_go(self, kernel_id: str, timeout: float) -> bool:
        """Lift the hold of a cut-short pause; False when a capture still holds the kernel after `timeout` seconds.

        The capture's staging folder is gone, so it ends soon; until then cells would be aborted.
        """
        clock, kernel = self._pauser.clock, self._pauser.kernel_manager.get_kernel(kernel_id)
        limit = clock.monotonic() + timeout
        while True:
            reply = await control_request(kernel, {"op": "unhold"}, self._pauser.settings.control_timeout)
            if reply is not None and not reply.get("held"):
                return True
            if reply is None or clock.monotonic() > limit or kernel_id not in self._kernels:
                return False
            await clock.sleep(POLL_INTERVAL)

    async def _let_go_later(self, kernel_id: str) -> None:
        await self._let_go(kernel_id, self._pauser.settings.stall_timeout)
        if kernel_id in self._kernels and self._kernels.entry(kernel_id).state == "unknown":
            self._kernels.show(kernel_id, "running")
