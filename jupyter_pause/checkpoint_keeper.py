# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which checkpoints somebody still needs; only the others are deleted."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from .errors import PauseError
from .pausing import summary
from .retention import Retention, RetentionPolicy

if TYPE_CHECKING:
    from .checkpoint.store import CheckpointManifest, CheckpointStore
    from .clock import Clock
    from .journal import Journal
    from .kernel_table import KernelTable
    from .owners.local import LocalOwner
    from .states import CheckpointSummary


class CheckpointKeeper:
    """Reads, verifies and deletes checkpoints for the kernels of this server."""

    def __init__(
        self,
        store: CheckpointStore,
        kernels: KernelTable,
        owner: LocalOwner,
        *,
        policy: RetentionPolicy,
        clock: Clock,
        journal: Journal,
        log: Any,
    ) -> None:
        self._store = store
        self._kernels = kernels
        self._owner = owner
        self._log = log
        self._retention = Retention(
            store,
            policy,
            used=self._claimed,
            delete=partial(self.delete, force=False),
            clock=clock,
            journal=journal,
            log=log,
        )

    async def summary(self, checkpoint_id: str | None) -> CheckpointSummary | None:
        """What a kernel's row shows of it; None when there is none, or it cannot be read."""
        if checkpoint_id is None:
            return None
        try:
            return summary(await asyncio.to_thread(self._store.manifest, checkpoint_id))
        except Exception:
            return None

    async def verified_manifest(
        self, checkpoint_id: str, *, buffers: bool, kernel_id: str | None = None
    ) -> CheckpointManifest:
        """Verify without unpickling; raises PauseError with older checkpoints of the session in `params`."""
        from .checkpoint.store import CheckpointError

        try:
            await asyncio.to_thread(self._store.verify, checkpoint_id, buffers=buffers)
            return await asyncio.to_thread(self._store.manifest, checkpoint_id)
        except CheckpointError as error:
            code = "checkpoint_missing" if error.code == "not_found" and kernel_id else error.code
            older = await self._older(checkpoint_id, kernel_id) if kernel_id else []
            params: dict[str, Any] = {**error.params, "checkpoint": checkpoint_id, "older": older}
            raise PauseError(code, **params) from error

    async def _older(self, checkpoint_id: str, kernel_id: str) -> list[dict[str, Any]]:
        """Other checkpoints of the same kernel: offered as a choice, never taken silently."""
        manifests = await asyncio.to_thread(self._store.list)
        return [
            summary(m).model_dump(mode="json") for m in manifests if m.kernel_id == kernel_id and m.id != checkpoint_id
        ]

    async def damaged_variables(self, checkpoint_id: str) -> list[str]:
        """Hash the raw buffers; the names of the variables whose bytes are not those that were written."""
        from .checkpoint.store import CheckpointError

        try:
            verification = await asyncio.to_thread(self._store.verify, checkpoint_id, buffers=True)
            return list(verification.damaged_variables)
        except CheckpointError as error:
            names: Any = error.params.get("variables")
            return [str(name) for name in names or ["?"]]

    def holder(self, checkpoint_id: str) -> str | None:
        """The kernel of this server that is paused, or is coming back, by this checkpoint."""
        for entry in self._kernels.entries():
            held = entry.checkpoint is not None and entry.checkpoint.id == checkpoint_id
            if held and entry.state in ("paused", "resuming") and entry.kernel_id in self._kernels:
                return entry.kernel_id
        return None

    async def used(self) -> set[str]:
        """Checkpoints that a paused session will come back from: of this server, and of others over the same folder."""
        elsewhere = await asyncio.to_thread(self._owner.held_elsewhere)
        return set(elsewhere) | {checkpoint_id for checkpoint_id in self._mine() if self._uses(checkpoint_id)}

    def _mine(self) -> set[str]:
        return {entry.checkpoint.id for entry in self._kernels.entries() if entry.checkpoint is not None}

    def _states_by(self, checkpoint_id: str) -> set[str]:
        """The states of the kernels that have this checkpoint."""
        entries = self._kernels.entries()
        return {e.state for e in entries if e.checkpoint is not None and e.checkpoint.id == checkpoint_id}

    def _uses(self, checkpoint_id: str) -> bool:
        """True while a paused kernel will come back from it."""
        return bool(self._states_by(checkpoint_id) & {"paused", "pausing", "resuming"})

    async def _claimed(self) -> set[str]:
        """Used ones, and those that a running kernel came from or saved last: its proof or a retry may read them."""
        return await self.used() | self._mine()

    async def clean_up(self) -> None:
        """Delete checkpoints that have expired. Raises nothing: it is nobody's request."""
        try:
            await self._retention.clean()
        except Exception:
            self._log.exception("jupyter-pause: deleting expired checkpoints failed; they stay")

    async def delete(self, checkpoint_id: str, *, force: bool) -> None:
        """Delete for good; raises PauseError `checkpoint_in_use` unless forced (never during an operation)."""
        elsewhere = await asyncio.to_thread(self._owner.held_elsewhere)
        if self._uses(checkpoint_id) or checkpoint_id in elsewhere:
            at_work = bool(self._states_by(checkpoint_id) & {"pausing", "resuming"})
            if elsewhere.get(checkpoint_id, False) or at_work or not force:
                raise PauseError("checkpoint_in_use")
        await asyncio.to_thread(self._store.delete, checkpoint_id)
        for entry in self._kernels.entries():
            if entry.checkpoint is not None and entry.checkpoint.id == checkpoint_id:
                entry.checkpoint = None
        self._kernels.announce()
