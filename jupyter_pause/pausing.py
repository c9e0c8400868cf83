# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The steps of pausing one kernel, from the first check to the end of its process.

Whatever fails before the process is ended puts the kernel back to work as it was.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import machine
from .checkpoint.store import CheckpointError
from .errors import PauseError
from .inventory.gpu import used_memory
from .kernel_channel import control_request, shell_message
from .operations import Cancelled
from .shadowing import ShadowStep
from .snapshotting import SnapshotStep, not_exact
from .states import CheckpointSummary, DeviceMemory, Loss, PauseReport, Question

if TYPE_CHECKING:
    from pathlib import Path

    from .checkpoint.store import CheckpointManifest
    from .operations import RunningOperation
    from .pauser import Pauser
    from .states import Cause, OnLoss, WhenBusy

#: Seconds between two looks at the files by which the kernel tells how far it is.
POLL_INTERVAL = 0.1


@dataclass
class PauseOptions:
    """What the person chose. `wait_for_kernel` is False when the kernel captures by itself (`%pause`)."""

    on_loss: OnLoss
    when_busy: WhenBusy
    cause: Cause
    wait_for_kernel: bool = True
    save_documents: bool = True


class PauseRun:
    """Pauses one kernel inside an operation."""

    def __init__(self, pauser: Pauser, operation: RunningOperation, kernel_id: str, options: PauseOptions) -> None:
        self._pauser = pauser
        self._operation = operation
        self._kernel_id = kernel_id
        self._options = options
        self._store = pauser.store
        self._km = pauser.kernel_manager.get_kernel(kernel_id)
        self._provisioner = pauser.kernels.provisioner(kernel_id)
        self._pid = self._provisioner.kernel_pid
        self._exact = SnapshotStep(pauser, operation, kernel_id, options.cause)
        self._shadow = ShadowStep(pauser, operation, kernel_id, options.cause)
        self.staging: Path | None = None

    @property
    def kernel_id(self) -> str:
        """The kernel."""
        return self._kernel_id

    async def prepare(self) -> None:
        """Make the staging folder, so that a full or unwritable disk is known before anything begins."""
        self._pauser.settings.require_room()
        self.staging = await asyncio.to_thread(self._store.new_staging, await self._request())

    async def run(self) -> PauseReport:
        """Do it. Raises PauseError or Cancelled with the kernel running as before."""
        began = self._pauser.clock.monotonic()
        released = False
        try:
            self._operation.enter("checking")
            if self.staging is None:
                await self.prepare()
            if self._options.save_documents:
                await self._save_documents()
            if self._options.when_busy == "interrupt" and self._pauser.kernels.is_busy(self._kernel_id):
                await self._km.interrupt_kernel()
            result = await self._capture()
            written = await self._read_back()
            result["losses"] = [*(result.get("losses") or []), *self._shadow.losses]
            expected = await self._exact.expected()
            await self._settle_losses(result, expected)
            manifest = await self._seal(written)
            if expected:
                await self._take_exact(result, manifest)
            self._operation.enter("releasing")
            self._operation.point_of_no_return()
            released = True
            return await self._release(manifest, began)
        finally:
            if not released:
                await self._exact.let_go()
                await self._put_back()

    async def keep(self) -> CheckpointManifest:
        """Write and commit a checkpoint; the process stays, and answers cells `aborted` until it is told `unhold`.

        Losses are not asked about: this is the second net under a snapshot. Raises PauseError or Cancelled with the
        kernel running as before; a time limit of the caller does the same.
        """
        if self._provisioner.by_snapshot_only:  # it has no code of ours that could write one
            raise PauseError("not_pausable", detail="not_python", why="not_python")
        try:
            self._shadow.skip("fallback")
            await self.prepare()
            await self._capture()
            return await self._seal(await self._read_back())
        except BaseException:
            await self._put_back()
            raise

    async def _request(self) -> dict[str, Any]:
        session = await self._pauser.session_of(self._kernel_id)
        return {
            "version": 1,
            "kernel_id": self._kernel_id,
            "operation_id": self._operation.id,
            "kernel_name": self._km.kernel_name,
            "path": (session or {}).get("path"),
            "cause": self._options.cause,
            "created": self._pauser.clock.now().isoformat().replace("+00:00", "Z"),
            "skip_env": list(self._pauser.settings.skip_env),
        }

    async def _save_documents(self) -> None:
        answers = await self._pauser.documents.ask([self._kernel_id], self._pauser.settings.save_timeout)
        if answers.silent or answers.unsaved:
            self._pauser.note(self._kernel_id, "documents_unknown", silent=answers.silent, unsaved=len(answers.unsaved))

    # --- saving -------------------------------------------------------------------------------------------------

    async def _capture(self) -> dict[str, Any]:
        """Let the kernel write its state; returns its result. The message queues behind running cells."""
        assert self.staging is not None
        self._operation.raise_if_cancelled()
        if not self._options.wait_for_kernel:
            return await self._wait_for_result(self.staging)
        with shell_message(self._km, {"op": "capture", "staging": str(self.staging)}):
            return await self._wait_for_result(self.staging)

    async def _wait_for_result(self, staging: Path) -> dict[str, Any]:
        clock, settings = self._pauser.clock, self._pauser.settings
        asked = moved = clock.monotonic()
        last: dict[str, Any] | None = None
        cancel_sent = False
        while True:
            result = await asyncio.to_thread(self._store.read_result, staging)
            if result is not None:
                return self._judge(result)
            if self._operation.cancel_requested.is_set() and not cancel_sent:
                await asyncio.to_thread(self._store.request_cancel, staging)
                cancel_sent = True
                if last is None:  # not begun yet: the kernel will find the cancel file and do nothing
                    raise Cancelled
            await self._require_alive()
            progress = await asyncio.to_thread(self._store.read_progress, staging)
            if progress is not None and progress != last:
                if last is None:
                    self._operation.enter("saving")
                    self._shadow.begin(staging)
                last, moved = progress, clock.monotonic()
                self._operation.progress(int(progress.get("bytes_done") or 0), progress.get("bytes_total"))
            now = clock.monotonic()
            if last is not None and now - moved > settings.stall_timeout:
                await asyncio.to_thread(self._store.request_cancel, staging)
                raise PauseError("capture_stalled", seconds=round(settings.stall_timeout))
            if (
                last is None
                and now - asked > settings.answer_timeout
                and not self._pauser.kernels.is_busy(self._kernel_id)
            ):
                await asyncio.to_thread(self._store.request_cancel, staging)
                raise PauseError("kernel_not_answering", seconds=round(settings.answer_timeout))
            await asyncio.sleep(POLL_INTERVAL)

    def _judge(self, result: dict[str, Any]) -> dict[str, Any]:
        status = result.get("status")
        if status == "ok":
            self._operation.progress(int(result.get("bytes") or 0), int(result.get("bytes") or 0))
            return result
        if status == "cancelled":
            if self._operation.cancel_requested.is_set():
                raise Cancelled
            raise PauseError("capture_stalled", seconds=round(self._pauser.settings.stall_timeout))
        code = result.get("code")
        if code in ("no_space", "unwritable"):
            raise PauseError(code)
        raise PauseError("capture_failed", detail=str(result.get("message") or ""))

    async def _require_alive(self) -> None:
        if self._provisioner.kernel_pid != self._pid or await self._provisioner.poll() is not None:
            raise PauseError("kernel_died")

    # --- what would be lost -------------------------------------------------------------------------------------

    async def _settle_losses(self, result: dict[str, Any], exact: bool = False) -> None:
        """Ask when something would be lost that nobody accepted: "named before", also for a kernel that was busy.

        `exact`: a snapshot will bring back the process itself.
        """
        losses = [Loss.model_validate(loss) for loss in result.get("losses") or []]
        if exact:
            losses = not_exact(losses)
        if not losses or self._options.on_loss == "accept":
            return
        question = Question(code="would_lose", decisions=["accept", "refuse"], losses=losses)
        if await self._operation.ask(question, self._pauser.settings.decision_timeout) == "refuse":
            raise PauseError("would_lose", losses=losses)

    async def _take_exact(self, result: dict[str, Any], manifest: CheckpointManifest) -> None:
        """The exact snapshot; where it does not come, what the checkpoint lacks is a loss after all."""
        try:
            if await self._exact.take(manifest.id):
                return
            await self._require_alive_or_keep(manifest)
            await self._settle_losses(result)
        except (Cancelled, PauseError) as error:
            if not isinstance(error, PauseError) or error.code != "kernel_died":
                await asyncio.to_thread(self._store.delete, manifest.id)  # the kernel goes on, nobody will want it
            raise

    # --- commit and release -------------------------------------------------------------------------------------

    async def _read_back(self) -> dict[str, Any]:
        """Read all of it back from the disk and, beside that, have it loaded once; returns the manifest as written."""
        assert self.staging is not None
        staging, operation = self.staging, self._operation
        loop = asyncio.get_running_loop()
        operation.enter("saving")

        def progress(done: int, total: int) -> None:
            loop.call_soon_threadsafe(operation.progress, done, total)

        cancelled = operation.cancel_requested.is_set
        reading = asyncio.ensure_future(asyncio.to_thread(self._store.read_back, staging, progress, cancelled))
        try:
            trial = asyncio.ensure_future(self._shadow.finish(staging, await self._written(staging)))
            try:
                manifest = await reading
                if not trial.done():
                    operation.enter("rehearsing")
                await trial
            finally:
                trial.cancel()
                await asyncio.gather(trial, return_exceptions=True)
                await self._shadow.let_go()
        except CheckpointError as error:
            if error.code == "cancelled":
                raise Cancelled from error
            raise
        finally:
            await asyncio.gather(reading, return_exceptions=True)
        operation.raise_if_cancelled()
        return manifest

    async def _written(self, staging: Path) -> dict[str, Any]:
        """The manifest that the kernel wrote; the frames that it names are hashed before one is loaded."""
        return await asyncio.to_thread(self._store.written_manifest, staging)

    async def _seal(self, manifest: dict[str, Any]) -> CheckpointManifest:
        """Sign it with what was found out, sync, rename; only then may the process end."""
        assert self.staging is not None
        complete = {**self._shadow.complete(manifest), "machine": await machine.here(self._pauser.settings.image)}
        cancelled = self._operation.cancel_requested.is_set
        try:
            sealed = await asyncio.to_thread(self._store.seal, self.staging, complete, cancelled)
        except CheckpointError as error:
            if error.code == "cancelled":
                raise Cancelled from error
            raise
        self.staging = None
        await self._require_alive_or_keep(sealed)
        return sealed

    async def _require_alive_or_keep(self, manifest: CheckpointManifest) -> None:
        """A kernel that died after the commit lost nothing: its checkpoint stays and is offered."""
        try:
            await self._require_alive()
        except PauseError:
            self._pauser.offer(self._kernel_id, manifest)
            raise

    async def _release(self, manifest: CheckpointManifest, began: float) -> PauseReport:
        pauser = self._pauser
        # The record goes first: were the server to die between the two, the next one finds both the checkpoint and
        # the process, and takes the process.
        snapshot = self._exact.snapshot
        try:
            await pauser.owner.record(self._kernel_id, state="paused", checkpoint=manifest.id, snapshot=snapshot)
            before = await used_memory()
            released = await self._provisioner.release()
        except Exception as error:
            await pauser.owner.record(self._kernel_id, state="running", checkpoint=None)
            await self._exact.let_go()
            await self._unhold()
            raise PauseError("release_failed", detail=type(error).__name__) from error
        return PauseReport(
            kernel=self._kernel_id,
            at=pauser.clock.now(),
            checkpoint=manifest.id,
            bytes=manifest.bytes,
            written=manifest.written,
            seconds=round(pauser.clock.monotonic() - began, 3),
            rss_before=released.rss_before,
            process_gone=released.gone,
            vram=await _device_memory(before),
            shadow=self._shadow.report,
            snapshot=snapshot,
            snapshot_bytes=self._exact.bytes,
            snapshot_reasons=self._exact.reasons,
        )

    async def _put_back(self) -> None:
        """After a failure or a cancellation: no half checkpoint stays, cells run again."""
        await self._shadow.let_go()
        if self.staging is not None:
            staging, self.staging = self.staging, None
            await asyncio.to_thread(self._store.request_cancel, staging)
            await self._unhold()
            await asyncio.to_thread(self._store.discard_staging, staging)
        else:
            await self._unhold()

    async def _unhold(self) -> None:
        await control_request(self._km, {"op": "unhold"}, timeout=self._pauser.settings.control_timeout)


async def _device_memory(before: dict[str, int]) -> list[DeviceMemory]:
    """What the GPUs that were read before say now (S43)."""
    after = await used_memory() if before else {}
    return [DeviceMemory(device=name, before=used, after=after.get(name)) for name, used in before.items()]


def summary(manifest: CheckpointManifest) -> CheckpointSummary:
    """A manifest in one line."""
    return CheckpointSummary(id=manifest.id, created=manifest.created, bytes=manifest.bytes)
