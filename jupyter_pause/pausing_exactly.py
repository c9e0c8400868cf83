# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Pausing a kernel without code of ours in it (another language, another launcher): the snapshot is all there is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .errors import PauseError
from .snapshotting import SnapshotStep
from .states import PauseReport

if TYPE_CHECKING:
    from .operations import RunningOperation
    from .pauser import Pauser
    from .pausing import PauseOptions

#: Seconds between two looks at a kernel that runs a cell.
POLL_INTERVAL = 0.1


class ExactPauseRun:
    """Pauses one kernel inside an operation. Whether it is busy is what Jupyter knows: the kernel cannot be asked."""

    def __init__(self, pauser: Pauser, operation: RunningOperation, kernel_id: str, options: PauseOptions) -> None:
        self.kernel_id = kernel_id
        self._pauser = pauser
        self._operation = operation
        self._options = options
        self._km = pauser.kernel_manager.get_kernel(kernel_id)
        self._provisioner = pauser.kernels.provisioner(kernel_id)
        self._exact = SnapshotStep(pauser, operation, kernel_id, options.cause)

    async def run(self) -> PauseReport:
        """Do it. Raises PauseError or Cancelled with the kernel running as before."""
        began = self._pauser.clock.monotonic()
        operation, owner = self._operation, self._pauser.owner
        released = False
        try:
            operation.enter("checking")
            if self._options.save_documents:
                await self._pauser.documents.ask([self.kernel_id], self._pauser.settings.save_timeout)
            await self._wait_until_idle()
            if not await self._exact.expected() or not await self._exact.take(None):
                raise self._exact.required()
            operation.enter("releasing")
            operation.point_of_no_return()
            snapshot = self._exact.snapshot
            await owner.record(self.kernel_id, state="paused", checkpoint=None, snapshot=snapshot)
            ended = await self._provisioner.release()
            released = True
        finally:
            if not released:
                await owner.record(self.kernel_id, state="running", checkpoint=None)
                await self._exact.let_go()
        return PauseReport(
            kernel=self.kernel_id,
            at=self._pauser.clock.now(),
            checkpoint=None,
            bytes=self._exact.bytes or 0,
            seconds=round(self._pauser.clock.monotonic() - began, 3),
            rss_before=ended.rss_before,
            process_gone=ended.gone,
            snapshot=snapshot,
            snapshot_bytes=self._exact.bytes,
        )

    async def _wait_until_idle(self) -> None:
        if self._options.when_busy == "interrupt" and self._pauser.kernels.is_busy(self.kernel_id):
            await self._km.interrupt_kernel()
        while self._pauser.kernels.is_busy(self.kernel_id):
            self._operation.raise_if_cancelled()
            if await self._provisioner.poll() is not None:
                raise PauseError("kernel_died")
            await asyncio.sleep(POLL_INTERVAL)
