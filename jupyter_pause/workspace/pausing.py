# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The steps of pausing a whole workspace, from the first save to the moment when its processes are frozen or ended.

Whatever fails before that gives the pod back to the person as it was. After the promise is on disk no connection leaves
the pod until it thaws or the limit passes (docs/developers/cluster.md).
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jupyter_pause.errors import PauseError, as_pause_error
from jupyter_pause.inventory.connections import read_process
from jupyter_pause.kernel_channel import control_request
from jupyter_pause.operations import Cancelled
from jupyter_pause.pausing import PauseOptions, PauseRun

from .intent import Intent, KernelPromise, OwnerName, Sample
from .thaw import Gap, GapWatch, judge

if TYPE_CHECKING:
    from datetime import datetime

    from jupyter_pause.operations import RunningOperation
    from jupyter_pause.owners.base import ReleaseAnswer
    from jupyter_pause.pauser import Pauser

    from .pauser import WorkspacePauser

#: Variables of each kernel that are compared after the snapshot.
SAMPLES = 20
#: Tries to take a request back, and seconds between them.
TAKE_BACK_TRIES, TAKE_BACK_PAUSE = 3, 5.0


@dataclass(frozen=True)
class Thawed:
    """This process woke up in another pod. `gap`: what its clocks say; `asked`: when the pause was asked for."""

    gap: Gap
    intent: Intent | None
    asked: datetime | None = None


@dataclass
class _Kernel:
    kernel_id: str
    path: str | None
    paused: bool
    busy: bool = False
    bytes: int = 0
    promise: KernelPromise = field(init=False)

    def __post_init__(self) -> None:
        self.promise = KernelPromise(kernel_id=self.kernel_id, path=self.path, paused=self.paused)


class WorkspacePauseRun:
    """Pauses the workspace inside an operation.

    `joins`: somebody else has asked already (a culler, another tab, a laptop); there is no time for anything but the
    promise, and nothing is asked.
    """

    def __init__(
        self, workspace: WorkspacePauser, operation: RunningOperation, options: PauseOptions, *, joins: bool = False
    ) -> None:
        self._workspace = workspace
        self._pauser: Pauser = workspace.pauser
        self._operation = operation
        self._options = options
        self._joins = joins
        self._owner = workspace.owner
        self._settings = workspace.settings
        self._intent: Intent | None = None
        self._asked = False

    async def run(self, *, stateful: bool) -> Thawed | None:
        """Do it. None: the pod goes without a snapshot, or is being ended. Raises PauseError or Cancelled with
        everything put back."""
        self._operation.enter("checking")
        try:
            if self._joins:
                kernels = await self._look_at_kernels()
            elif stateful:
                await self._save_documents()
                kernels = await self._keep_checkpoints()
            else:
                kernels = await self._pause_kernels()
            self._operation.enter("draining")
            self._workspace.keep_from_culler(self._operation.model.kernels)
            await self._promise(kernels, stateful)
            await self._owner.quiet()
            self._operation.raise_if_cancelled()
            answer = None if self._joins else await self._ask()
            return await self._wait(held=answer is None or answer.kind == "held")
        except BaseException:
            await self._put_back()
            raise

    # --- checking and saving ------------------------------------------------------------------------------------

    async def _save_documents(self) -> None:
        kernels = list(self._operation.model.kernels)
        answers = await self._pauser.documents.ask(kernels, self._pauser.settings.save_timeout)
        if answers.silent or answers.unsaved:
            unsaved = len(answers.unsaved)
            self._pauser.journal.record("note", code="documents_unknown", silent=answers.silent, unsaved=unsaved)

    async def _look_at_kernels(self) -> list[_Kernel]:
        paths = await self._pauser.paths()
        found = []
        for kernel_id in self._operation.model.kernels:
            paused = self._pauser.kernels.is_paused(kernel_id)
            found.append(_Kernel(kernel_id, paths.get(kernel_id), paused))
        await asyncio.gather(*(self._look_at(kernel) for kernel in found if not kernel.paused))
        for kernel in found:
            if kernel.paused:
                kernel.promise.checkpoint = self._pauser.checkpoint_of(kernel.kernel_id)
        return found

    async def _look_at(self, kernel: _Kernel) -> None:
        reply = await self._control(kernel.kernel_id, {"op": "inventory", "wait": 0})
        if reply is None:
            kernel.promise.no_checkpoint = "not_pausable"
            return
        kernel.busy = kernel.promise.busy = bool(reply.get("busy"))
        variables = reply.get("variables") or []
        kernel.bytes = sum(int(v.get("bytes") or 0) for v in variables)

    async def _keep_checkpoints(self) -> list[_Kernel]:
        """Fallback checkpoints within the budget, biggest first. Busy kernels are left alone: the snapshot has them."""
        if self._options.when_busy == "interrupt":
            await self._interrupt_busy()
        kernels = await self._look_at_kernels()
        self._operation.enter("saving")
        clock = self._pauser.clock
        end = clock.monotonic() + self._settings.checkpoint_budget
        rate = (await asyncio.to_thread(self._pauser.journal.throughput)).pause
        for kernel in sorted(kernels, key=lambda k: k.bytes, reverse=True):
            if kernel.paused or kernel.promise.no_checkpoint is not None:
                continue
            if kernel.busy:
                kernel.promise.no_checkpoint = "busy"
                continue
            left = end - clock.monotonic()
            expected = rate.seconds(kernel.bytes) or 0.0
            if left <= 0 or expected > left:
                kernel.promise.no_checkpoint = "over_budget"
                continue
            await self._keep(kernel, left)
        return kernels

    async def _interrupt_busy(self) -> None:
        for kernel_id in self._operation.model.kernels:
            if not self._pauser.kernels.is_paused(kernel_id) and self._pauser.kernels.is_busy(kernel_id):
                await self._pauser.kernel_manager.get_kernel(kernel_id).interrupt_kernel()

    async def _keep(self, kernel: _Kernel, seconds: float) -> None:
        self._operation.raise_if_cancelled()
        try:
            run = PauseRun(self._pauser, self._operation, kernel.kernel_id, self._options)
            async with asyncio.timeout(seconds):
                manifest = await run.keep()
        except TimeoutError:
            kernel.promise.no_checkpoint = "over_budget"
        except Cancelled:
            raise
        except Exception as error:
            # The snapshot does not need it: what has no second net is named, and that is all.
            known = as_pause_error(error)
            kernel.promise.no_checkpoint = "not_pausable" if known and known.code == "not_pausable" else "failed"
            self._pauser.note(kernel.kernel_id, known.code if known else "capture_failed")
        else:
            kernel.promise.checkpoint = manifest.id
            self._pauser.offer(kernel.kernel_id, manifest)

    async def _pause_kernels(self) -> list[_Kernel]:
        """Without a snapshot every kernel is paused as on one machine: that is all that comes back."""
        kernels = await self._look_at_kernels()
        todo = [k for k in kernels if not k.paused and k.promise.no_checkpoint is None]
        await self._pauser.pause_in(self._operation, [k.kernel_id for k in todo], self._options)
        for kernel in todo:
            kernel.paused = kernel.promise.paused = True
            kernel.promise.checkpoint = self._pauser.checkpoint_of(kernel.kernel_id)
        return kernels

    # --- the promise --------------------------------------------------------------------------------------------

    async def _promise(self, kernels: list[_Kernel], stateful: bool) -> None:
        """Marks and intent, synced. Only now may anybody be asked. Raises PauseError `intent_unwritable`."""
        await asyncio.gather(*(self._mark(kernel) for kernel in kernels if not kernel.paused))
        workspace = self._workspace
        here = workspace.whereabouts
        self._intent = Intent(
            id=uuid.uuid4().hex,
            operation=self._operation.id,
            owner=OwnerName(kind=self._owner.kind, namespace=self._owner.namespace, name=self._owner.name),
            pod_uid=here.pod_uid or self._owner.view().pod_uid,
            namespace_id=here.namespace_id,
            requested=self._pauser.clock.now(),
            stateful=stateful or self._joins,
            server_mark=workspace.mark.renew(),
            kernels=[kernel.promise for kernel in kernels],
            environment=await workspace.environment(),
            connections=await self._count_connections(kernels),
        )
        try:
            await asyncio.to_thread(workspace.intents.write, self._intent)
        except OSError as error:
            raise PauseError("intent_unwritable", detail=type(error).__name__) from error

    async def _mark(self, kernel: _Kernel) -> None:
        reply = await self._control(kernel.kernel_id, {"op": "mark", "renew": True})
        digest = (reply or {}).get("digest")
        kernel.promise.mark = digest if isinstance(digest, str) else None
        if kernel.promise.mark is None or kernel.busy:
            return  # what a running cell changes cannot be compared
        reply = await self._control(kernel.kernel_id, {"op": "sample", "count": SAMPLES})
        if reply is not None and not reply.get("busy"):
            kernel.promise.samples = [Sample.model_validate(item) for item in reply.get("samples") or []]

    async def _count_connections(self, kernels: list[_Kernel]) -> int | None:
        pids = [self._pauser.kernels.pid_of(kernel.kernel_id) for kernel in kernels if not kernel.paused]

        def count() -> int:
            facts = [read_process(pid) for pid in pids if pid is not None]
            remote = [socket["remote"] for fact in facts for socket in fact.sockets or [] if socket["remote"]]
            return sum(1 for address in remote if not str(address[0]).startswith(("127.", "::1")))

        return await asyncio.to_thread(count)

    # --- asking and waiting -------------------------------------------------------------------------------------

    async def _ask(self) -> ReleaseAnswer | None:
        """The release itself. None: whether the request arrived is not known, so it is treated as if it had."""
        self._asked = True
        try:
            answer = await self._owner.release()
        except Exception as error:
            if getattr(error, "code", None) not in ("cluster_unreachable", "cluster_disconnected"):
                raise
            if await self._take_back() is True:
                raise
            return None
        self._workspace.note_time("asked", self._pauser.clock.now())
        if answer.at is not None:
            self._workspace.note_time("snapshot_started", answer.at)
        if answer.kind == "released" and self._intent is not None and self._intent.stateful:
            # Weak spot: with the add-on down the request goes straight through. What was saved is what comes back.
            self._pauser.journal.record("note", code="snapshot_skipped")
            self._intent.stateful = False
            await asyncio.to_thread(self._workspace.intents.write, self._intent)
        return answer

    async def _wait(self, *, held: bool) -> Thawed | None:
        """Until this process is frozen and wakes up elsewhere, is ended, or the limit passes."""
        self._operation.enter("snapshotting" if held else "releasing")
        if not held:
            self._operation.point_of_no_return()
        limit = self._settings.snapshot_timeout if held else self._settings.release_timeout
        thawed = await self._until_thawed(limit)
        if thawed is not None or self._workspace.stopping.is_set():
            return thawed
        if self._operation.cancel_requested.is_set():
            return await self._give_back(None)
        code = "snapshot_overdue" if held else "release_overdue"
        return await self._give_back(PauseError(code, seconds=round(limit)))

    async def _until_thawed(self, limit: float) -> Thawed | None:
        """Only time in which this process ran counts towards `limit` (seconds): frozen it could do nothing."""
        clock, step = self._pauser.clock, self._settings.step
        watch, awake = GapWatch(clock), 0.0
        while awake < limit:
            await self._sleep(step)
            gap = watch.look(step)
            if await self._is_elsewhere(gap):
                return Thawed(gap, self._intent, self._intent.requested if self._intent else None)
            if self._workspace.stopping.is_set():
                return None
            if self._operation.cancel_requested.is_set() and self._operation.model.cancellable:
                return None
            awake += step + min(max(gap.steady, 0.0), step)
        return None

    async def _sleep(self, seconds: float) -> None:
        await self._pauser.clock.sleep(seconds)

    async def _is_elsewhere(self, gap: Gap) -> bool:
        now = await asyncio.to_thread(self._workspace.identity.look)
        verdict = judge(self._workspace.whereabouts, now, gap)
        if verdict == "ask":
            return await self._workspace.owner_says_elsewhere()
        return verdict == "thawed"

    async def _give_back(self, error: PauseError | None) -> Thawed | None:
        """Take the request back so that the person has the pod again; raises `error`, or Cancelled for None.

        When it was too late the pod goes after all.
        """
        taken = await self._take_back()
        if taken is False:
            self._operation.model.cancellable = False
            self._operation.cancel_requested.clear()
            self._operation.enter("releasing")
            thawed = await self._until_thawed(self._settings.release_timeout)
            if thawed is not None or self._workspace.stopping.is_set():
                return thawed
            raise PauseError("release_overdue", seconds=round(self._settings.release_timeout))
        self._asked = False
        if taken is None:
            raise PauseError("take_back_failed")
        if error is None:
            raise Cancelled
        raise await self._failure() or error

    async def _failure(self) -> PauseError | None:
        """Whether the cluster says that the snapshot failed, now that connections may be opened again."""
        await self._owner.wake()
        reason = await self._owner.snapshot_failure()
        return None if reason is None else PauseError(reason.code, **reason.params)

    async def _take_back(self) -> bool | None:
        """True: it is off; False: too late; None: nobody could be reached."""
        for attempt in range(TAKE_BACK_TRIES):
            if attempt:
                await self._sleep(TAKE_BACK_PAUSE)
            try:
                taken = await self._owner.take_back()
            except Exception as error:
                self._pauser.journal.record("note", code=getattr(error, "code", "internal"))
                continue
            if taken:
                self._asked = False
            return taken
        return None

    # --- putting back -------------------------------------------------------------------------------------------

    async def _put_back(self) -> None:
        """Cells run again, the owner is followed again, and the promise is void."""
        if self._workspace.stopping.is_set():
            return
        if self._asked:
            # Something failed after the owner was asked: a pod that is frozen with nobody waiting helps nobody.
            await self._take_back()
        await self._owner.wake()
        await self._workspace.unhold(self._operation.model.kernels)
        if self._intent is not None:
            self._intent.state = "taken_back"
            try:
                await asyncio.to_thread(self._workspace.intents.write, self._intent)
            except OSError:
                self._pauser.journal.record("note", code="intent_unwritable")

    async def _control(self, kernel_id: str, content: dict[str, Any]) -> dict[str, Any] | None:
        if kernel_id not in self._pauser.kernel_manager:
            return None
        kernel = self._pauser.kernel_manager.get_kernel(kernel_id)
        return await control_request(kernel, content, self._settings.kernel_timeout)
