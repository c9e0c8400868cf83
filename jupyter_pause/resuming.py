# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The steps of bringing one kernel back from its checkpoint, and the proof that it is back.

Whatever fails leaves the kernel paused and the checkpoint untouched, so that it can be tried again.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from .errors import PauseError
from .machine import differences_with_machine
from .operations import Cancelled
from .states import BufferProof, Loss, Proof, ResumeReport

if TYPE_CHECKING:
    from pathlib import Path

    from .checkpoint.store import CheckpointManifest
    from .operations import RunningOperation
    from .pauser import Pauser

POLL_INTERVAL = 0.02


class ResumeRun:
    """Resumes one kernel inside an operation."""

    def __init__(self, pauser: Pauser, operation: RunningOperation, kernel_id: str, checkpoint_id: str) -> None:
        self._pauser = pauser
        self._operation = operation
        self._kernel_id = kernel_id
        self._checkpoint_id = checkpoint_id
        self._provisioner = pauser.kernels.provisioner(kernel_id)

    async def run(self) -> ResumeReport:
        """Do it. Raises PauseError or Cancelled with the kernel still paused."""
        pauser, operation = self._pauser, self._operation
        began = pauser.clock.monotonic()
        operation.enter("checking")
        manifest = await self._verify()
        operation.enter("starting")
        result_file = pauser.load_result_path(self._kernel_id)
        await asyncio.to_thread(result_file.unlink, missing_ok=True)
        operation.progress(0, manifest.bytes)
        try:
            await self._provisioner.reclaim(pauser.load_file(self._checkpoint_id, result_file))
            operation.enter("restoring")
            result, differences = await asyncio.gather(
                self._wait_for_load(result_file), differences_with_machine(manifest, pauser.settings.image)
            )
            operation.enter("proving")
            report = self._prove(manifest, result, began)
            report.differences = differences
            operation.point_of_no_return()
            self._provisioner.settle()
        except BaseException:
            await self._back_to_paused()
            raise
        finally:
            await asyncio.to_thread(result_file.unlink, missing_ok=True)
        await pauser.owner.record(self._kernel_id, state="running", checkpoint=None)
        operation.progress(manifest.bytes, manifest.bytes)
        return report

    async def _verify(self) -> CheckpointManifest:
        """Signature, sizes and frames before anything is loaded; raw buffers too where the setting says so."""
        before = self._pauser.settings.verify == "before"
        return await self._pauser.checkpoints.verified_manifest(
            self._checkpoint_id, buffers=before, kernel_id=self._kernel_id
        )

    async def _wait_for_load(self, result_file: Path) -> dict[str, Any]:
        clock, limit = self._pauser.clock, self._pauser.settings.resume_timeout
        began = clock.monotonic()
        while True:
            result = await asyncio.to_thread(_read_json, result_file)
            if result is not None:
                return result
            if self._operation.cancel_requested.is_set():
                raise Cancelled
            if self._provisioner.paused:  # the new process ended, and the provisioner holds the ports again
                raise PauseError("resume_failed", detail="The new process ended while it was loading.")
            if clock.monotonic() - began > limit:
                raise PauseError("resume_timeout", seconds=round(limit))
            await asyncio.sleep(POLL_INTERVAL)

    def _prove(self, manifest: CheckpointManifest, result: dict[str, Any], began: float) -> ResumeReport:
        """Only what the kernel itself compared counts; a load that failed is never called restored."""
        if result.get("status") != "ok":
            code = str(result.get("code") or "resume_failed")
            raise PauseError(code, detail=str(result.get("message") or ""))
        mismatched = [str(name) for name in result.get("mismatched") or []]
        losses = [Loss.model_validate(loss) for loss in result.get("losses") or []]
        outcome = result.get("outcome")
        if outcome == "restored" and (mismatched or losses):
            outcome = "partial"
        before = self._pauser.settings.verify == "before"
        buffers = BufferProof(state="ok" if before else "checking", bytes_total=manifest.bytes)
        if before:
            buffers.bytes_done = manifest.bytes
        return ResumeReport(
            kernel=self._kernel_id,
            at=self._pauser.clock.now(),
            outcome=outcome if outcome in ("restored", "partial") else "fresh",
            via="checkpoint",
            checkpoint=manifest.id,
            checkpoint_created=manifest.created,
            seconds=round(self._pauser.clock.monotonic() - began, 3),
            losses=losses,
            rebuilt=[str(name) for name in result.get("rebuilt") or []],
            proof=Proof(
                signature=True,
                frames=len(manifest.frames),
                compared=int(result.get("compared") or 0),
                mismatched=mismatched,
                buffers=buffers,
            ),
        )

    async def _back_to_paused(self) -> None:
        """End the half-started process and hold the ports again."""
        await self._provisioner.release()


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
