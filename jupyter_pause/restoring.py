# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The steps of bringing one kernel back from its process snapshot, and the proof that it is the same process.

Whatever fails leaves the kernel paused, and snapshot and checkpoint untouched.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

from .kernel_channel import control_request
from .operations import Cancelled
from .snapshot.engine import NotRestored, wake
from .snapshot.sentences import reason
from .states import Proof, ResumeReport

if TYPE_CHECKING:
    from .operations import RunningOperation
    from .pauser import Pauser
    from .snapshot.engine import SnapshotEngine
    from .snapshot.store import SnapshotManifest

#: Seconds in which the restored process must show its mark, and seconds for each question.
PROOF_LIMIT = 60.0
_ANSWER = 2.0
POLL_INTERVAL = 0.05
#: Seconds that clients get to connect to it again (ZeroMQ tries every tenth of a second).
_CLIENTS = 3.0


class RestoreRun:
    """Restores one kernel inside an operation."""

    def __init__(
        self, pauser: Pauser, engine: SnapshotEngine, operation: RunningOperation, kernel_id: str, snapshot_id: str
    ) -> None:
        self._pauser = pauser
        self._engine = engine
        self._operation = operation
        self._kernel_id = kernel_id
        self._snapshot_id = snapshot_id
        self._km = pauser.kernel_manager.get_kernel(kernel_id)
        self._provisioner = pauser.kernels.provisioner(kernel_id)

    async def run(self) -> ResumeReport:
        """Do it. Raises NotRestored with the reason, PauseError or Cancelled; the kernel is then still paused."""
        pauser, operation, engine = self._pauser, self._operation, self._engine
        began = pauser.clock.monotonic()
        operation.enter("checking")
        manifest, criu = await engine.check(self._snapshot_id)
        if manifest.ports and sorted(manifest.ports) != sorted(self._km.ports):
            raise NotRestored(reason("port_taken"))
        await engine.verify(manifest, operation.progress)
        operation.enter("restoring")

        async def restore() -> int:
            await engine.restore(manifest, criu)
            return manifest.pid

        try:
            try:
                await self._provisioner.reclaim_from(restore, partial(wake, manifest.running))
            except ProcessLookupError:
                raise NotRestored(reason("snapshot_process_ended")) from None
            operation.enter("proving")
            ours = manifest.mark is not None
            proof = await (self._prove(manifest) if ours else self._wait_for_answer(manifest))
            if ours:
                await self._ask({"op": "renew_env", "env": dict(os.environ)})
            await self._provisioner.clients_are_back(_CLIENTS)
            if ours:
                await self._ask({"op": "unhold"})
            operation.point_of_no_return()
            self._provisioner.settle()
        except BaseException:
            await self._provisioner.release()
            raise
        await pauser.owner.record(self._kernel_id, state="running", checkpoint=None)
        operation.progress(manifest.bytes, manifest.bytes)
        return ResumeReport(
            kernel=self._kernel_id,
            at=pauser.clock.now(),
            outcome="restored",
            via="snapshot",
            snapshot=manifest.id,
            checkpoint=manifest.checkpoint,
            checkpoint_created=manifest.created,
            seconds=round(pauser.clock.monotonic() - began, 3),
            proof=proof,
        )

    async def _prove(self, manifest: SnapshotManifest) -> Proof:
        """The process shows the mark that only its memory has. Raises NotRestored when it cannot."""
        end = self._pauser.clock.monotonic() + PROOF_LIMIT
        nonce = secrets.token_hex(16)
        while True:
            answer = await self._ask({"op": "prove", "nonce": nonce})
            if answer is not None:
                break
            if self._operation.cancel_requested.is_set():
                raise Cancelled
            if self._provisioner.paused:  # it ended, and the provisioner holds the ports again
                raise NotRestored(reason("snapshot_process_ended"))
            if self._pauser.clock.monotonic() > end:
                raise NotRestored(reason("snapshot_not_proven"))
        if not _is_mark(answer, nonce, manifest):
            raise NotRestored(reason("snapshot_not_proven"))
        return Proof(signature=True, frames=len(manifest.images), compared=0, mark=True)

    async def _wait_for_answer(self, manifest: SnapshotManifest) -> Proof:
        """A kernel without our code has no mark: every byte of its memory was compared, and it answers."""
        end = self._pauser.clock.monotonic() + PROOF_LIMIT
        while self._provisioner.resuming:  # until it has answered on its shell channel
            if self._operation.cancel_requested.is_set():
                raise Cancelled
            if self._pauser.clock.monotonic() > end:
                raise NotRestored(reason("snapshot_not_proven"))
            await asyncio.sleep(POLL_INTERVAL)
        if self._provisioner.paused:
            raise NotRestored(reason("snapshot_process_ended"))
        return Proof(signature=True, frames=len(manifest.images))

    async def _ask(self, content: dict[str, Any]) -> dict[str, Any] | None:
        return await control_request(self._km, content, _ANSWER)


def _is_mark(answer: dict[str, Any], nonce: str, manifest: SnapshotManifest) -> bool:
    try:
        digest = hashlib.sha256(bytes.fromhex(str(answer.get("mark")))).hexdigest()
    except ValueError:
        return False
    return digest == manifest.mark and answer.get("nonce") == nonce and answer.get("pid") == manifest.pid


async def forget(engine: SnapshotEngine, snapshot_id: str | None) -> None:
    """Delete a snapshot that nothing will come back from any more."""
    if snapshot_id is not None:
        await asyncio.to_thread(engine.store.delete, snapshot_id)
