# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The one state machine: the only place that decides what happens next.

REST, the command line, the magics and everything else that pauses or resumes goes through :class:`Pauser`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .adopting import Adopting
from .checkpoint_keeper import CheckpointKeeper
from .errors import PauseError
from .kernel_channel import control_request
from .kernel_table import KernelEntry, KernelTable
from .operation_book import OperationBook
from .operations import RunningOperation
from .pausing import PauseOptions, PauseRun, summary
from .pausing_exactly import ExactPauseRun
from .restoring import RestoreRun, forget
from .resuming import ResumeRun
from .retention import RetentionPolicy
from .server_state import server_state
from .snapshot.engine import NotRestored
from .snapshot.sentences import reason as snapshot_reason
from .snapshotting import not_exact
from .states import (
    Cause,
    Inventory,
    Loss,
    OnExit,
    OnLoss,
    Operation,
    OperationKind,
    PauseRequest,
    Reason,
    ResumeReport,
    ResumeRequest,
    ServerState,
    SnapshotOutlook,
    State,
    StopReport,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from .checkpoint.store import CheckpointManifest, CheckpointStore
    from .clock import Clock
    from .documents import DocumentSaver
    from .journal import Journal
    from .missed_output import OutputWatch
    from .owners.local import Adopted, LocalOwner
    from .snapshot.engine import SnapshotEngine
    from .workspace.pauser import WorkspacePauser

AnyPauseRun = PauseRun | ExactPauseRun


@dataclass
class PauserSettings:
    """What app.py reads from the configuration. Times are seconds."""

    checkpoint_dir: Path
    skip_env: list[str]
    verify: str = "after"
    save_timeout: float = 10.0
    answer_timeout: float = 60.0
    stall_timeout: float = 120.0
    decision_timeout: float = 600.0
    control_timeout: float = 5.0
    scan_timeout: float = 20.0
    resume_timeout: float = 1800.0
    adoption_timeout: float = 2.0
    shadow_load: bool = True
    shadow_load_timeout: float = 60.0
    shadow_load_memory: int = 0
    on_exit: OnExit = "discard"
    #: The container's image; None: not known, or no container.
    image: str | None = None
    #: Why the mode is `local` although something of a cluster is here.
    environment: Reason | None = None
    retention: RetentionPolicy = field(default_factory=RetentionPolicy)

    def require_room(self) -> None:
        """Raise PauseError `unwritable` when nothing can be written where checkpoints go."""
        if not os.access(self.checkpoint_dir, os.W_OK | os.X_OK):
            raise PauseError("unwritable")


class Pauser:
    """Pauses and resumes kernels; one operation per kernel at a time."""

    def __init__(
        self,
        *,
        kernel_manager: Any,
        session_manager: Any,
        store: CheckpointStore,
        owner: LocalOwner,
        journal: Journal,
        clock: Clock,
        settings: PauserSettings,
        documents: DocumentSaver,
        outputs: OutputWatch,
        emit: Callable[[str, dict[str, Any]], None],
        log: Any,
        runtime_dir: Path,
        idle_clock_anew: Callable[[], None] = lambda: None,
        snapshots: SnapshotEngine | None = None,
    ) -> None:
        """`idle_clock_anew` is called when something came back: from then on the server counts as used (S10).

        `snapshots`: takes exact snapshots beside the checkpoints, where they can be had; None: nobody can.
        """
        self.kernel_manager = kernel_manager
        self.session_manager = session_manager
        self.store = store
        self.owner = owner
        self.journal = journal
        self.clock = clock
        self.settings = settings
        self.documents = documents
        self.outputs = outputs
        self.log = log
        self._runtime_dir = runtime_dir
        self.idle_clock_anew = idle_clock_anew
        self.snapshots = snapshots
        self.started = clock.now()
        #: The whole pod's part (workspace/pauser.py); None where nobody can pause more than kernels.
        self.workspace: WorkspacePauser | None = None
        #: How the newest resume of this server ended.
        self.last_resume: ResumeReport | None = None
        #: What the last stop of an earlier server kept.
        self.last_stop: StopReport | None = None
        #: Set once the sessions of an earlier server have been taken over: before, no answer would be the truth.
        self.taken_over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_progress_event = 0.0
        self.kernels = KernelTable(
            kernel_manager,
            clock,
            journal,
            emit=emit,
            workspace_event=lambda: {"state": "unknown"} if self.workspace is None else self.workspace.event(),
            control_timeout=lambda: settings.control_timeout,
        )
        self.operations = OperationBook(
            clock, journal, log, changed=self._operation_changed, ended=self._operation_ended, spawn=self.background
        )
        self.checkpoints = CheckpointKeeper(
            store, self.kernels, owner, policy=settings.retention, clock=clock, journal=journal, log=log
        )
        self._adopting = Adopting(self)

    # --- looking ------------------------------------------------------------------------------------------------

    async def session_of(self, kernel_id: str) -> dict[str, Any] | None:
        """The session model that uses the kernel, if any."""
        for model in await self.session_manager.list_sessions():
            if (model.get("kernel") or {}).get("id") == kernel_id:
                return dict(model)
        return None

    async def state(self) -> ServerState:
        """Everything of `GET state`."""
        return await server_state(self)

    async def inventory(self, kernel_id: str, wait: float) -> Inventory:
        """What will be restored (design.md 5.1); waits up to `wait` seconds for a complete scan."""
        from .inventory import build_inventory
        from .inventory.exact import with_snapshot

        provisioner = self.kernels.provisioner(kernel_id)
        reply = None
        if not provisioner.paused and not provisioner.by_snapshot_only:
            kernel = self.kernel_manager.get_kernel(kernel_id)
            content = {"op": "inventory", "wait": wait}
            reply = await control_request(kernel, content, wait + self.settings.control_timeout)
        session = await self.session_of(kernel_id)
        inventory = await build_inventory(
            reply,
            kernel_id=kernel_id,
            pid=None if provisioner.paused else provisioner.kernel_pid,
            root_dir=Path(self.owner.root_dir),
            notebook_path=(session or {}).get("path"),
            checkpoint_dir=self.settings.checkpoint_dir,
            journal=self.journal,
            clock=self.clock,
        )
        return with_snapshot(inventory, await self._outlook(kernel_id) if not provisioner.paused else None)

    # --- operations ---------------------------------------------------------------------------------------------

    def note(self, kernel_id: str, code: str, **numbers: Any) -> None:
        """Write something to the journal that changes no state."""
        self.journal.record("note", kernel_id=kernel_id, code=code, **numbers)

    def _operation_changed(self, operation: RunningOperation, important: bool) -> None:
        now = self.clock.monotonic()
        if not important and now - self._last_progress_event < 0.5:
            return
        self._last_progress_event = now
        record = operation.snapshot()
        if operation.running:
            for kernel_id in record.kernels:
                if self.operations.of(kernel_id) is operation:
                    self._mirror_phase(kernel_id, record)
        self.kernels.publish(
            "operation",
            {
                "operation": record.id,
                "kind": record.kind,
                "kernels": record.kernels,
                "state": record.state,
                "phase": record.phase,
                "elapsed": record.elapsed,
                "bytes_done": record.bytes_done,
                "bytes_total": record.bytes_total,
                "cancellable": record.cancellable,
                "code": record.error.code if record.error else None,
            },
        )

    def _mirror_phase(self, kernel_id: str, record: Operation) -> None:
        entry = self.kernels.entry(kernel_id)
        state: State = "pausing" if record.kind == "pause" else "resuming"
        if entry.state == state and entry.phase != record.phase:
            self.kernels.show(kernel_id, state, phase=record.phase, operation=record.id)

    def _operation_ended(self, operation: RunningOperation, error: PauseError | None) -> None:
        """Its kernels leave the "-ing" state, whatever happened."""
        if operation.model.scope == "workspace":
            if self.workspace is not None:
                self.workspace.left(operation, error)
        else:
            for kernel_id in operation.model.kernels:
                self._leave(kernel_id, error)
        if operation.model.kind == "pause" and error is None and not operation.cancel_requested.is_set():
            self.background(self.checkpoints.clean_up())

    def _leave(self, kernel_id: str, error: PauseError | None) -> None:
        entry = self.kernels.entry(kernel_id)
        code = error.code if error else None
        if entry.state == "pausing":
            self.kernels.show(kernel_id, "running", outcome=entry.outcome, code=code)
        elif entry.state == "resuming":
            self.kernels.show(kernel_id, "paused", outcome=entry.outcome, code=code)
        entry.operation = None

    async def cancel(self, operation_id: str) -> Operation:
        """Cancel an operation and wait until everything is put back."""
        return await self.operations.cancel(operation_id, self.settings.control_timeout * 2)

    # --- pause --------------------------------------------------------------------------------------------------

    async def pause(self, request: PauseRequest) -> Operation:
        """Begin a pause; raises PauseError when it is refused (nothing has changed then)."""
        if request.scope == "workspace":
            return await self.require_workspace().pause(request)
        kernels = self._chosen(request.kernels)
        await self.operations.until_decided(kernels)
        self.operations.require_free(kernels)
        todo = [kernel_id for kernel_id in kernels if not self.kernels.provisioner(kernel_id).paused]
        operation = self.operations.begin("pause", todo or kernels, request.cause)
        if not todo:  # paused already: asking twice is not an error
            self._finish_at_once(operation)
            return operation.snapshot()
        try:
            self.settings.require_room()
            for kernel_id in todo:
                await self._precheck(kernel_id, request)
        except BaseException:
            self.operations.abandon(operation)
            raise
        for kernel_id in todo:
            self.kernels.show(kernel_id, "pausing", phase="checking", operation=operation.id)
        options = PauseOptions(request.on_loss, request.when_busy, request.cause)
        runs = [self._pause_run(operation, kernel_id, options) for kernel_id in todo]
        self.operations.launch(operation, self._pause_all(operation, runs))
        return operation.snapshot()

    def _pause_run(self, operation: RunningOperation, kernel_id: str, options: PauseOptions) -> AnyPauseRun:
        exactly = self.kernels.provisioner(kernel_id).by_snapshot_only
        return (ExactPauseRun if exactly else PauseRun)(self, operation, kernel_id, options)

    async def pause_from_kernel(self, kernel_id: str, on_loss: OnLoss, losses: list[Loss]) -> tuple[Operation, Path]:
        """`%pause`: the kernel captures by itself after its cell; returns the folder it writes to.

        `losses`: what the kernel found that a checkpoint would lose. Raises PauseError.
        """
        if self.kernels.provisioner(kernel_id).paused:
            raise PauseError("kernel_not_found")
        operation = self.operations.begin("pause", [kernel_id], "magic")
        run = PauseRun(self, operation, kernel_id, PauseOptions(on_loss, "wait", "magic", wait_for_kernel=False))
        try:
            if on_loss == "refuse":
                await self._require_no_loss(kernel_id, losses)
            await run.prepare()
        except BaseException:
            self.operations.abandon(operation)
            raise
        assert run.staging is not None
        staging = run.staging
        self.kernels.show(kernel_id, "pausing", phase="checking", operation=operation.id)
        self.operations.launch(operation, self._pause_all(operation, [run]))
        return operation.snapshot(), staging

    def _chosen(self, kernels: list[str] | None) -> list[str]:
        if kernels is None:
            kernels = self.kernels.pausable()
        kernels = list(dict.fromkeys(kernels))
        if not kernels:
            raise PauseError("nothing_to_pause")
        return kernels

    async def _precheck(self, kernel_id: str, request: PauseRequest) -> None:
        provisioner = self.kernels.provisioner(kernel_id)
        if await provisioner.poll() is not None:
            raise PauseError("kernel_dead")
        if provisioner.by_snapshot_only:
            await self._precheck_exact(kernel_id, request)
            return
        busy = await self.kernels.really_busy(kernel_id)
        if busy and request.when_busy == "refuse":
            raise PauseError("kernel_busy")
        if busy or request.on_loss == "accept":
            return
        await self._require_no_loss(kernel_id, await self._known_losses(kernel_id))

    async def _require_no_loss(self, kernel_id: str, losses: list[Loss]) -> None:
        """Raises PauseError `would_lose` for what would not come back."""
        losses = await self.lost_for_good(kernel_id, losses)
        if losses:
            raise PauseError("would_lose", losses=losses)

    async def lost_for_good(self, kernel_id: str, losses: list[Loss]) -> list[Loss]:
        """Of what a checkpoint would lose, what even a snapshot, where one can be had, would not bring back."""
        if losses and not await self.snapshot_obstacles(kernel_id):
            return not_exact(losses)
        return losses

    async def _precheck_exact(self, kernel_id: str, request: PauseRequest) -> None:
        """A kernel without our code: Jupyter knows whether it is busy, and only a snapshot keeps it."""
        if self.kernels.is_busy(kernel_id) and request.when_busy == "refuse":
            raise PauseError("kernel_busy")
        reasons = await self.snapshot_obstacles(kernel_id)
        if reasons:
            raise PauseError("snapshot_required", why=reasons[0].code, detail=reasons[0].message)

    async def _known_losses(self, kernel_id: str) -> list[Loss]:
        """Losses that a scan finds now. A kernel that does not answer in time is asked again after the capture."""
        kernel = self.kernel_manager.get_kernel(kernel_id)
        wait = self.settings.scan_timeout
        reply = await control_request(kernel, {"op": "inventory", "wait": wait}, wait + self.settings.control_timeout)
        return [Loss.model_validate(loss) for loss in (reply or {}).get("losses") or []]

    def _finish_at_once(self, operation: RunningOperation) -> None:
        entry = self.kernels.entry(operation.model.kernels[0])
        operation.model.checkpoint = entry.checkpoint.id if entry.checkpoint else None
        operation.model.outcome = entry.outcome
        self.operations.end_at_once(operation)

    async def _pause_all(self, operation: RunningOperation, runs: Sequence[AnyPauseRun]) -> None:
        """One kernel after the other: they share one disk. The first failure stops the rest."""
        for run in runs:
            kernel_id = run.kernel_id
            report = await run.run()
            entry = self.kernels.entry(kernel_id)
            entry.last_pause = report
            entry.checkpoint = await self.checkpoints.summary(report.checkpoint)
            await self.keep_snapshot(kernel_id, report.snapshot)
            operation.model.checkpoint = report.checkpoint
            operation.model.cancellable = True
            # What was written decides the time, and so the next estimate; what is shared costs none.
            written = report.bytes if report.written is None else report.written
            self.journal.record(
                "paused", kernel_id=kernel_id, operation=operation.id, bytes=written, seconds=report.seconds
            )
            self.kernels.show(kernel_id, "paused")

    def offer(self, kernel_id: str, manifest: CheckpointManifest) -> None:
        """The kernel died, but a complete checkpoint is there: show it at the kernel's row."""
        self.kernels.entry(kernel_id).checkpoint = summary(manifest)

    # --- resume -------------------------------------------------------------------------------------------------

    async def resume(self, request: ResumeRequest) -> Operation:
        """Begin a resume; raises PauseError when it is refused (nothing has changed then)."""
        if request.kernel is None and request.checkpoint is None:
            raise PauseError("bad_request", detail="give `kernel` or `checkpoint`")
        if request.kernel is not None:
            return await self._resume_kernel(request.kernel, request)
        return await self._resume_checkpoint(request)

    async def _resume_kernel(self, kernel_id: str, request: ResumeRequest) -> Operation:
        await self._require_not_held(kernel_id)
        await self.operations.until_decided([kernel_id])
        self.operations.require_free([kernel_id])
        provisioner = self.kernels.provisioner(kernel_id)
        entry = self.kernels.entry(kernel_id)
        if not provisioner.paused:
            await self.kernels.note_first_use(kernel_id)
            if entry.state == "ready" and request.from_ == "snapshot" and entry.snapshot is not None:
                return await self._resume_again(kernel_id, request)
            if entry.state == "ready" and request.checkpoint is None:
                operation = self.operations.begin("resume", [kernel_id], "user")
                self._finish_at_once(operation)
                return operation.snapshot()
            raise PauseError("not_paused")
        checkpoint_id = request.checkpoint or (entry.checkpoint.id if entry.checkpoint else None)
        snapshot_id = self._snapshot_for(entry, request, checkpoint_id)
        if checkpoint_id is None and snapshot_id is None:
            raise PauseError("checkpoint_missing")
        operation = self.operations.begin("resume", [kernel_id], "user")
        try:
            if snapshot_id is None and checkpoint_id is not None:
                await self._require_loadable(kernel_id, checkpoint_id, request)
        except BaseException:
            self.operations.abandon(operation)
            raise
        self.kernels.show(kernel_id, "resuming", phase="checking", operation=operation.id)
        self.operations.launch(operation, self._resume_one(operation, kernel_id, checkpoint_id, snapshot_id, request))
        return operation.snapshot()

    def _snapshot_for(self, entry: KernelEntry, request: ResumeRequest, checkpoint_id: str | None) -> str | None:
        """The snapshot to try, if any. Another checkpoint than the newest was asked for: then that is meant."""
        newest = entry.checkpoint is None or checkpoint_id == entry.checkpoint.id
        if request.from_ != "checkpoint" and newest and self.snapshots is not None and entry.snapshot is not None:
            return entry.snapshot
        if request.from_ == "snapshot":
            raise PauseError("snapshot_unavailable")
        return None

    async def _resume_again(self, kernel_id: str, request: ResumeRequest) -> Operation:
        """It came back by its checkpoint and was not used yet: end it, and try the snapshot that was kept."""
        entry = self.kernels.entry(kernel_id)
        checkpoint = entry.checkpoint.id if entry.checkpoint else None
        await self.owner.record(kernel_id, state="paused", checkpoint=checkpoint, snapshot=entry.snapshot)
        await self.kernels.provisioner(kernel_id).release()
        self.kernels.show(kernel_id, "paused")
        return await self._resume_kernel(kernel_id, request)

    async def _require_loadable(self, kernel_id: str, checkpoint_id: str, request: ResumeRequest) -> None:
        """Raises PauseError when the checkpoint is not sound, or was made in another environment."""
        manifest = await self.checkpoints.verified_manifest(checkpoint_id, buffers=False, kernel_id=kernel_id)
        await self._require_same_environment(kernel_id, manifest, request)

    async def _require_not_held(self, kernel_id: str) -> None:
        """A session that another server held is taken over now, if that server is gone."""
        if kernel_id in self.kernels:
            return
        if not any(r.kernel_id == kernel_id for r in await asyncio.to_thread(self.owner.sessions)):
            raise PauseError("kernel_not_found")
        adopted = await self.owner.adopt(kernel_id)
        if adopted is None:
            raise PauseError("session_held")
        await self.take_over(adopted)

    async def _resume_checkpoint(self, request: ResumeRequest) -> Operation:
        """A checkpoint without its kernel: a new session that begins paused, then is resumed like any other."""
        assert request.checkpoint is not None
        holder = self.checkpoints.holder(request.checkpoint)
        if holder is not None:  # also one that is coming back just now: refused there, instead of a second kernel here
            return await self._resume_kernel(holder, request)
        manifest = await self.checkpoints.verified_manifest(request.checkpoint, buffers=False)
        kernel_id = await self.owner.open_paused_session(
            kernel_name=manifest.kernel_name, path=request.path or manifest.path, checkpoint=manifest.id
        )
        self._adopting.paused(kernel_id, summary(manifest), self.clock.now())
        return await self._resume_kernel(kernel_id, request)

    async def _require_same_environment(
        self, kernel_id: str, manifest: CheckpointManifest, request: ResumeRequest
    ) -> None:
        argv = self.kernels.provisioner(kernel_id).interpreter_argv
        if os.path.isabs(argv[0]) and await asyncio.to_thread(shutil.which, argv[0]) is None:
            name = self.kernel_manager.get_kernel(kernel_id).kernel_name
            raise PauseError("interpreter_missing", name=name)
        if request.on_difference == "accept":
            return
        from .checkpoint.compare import differences_with_interpreter
        from .machine import differences_with_machine, is_asked_about

        differences = await differences_with_interpreter(manifest, argv)
        differences += await differences_with_machine(manifest, self.settings.image)
        if is_asked_about(differences):
            raise PauseError("environment_differs", differences=differences)

    async def _bring_back(
        self,
        operation: RunningOperation,
        kernel_id: str,
        checkpoint_id: str | None,
        snapshot_id: str | None,
        request: ResumeRequest,
    ) -> ResumeReport:
        """By the snapshot, else by the checkpoint with the reason: one after the other, never both at once."""
        fallback: Reason | None = None
        if snapshot_id is not None and self.snapshots is not None:
            try:
                return await RestoreRun(self, self.snapshots, operation, kernel_id, snapshot_id).run()
            except NotRestored as error:
                fallback = error.reason
                self.note(kernel_id, fallback.code)
                if request.from_ == "snapshot" or checkpoint_id is None:
                    raise _not_usable(fallback) from None
            await self._require_loadable(kernel_id, checkpoint_id, request)
        assert checkpoint_id is not None
        report = await ResumeRun(self, operation, kernel_id, checkpoint_id).run()
        report.fallback = fallback
        return report

    async def _resume_one(
        self,
        operation: RunningOperation,
        kernel_id: str,
        checkpoint_id: str | None,
        snapshot_id: str | None,
        request: ResumeRequest,
    ) -> None:
        report = await self._bring_back(operation, kernel_id, checkpoint_id, snapshot_id, request)
        ours = not self.kernels.provisioner(kernel_id).by_snapshot_only
        if report.via == "snapshot" and ours:
            await self.kernels.note_cells_before(kernel_id)
        if report.fallback is None:
            await self.keep_snapshot(kernel_id, None)
        entry = self.kernels.entry(kernel_id)
        report.ports_changed = bool(getattr(self.kernels.provisioner(kernel_id), "ports_changed", False))
        entry.last_resume = self.last_resume = report
        operation.model.checkpoint, operation.model.outcome = checkpoint_id, report.outcome
        self.idle_clock_anew()
        self.journal.record(
            "resumed",
            kernel_id=kernel_id,
            operation=operation.id,
            code=report.outcome,
            bytes=operation.model.bytes_total or 0,
            seconds=report.seconds,
        )
        # Nobody can ask a kernel without our code whether it was used.
        self.kernels.show(kernel_id, "ready" if ours else "running", outcome=report.outcome)
        if checkpoint_id and report.proof.buffers is not None and report.proof.buffers.state == "checking":
            self.background(self._check_buffers(kernel_id, checkpoint_id, report))

    def background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something that ends with the server."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _check_buffers(self, kernel_id: str, checkpoint_id: str, report: ResumeReport) -> None:
        """Hash the raw buffers after `ready`; a mismatch names the variables and makes the outcome partial."""
        proof = report.proof.buffers
        assert proof is not None
        names = await self.checkpoints.damaged_variables(checkpoint_id)
        proof.bytes_done = proof.bytes_total
        proof.state, proof.variables = ("mismatch", names) if names else ("ok", [])
        entry = self.kernels.entry(kernel_id)
        if names and entry.last_resume is report:
            report.outcome = "partial"
            self.journal.record("note", kernel_id=kernel_id, code="buffers_mismatch")
            if entry.state in ("ready", "running"):
                self.kernels.show(kernel_id, entry.state, outcome="partial", code="buffers_mismatch")
        else:
            self.kernels.announce()

    def load_result_path(self, kernel_id: str) -> Path:
        """Where the kernel says how loading went (owner-only folder of the Jupyter runtime)."""
        return self._runtime_dir / f"jupyter-pause-loaded-{kernel_id}.json"

    def load_file(self, checkpoint_id: str, result: Path) -> dict[str, Any]:
        """The content of the load file (docs/developers/architecture.md)."""
        return {
            "version": 1,
            "checkpoint": str(self.store.path(checkpoint_id)),
            "secret_file": str(self.store.secret_file),
            "result": str(result),
        }

    # --- for the whole workspace (workspace.py) -------------------------------------------------------------------

    def begin_workspace(self, kind: OperationKind, cause: Cause) -> RunningOperation:
        """Begin an operation on everything; raises PauseError `operation_in_progress` while any other runs."""
        return self.operations.begin_on_everything(kind, list(self.kernels), cause)

    def require_workspace(self) -> WorkspacePauser:
        """The whole pod's part; raises PauseError `workspace_unsupported` where there is none."""
        if self.workspace is None:
            raise PauseError("workspace_unsupported")
        return self.workspace

    async def came_back(self, report: ResumeReport) -> None:
        """A kernel came back with its workspace."""
        entry = self.kernels.entry(report.kernel)
        entry.last_resume = report
        if report.kernel in self.kernels:
            await self.kernels.note_cells_before(report.kernel)
        self.kernels.show(report.kernel, "ready" if report.outcome != "fresh" else "running", outcome=report.outcome)

    async def leave_as_paused(self, kernel_id: str, checkpoint: str) -> None:
        """The server goes, and this kernel's checkpoint is written: end it as a paused one, for the next start."""
        if kernel_id not in self.kernels or self.kernels.is_paused(kernel_id):
            return
        await self.owner.record(kernel_id, state="paused", checkpoint=checkpoint)
        await self.kernels.provisioner(kernel_id).release()
        self.kernels.entry(kernel_id).checkpoint = await self.checkpoints.summary(checkpoint)
        self.kernels.show(kernel_id, "paused")

    async def pause_in(self, operation: RunningOperation, kernels: list[str], options: PauseOptions) -> None:
        """Pause single kernels inside a larger operation."""
        await self._pause_all(operation, [PauseRun(self, operation, kernel_id, options) for kernel_id in kernels])

    async def precheck(self, kernel_id: str, request: PauseRequest) -> None:
        """Raises PauseError when the kernel cannot be paused now, or not without a loss."""
        if not self.kernels.is_paused(kernel_id):
            await self._precheck(kernel_id, request)

    async def paths(self) -> dict[str, str | None]:
        """The notebook of each kernel that has one."""
        models = await self.session_manager.list_sessions()
        return {str((model.get("kernel") or {}).get("id")): model.get("path") for model in models}

    def checkpoint_of(self, kernel_id: str) -> str | None:
        """The checkpoint that a kernel would come back from."""
        checkpoint = self.kernels.entry(kernel_id).checkpoint
        return checkpoint.id if checkpoint is not None else None

    # --- what happens to kernels from outside --------------------------------------------------------------------

    async def take_over(self, adopted: Adopted) -> None:
        """A session of an earlier server is ours now."""
        await self._adopting.take_over(adopted)

    def kernel_restarted(self, kernel_id: str, *, while_paused: bool) -> None:
        """A person restarted the kernel: it is empty now, and that is said; the checkpoint stays."""
        entry = self.kernels.entry(kernel_id)
        entry.last_resume, entry.aborted_cells, entry.aborted_notebook_cells = None, [], []
        self.outputs.forget(kernel_id)
        self.background(self.keep_snapshot(kernel_id, None))
        code = "restarted_while_paused" if while_paused else "restarted"
        self.kernels.show(kernel_id, "running", outcome="fresh", code=code)

    def kernel_ended(self, kernel_id: str) -> None:
        """The kernel was shut down; its checkpoints stay listed."""
        operation = self.operations.of(kernel_id)
        if operation is not None and operation.model.cancellable:
            operation.cancel_requested.set()
        entry = self.kernels.drop(kernel_id)
        if entry is not None and self.snapshots is not None:
            self.background(forget(self.snapshots, entry.snapshot))
        self.kernels.announce()

    def remember_aborted(self, kernel_id: str, message_ids: list[str], cell_ids: list[str]) -> None:
        """Cells that were answered `aborted` because a pause had begun: the frontend offers to run them."""
        entry = self.kernels.entry(kernel_id)
        entry.aborted_cells, entry.aborted_notebook_cells = message_ids, cell_ids

    def session_notes(self, kernel_id: str) -> dict[str, Any]:
        """What belongs into the session's record on disk, so that the next server can say it too."""
        entry = self.kernels.known(kernel_id)
        missed = self.outputs.of(kernel_id)
        if missed is not None and (entry is None or entry.state not in ("pausing", "paused")):
            # Written once when the gap begins, not with every line that is printed.
            missed = missed.model_copy(update={"messages": None, "until": missed.since})
        return {
            "aborted_cells": list(entry.aborted_cells) if entry else [],
            "aborted_notebook_cells": list(entry.aborted_notebook_cells) if entry else [],
            "missed_output": missed.model_copy() if missed is not None else None,
        }

    # --- snapshots ----------------------------------------------------------------------------------------------

    async def snapshot_obstacles(self, kernel_id: str) -> list[Reason]:
        """Why a pause of this kernel would take no snapshot; empty when it would."""
        provisioner = self.kernels.provisioner(kernel_id)
        if self.snapshots is None or provisioner.kernel_pid is None:
            return [snapshot_reason("snapshots_off")]
        transport = self.kernel_manager.get_kernel(kernel_id).transport
        return await self.snapshots.in_the_way_of(provisioner.kernel_pid, transport)

    async def _outlook(self, kernel_id: str) -> SnapshotOutlook | None:
        """What the panel says beside the list."""
        if self.snapshots is None:
            return None
        reasons = await self.snapshot_obstacles(kernel_id)
        testing = any(one.code == "snapshots_testing" for one in reasons)
        return SnapshotOutlook(usable=None if testing else not reasons, reasons=reasons)

    async def keep_snapshot(self, kernel_id: str, snapshot_id: str | None) -> None:
        """This snapshot is the kernel's now (None: it has none); the one before it is deleted."""
        entry = self.kernels.entry(kernel_id)
        before, entry.snapshot = entry.snapshot, snapshot_id
        if entry.checkpoint is not None:
            entry.checkpoint.via = "snapshot" if snapshot_id is not None else "checkpoint"
        if before != snapshot_id and self.snapshots is not None:
            await forget(self.snapshots, before)

    # --- life ---------------------------------------------------------------------------------------------------

    async def tick(self) -> None:
        """Called every two seconds: notices first use of resumed kernels, and kernels that came or went."""
        for entry in self.kernels.entries():
            if entry.kernel_id not in self.kernels:
                if self.operations.of(entry.kernel_id) is None:
                    self.kernels.drop(entry.kernel_id)
            elif entry.state == "ready":
                await self.kernels.note_first_use(entry.kernel_id)
        self.outputs.sync(list(self.kernels))
        if self.workspace is not None:
            await self.workspace.tick()
        self.kernels.look_for_changes()

    def stoppable(self) -> list[str]:
        """Kernels that can be saved before a stop: pausable, not paused, in no operation."""
        idle = [kernel_id for kernel_id in self.kernels.pausable() if self.operations.of(kernel_id) is None]
        return [kernel_id for kernel_id in idle if not self.kernels.provisioner(kernel_id).paused]

    def pause_for_stop(self, kernel_id: str, cause: Cause) -> RunningOperation:
        """Pause one kernel because the server stops: nobody is left to be asked. Raises PauseError."""
        self.settings.require_room()
        operation = self.operations.begin("pause", [kernel_id], cause)
        try:
            options = PauseOptions("accept", "wait", cause, save_documents=False)
            run = self._pause_run(operation, kernel_id, options)
        except BaseException:
            self.operations.abandon(operation)
            raise
        self.kernels.show(kernel_id, "pausing", phase="checking", operation=operation.id)
        self.operations.launch(operation, self._pause_all(operation, [run]))
        return operation

    async def stop(self) -> None:
        """End what is under way; kernels that were being paused keep running or stay complete on disk."""
        self.operations.closed = True
        self.outputs.close()
        self.operations.cancel_all()
        tasks = [task for task in self._tasks if not task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=self.settings.control_timeout)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _not_usable(why: Reason) -> PauseError:
    params = {name: value for name, value in why.params.items() if name not in ("detail", "why")}
    return PauseError("snapshot_not_usable", detail=why.message, why=why.code, **params)
