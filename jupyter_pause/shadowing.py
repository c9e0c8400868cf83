# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The step of a pause that tries the checkpoint out before the process ends, and what the pause says of it.

It never stops a pause by itself: what it finds is asked about like any other loss, and where it is not taken, or not to
its end, that is said in the report, the checkpoint and the operation.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from .checkpoint.shadow import Limits, NotTried, ShadowProcess
from .states import Loss, ShadowReport

if TYPE_CHECKING:
    from pathlib import Path

    from .operations import RunningOperation
    from .pauser import Pauser
    from .states import Cause

#: Causes of pauses that have only the time until the server is killed.
HURRIED: tuple[Cause, ...] = ("stop", "exit")


class ShadowStep:
    """One kernel's. `begin` while it writes, `finish` when all is written, `let_go` in any case."""

    def __init__(self, pauser: Pauser, operation: RunningOperation, kernel_id: str, cause: Cause) -> None:
        self._pauser = pauser
        self._operation = operation
        self._kernel_id = kernel_id
        self._process: ShadowProcess | None = None
        self._starting: asyncio.Task[None] | None = None
        #: Why this checkpoint is not to be tried out.
        self._skipped: str | None = None
        if cause in HURRIED:
            self._skipped = "stopping"
        if not pauser.settings.shadow_load:
            self._skipped = "off"
        #: What would not come back as it was, beyond what the kernel itself said.
        self.losses: list[dict[str, Any]] = []
        self.report = ShadowReport(state="not_checked", code="not_reached")

    def skip(self, code: str) -> None:
        """Do not try this checkpoint out, and say why."""
        self._skipped = code

    def begin(self, staging: Path) -> None:
        """Start the process, which imports while the kernel writes. Returns at once."""
        if self._skipped is not None or self._process is not None:
            return
        settings = self._pauser.settings
        provisioner = self._pauser.kernels.provisioner(self._kernel_id)
        self._process = ShadowProcess(
            provisioner.interpreter_argv,
            provisioner.kernel_pid or 0,
            staging,
            Limits(settings.shadow_load_timeout, settings.shadow_load_memory),
            self._pauser.clock,
        )
        self._starting = asyncio.get_running_loop().create_task(self._process.start())

    async def finish(self, staging: Path, manifest: dict[str, Any]) -> None:
        """Have the checkpoint loaded and compared; `losses` and `report` say what came of it. Never raises for it."""
        began = self._pauser.clock.monotonic()
        try:
            found = await self._try(staging, manifest)
        except NotTried as reason:
            self.report = ShadowReport(state="not_checked", code=reason.code, params=reason.params)
        except Exception as error:
            self._pauser.log.exception("jupyter-pause: trying a checkpoint out failed")
            self.report = ShadowReport(state="not_checked", code="failed", params={"detail": type(error).__name__})
        else:
            self._take(found, manifest)
        finally:
            await self.let_go()
        self.report.seconds = round(self._pauser.clock.monotonic() - began, 3)
        self._operation.model.shadow = self.report
        if self.losses:
            self._pauser.note(self._kernel_id, "shadow_found", losses=len(self.losses))
        elif self.report.code not in (None, "off", "fallback"):
            self._pauser.note(self._kernel_id, "shadow_" + str(self.report.code))

    async def _try(self, staging: Path, manifest: dict[str, Any]) -> dict[str, Any]:
        if self._skipped is not None:
            raise NotTried(self._skipped)
        self.begin(staging)
        assert self._process is not None
        assert self._starting is not None
        await self._starting
        return await self._process.load(manifest, self._is_hurried)

    def _take(self, found: dict[str, Any], manifest: dict[str, Any]) -> None:
        known = {(loss["name"], loss["path"]) for loss in manifest["losses"]}
        self.losses = [loss for loss in found["losses"] if (loss["name"], loss["path"]) not in known]
        self.report = ShadowReport(
            state="checked",
            compared=found["compared"],
            objects=found["objects"],
            unseen=found["unseen"],
            unchecked=[Loss.model_validate(loss) for loss in found["unchecked"]],
        )

    def _is_hurried(self) -> bool:
        return self._operation.cancel_requested.is_set() or self._operation.in_a_hurry

    async def let_go(self) -> None:
        """The process is ended and its folder is gone, however far it was."""
        if self._starting is not None:
            with contextlib.suppress(NotTried):
                await asyncio.shield(self._starting)
        if self._process is not None:
            await self._process.stop()

    def complete(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """The manifest that is signed: with what was found, and with whether it was tried out at all."""
        whole = {loss["path"]: loss for loss in self.losses if loss["path"] == loss["name"]}
        variables = [
            {**entry, "fate": "lost", "reason": whole[entry["name"]]["reason"]} if entry["name"] in whole else entry
            for entry in manifest["variables"]
        ]
        shadow = self.report.model_dump(mode="json")
        return {**manifest, "variables": variables, "losses": manifest["losses"] + self.losses, "shadow": shadow}
