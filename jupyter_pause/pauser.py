# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The one state machine: the only place that decides what happens next.

REST, the command line, the magics and everything else that pauses or resumes goes through :class:`Pauser`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import PauseError, as_pause_error
from .kernel_channel import control_request
from .operations import Cancelled, RunningOperation
from .pausing import POLL_INTERVAL, PauseOptions, PauseRun, summary
from .pausing_exactly import ExactPauseRun
from .provisioner import PauseProvisioner
from .restoring import RestoreRun, forget
from .resuming import ResumeRun
from .retention import Retention, RetentionPolicy
from .snapshot.engine import NotRestored
from .snapshot.sentences import reason as snapshot_reason
from .snapshotting import not_exact
from .states import (
    AGGREGATION_ORDER,
    Cause,
    CheckpointSummary,
    Inventory,
    KernelRow,
    Loss,
    MissedOutput,
    OnExit,
    OnLoss,
    Operation,
    OperationKind,
    Outcome,
    PauseReport,
    PauseRequest,
    Phase,
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

#: How many ended operations `GET operations/ID` still knows.
KEPT_OPERATIONS = 200


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
    #: Why the mode is `local` although something of a cluster is here.
    environment: Reason | None = None
    retention: RetentionPolicy = field(default_factory=RetentionPolicy)

    def require_room(self) -> None:
        """Raise PauseError `unwritable` when nothing can be written where checkpoints go."""
        if not os.access(self.checkpoint_dir, os.W_OK | os.X_OK):
            raise PauseError("unwritable")


@dataclass
class KernelEntry:
    """What is known of one kernel beyond what Jupyter knows."""

    kernel_id: str
    since: datetime
    state: State = "running"
    phase: Phase | None = None
    checkpoint: CheckpointSummary | None = None
    outcome: Outcome | None = None
    operation: str | None = None
    reason: Reason | None = None
    last_resume: ResumeReport | None = None
    last_pause: PauseReport | None = None
    aborted_cells: list[str] = field(default_factory=list)
    aborted_notebook_cells: list[str] = field(default_factory=list)
    #: Cells that the process had run when it came back by a snapshot: only a later one is its first use.
    cells_before: int = 0
    #: The process snapshot that the kernel would come back from; also one that could not be used, to be tried again.
    snapshot: str | None = None


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
        self._emit = emit
        self._runtime_dir = runtime_dir
        self.idle_clock_anew = idle_clock_anew
        self.snapshots = snapshots
        self._revision = 0
        self._started = clock.now()
        self._entries: dict[str, KernelEntry] = {}
        self._operations: dict[str, RunningOperation] = {}
        self._by_kernel: dict[str, RunningOperation] = {}
        #: The operation on the whole workspace, beside which no other may run.
        self._exclusive: RunningOperation | None = None
        #: The whole pod's part (workspace.py); None where nobody can pause more than kernels.
        self.workspace: WorkspacePauser | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._last_progress_event = 0.0
        self._last_resume: ResumeReport | None = None
        self._stopping = False
        #: Kernels at the last tick, with the code of what stands in the way of pausing them.
        self._seen: dict[str, str | None] = {}
        #: Set once the sessions of an earlier server have been taken over: before, no answer would be the truth.
        self.taken_over = asyncio.Event()
        #: What the last stop of an earlier server kept.
        self.last_stop: StopReport | None = None
        self.retention = Retention(
            store,
            settings.retention,
            used=self._claimed_checkpoints,
            delete=partial(self.delete_checkpoint, force=False),
            clock=clock,
            journal=journal,
            log=log,
        )

    # --- looking ------------------------------------------------------------------------------------------------

    def provisioner(self, kernel_id: str) -> PauseProvisioner:
        """The kernel's provisioner when it is ours; raises PauseError `kernel_not_found` or `not_pausable`."""
        if kernel_id not in self.kernel_manager:
            raise PauseError("kernel_not_found")
        reason = self._not_pausable(kernel_id)
        provisioner = self.kernel_manager.get_kernel(kernel_id).provisioner
        if reason is not None or not isinstance(provisioner, PauseProvisioner):
            code = reason.code if reason is not None else "foreign_provisioner"
            raise PauseError("not_pausable", detail=code, why=code, **(reason.params if reason else {}))
        return provisioner

    def _not_pausable(self, kernel_id: str) -> Reason | None:
        provisioner = getattr(self.kernel_manager.get_kernel(kernel_id), "provisioner", None)
        if provisioner is None:
            return Reason(code="starting")
        if not isinstance(provisioner, PauseProvisioner):
            return Reason(code="foreign_provisioner")
        reason = provisioner.not_pausable
        return None if reason is None else Reason.model_validate(reason, from_attributes=True)

    def is_busy(self, kernel_id: str) -> bool:
        """True while Jupyter says that a cell runs."""
        return getattr(self.kernel_manager.get_kernel(kernel_id), "execution_state", None) == "busy"

    async def session_of(self, kernel_id: str) -> dict[str, Any] | None:
        """The session model that uses the kernel, if any."""
        for model in await self.session_manager.list_sessions():
            if (model.get("kernel") or {}).get("id") == kernel_id:
                return dict(model)
        return None

    async def state(self) -> ServerState:
        """Everything of `GET state`."""
        sessions: dict[str, dict[str, Any]] = {}
        for model in await self.session_manager.list_sessions():
            sessions.setdefault(str((model.get("kernel") or {}).get("id")), model)
        rows = [self._row(kernel_id, sessions.get(kernel_id)) for kernel_id in self.kernel_manager.list_kernel_ids()]
        known = {row.id for row in rows}
        rows += [row for row in await self._absent_rows() if row.id not in known]
        counts = Counter(row.state for row in rows)
        top: State = next((s for s in AGGREGATION_ORDER if counts[s]), "running")
        running = [op for op in self._operations.values() if op.running]
        blocked = self._blocked_by(rows)
        state = ServerState(
            revision=self._revision,
            state=top,
            phase=next((row.phase for row in rows if row.state == top and row.phase), None),
            since=max((row.since for row in rows if row.state == top), default=self._started),
            can_pause=not blocked and any(row.pausable and row.state in ("running", "ready") for row in rows),
            blocked_by=blocked,
            reason=self.settings.environment,
            counts=dict(counts),
            kernels=rows,
            operation=running[0].snapshot() if running else None,
            last_resume=self._last_resume,
            last_stop=self.last_stop,
            process_snapshots=None if self.snapshots is None else self.snapshots.outlook(),
            on_exit=self.settings.on_exit,
        )
        if self.workspace is not None:
            self.workspace.complete(state)
        return state

    def _row(self, kernel_id: str, session: dict[str, Any] | None) -> KernelRow:
        entry = self._entry(kernel_id)
        reason = self._not_pausable(kernel_id)
        return KernelRow(
            id=kernel_id,
            name=self.kernel_manager.get_kernel(kernel_id).kernel_name,
            path=(session or {}).get("path"),
            state=entry.state,
            phase=entry.phase,
            since=entry.since,
            checkpoint=entry.checkpoint,
            outcome=entry.outcome,
            pausable=reason is None,
            reason=reason or entry.reason,
            operation=entry.operation,
            last_resume=entry.last_resume,
            last_pause=entry.last_pause,
            aborted_cells=entry.aborted_cells,
            aborted_notebook_cells=entry.aborted_notebook_cells,
            missed_output=self.outputs.of(kernel_id),
        )

    async def _absent_rows(self) -> list[KernelRow]:
        """Paused sessions of this root dir that are not kernels of this server (another server holds them)."""
        rows = []
        for record in await asyncio.to_thread(self.owner.sessions):
            if record.state != "paused" or record.kernel_id in self.kernel_manager:
                continue
            rows.append(
                KernelRow(
                    id=record.kernel_id,
                    name=record.kernel_name,
                    path=record.path,
                    state="paused",
                    since=record.since,
                    checkpoint=await self._summary(record.checkpoint),
                    pausable=False,
                    reason=self._why_absent(record.kernel_id),
                )
            )
        return rows

    def _why_absent(self, kernel_id: str) -> Reason:
        name = self.owner.without_specification.get(kernel_id)
        if name is None:
            return Reason(code="session_held")
        error = PauseError("kernelspec_missing", name=name)
        return Reason(code=error.code, message=error.sentence, params=error.params)

    def _blocked_by(self, rows: list[KernelRow]) -> list[Reason]:
        if not rows:
            return [Reason(code="no_kernel")]
        if not any(row.pausable for row in rows):
            return [row.reason for row in rows if row.reason is not None]
        try:
            self.settings.require_room()
        except PauseError as error:
            return [Reason(code=error.code)]
        return []

    async def _note_first_use(self, kernel_id: str) -> None:
        """`ready` means back, proven and not used yet: the first cell turns it into `running`.

        The kernel itself is asked: what Jupyter calls activity also comes from a frontend that only reconnects.
        """
        entry = self._entries.get(kernel_id)
        if entry is None or entry.state != "ready" or kernel_id not in self.kernel_manager:
            return
        kernel = self.kernel_manager.get_kernel(kernel_id)
        status = await control_request(kernel, {"op": "status"}, self.settings.control_timeout)
        used = status is not None and int(status.get("cells_shown") or 0) > entry.cells_before
        if used and entry.state == "ready":
            self._set(kernel_id, "running", outcome=entry.outcome)

    def _entry(self, kernel_id: str) -> KernelEntry:
        if kernel_id not in self._entries:
            self._entries[kernel_id] = KernelEntry(kernel_id, self.clock.now())
        return self._entries[kernel_id]

    async def _summary(self, checkpoint_id: str | None) -> CheckpointSummary | None:
        if checkpoint_id is None:
            return None
        try:
            return summary(await asyncio.to_thread(self.store.manifest, checkpoint_id))
        except Exception:
            return None

    async def inventory(self, kernel_id: str, wait: float) -> Inventory:
        """What will be restored (design.md 5.1); waits up to `wait` seconds for a complete scan."""
        from .inventory import build_inventory
        from .inventory.exact import with_snapshot

        provisioner = self.provisioner(kernel_id)
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

    # --- changing -----------------------------------------------------------------------------------------------

    def _set(
        self,
        kernel_id: str,
        state: State,
        *,
        phase: Phase | None = None,
        operation: str | None = None,
        outcome: Outcome | None = None,
        code: str | None = None,
    ) -> None:
        entry = self._entry(kernel_id)
        if entry.state != state:
            entry.since = self.clock.now()
        entry.state, entry.phase, entry.operation, entry.outcome = state, phase, operation, outcome
        entry.reason = Reason(code=code) if code else None
        self._revision += 1
        self._emit(
            "state",
            {
                "revision": self._revision,
                "kernel_id": kernel_id,
                "state": state,
                "phase": phase,
                "outcome": outcome,
                "operation": operation,
                "code": code,
            },
        )
        self.journal.record("state", kernel_id=kernel_id, operation=operation, phase=phase, code=code or state)

    def announce(self) -> None:
        """Tell every frontend to read everything again: a kernel came or went, the workspace changed its state."""
        self._revision += 1
        what: dict[str, Any] = {"state": "unknown"} if self.workspace is None else self.workspace.event()
        self._emit("state", {"revision": self._revision, "kernel_id": None, **what})

    def with_revision(self, data: dict[str, Any]) -> dict[str, Any]:
        """Number an event that changes no state."""
        self._revision += 1
        return {"revision": self._revision, **data}

    def note(self, kernel_id: str, code: str, **numbers: Any) -> None:
        """Write something to the journal that changes no state."""
        self.journal.record("note", kernel_id=kernel_id, code=code, **numbers)

    def _operation_changed(self, operation: RunningOperation, important: bool) -> None:
        now = self.clock.monotonic()
        if not important and now - self._last_progress_event < 0.5:
            return
        self._last_progress_event = now
        record = operation.snapshot()
        if record.state in ("running", "needs_decision"):
            for kernel_id in record.kernels:
                if self._by_kernel.get(kernel_id) is operation:
                    self._mirror_phase(kernel_id, record)
        self._revision += 1
        self._emit(
            "operation",
            {
                "revision": self._revision,
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
        entry = self._entry(kernel_id)
        state: State = "pausing" if record.kind == "pause" else "resuming"
        if entry.state == state and entry.phase != record.phase:
            self._set(kernel_id, state, phase=record.phase, operation=record.id)

    # --- operations ---------------------------------------------------------------------------------------------

    def operation(self, operation_id: str) -> Operation:
        """An operation's record; raises PauseError `operation_not_found`."""
        return self._find(operation_id).snapshot()

    def decide(self, operation_id: str, decision: Any) -> Operation:
        """Answer an operation's question."""
        operation = self._find(operation_id)
        operation.decide(decision)
        return operation.snapshot()

    async def cancel(self, operation_id: str) -> Operation:
        """Cancel an operation and wait until everything is put back."""
        operation = self._find(operation_id)
        operation.cancel()
        if operation.task is not None:
            await asyncio.wait({operation.task}, timeout=self.settings.control_timeout * 2)
        return operation.snapshot()

    def _find(self, operation_id: str) -> RunningOperation:
        if operation_id not in self._operations:
            raise PauseError("operation_not_found")
        return self._operations[operation_id]

    def _begin(self, kind: Any, kernels: list[str], cause: Cause) -> RunningOperation:
        if self._stopping:
            raise PauseError("server_stopping")
        if self._exclusive is not None:
            raise PauseError("operation_in_progress", operation=self._exclusive.id)
        for kernel_id in kernels:
            other = self._by_kernel.get(kernel_id)
            if other is not None:
                raise PauseError("operation_in_progress", operation=other.id)
        operation = RunningOperation(kind, kernels, cause, self.clock, self._operation_changed)
        self._operations[operation.id] = operation
        for kernel_id in kernels:
            self._by_kernel[kernel_id] = operation
        ended = [key for key, op in self._operations.items() if not op.running]
        for key in ended[: max(0, len(self._operations) - KEPT_OPERATIONS)]:
            del self._operations[key]
        return operation

    def _launch(self, operation: RunningOperation, work: Coroutine[Any, Any, None]) -> None:
        operation.task = asyncio.get_running_loop().create_task(self._supervise(operation, work))
        self._tasks.add(operation.task)
        operation.task.add_done_callback(self._tasks.discard)

    async def _supervise(self, operation: RunningOperation, work: Coroutine[Any, Any, None]) -> None:
        """Whatever happens in an operation, it ends, and its kernels leave the "-ing" state."""
        error: PauseError | None = None
        state: Any = "done"
        try:
            await work
        except Cancelled:
            state = "cancelled"
        except asyncio.CancelledError:
            error, state = PauseError("server_stopping"), "failed"
            raise
        except Exception as failure:
            state, error = "failed", as_pause_error(failure)
            if error is None:
                self.log.exception("jupyter-pause: an operation failed unexpectedly")
                error = PauseError("internal", detail=type(failure).__name__)
        finally:
            for kernel_id in operation.model.kernels:
                self._by_kernel.pop(kernel_id, None)
                if operation is not self._exclusive:
                    self._leave(kernel_id, error)
            operation.end(state, error)
            self.journal.record(
                "operation",
                operation=operation.id,
                code=error.code if error else state,
                phase=operation.model.phase,
                bytes=operation.model.bytes_done,
                seconds=operation.snapshot().elapsed,
            )
            if operation is self._exclusive:
                self._exclusive = None
                if self.workspace is not None:
                    self.workspace.left(operation, error)
            if operation.model.kind == "pause" and state == "done":
                self._background(self.clean_up())

    def _leave(self, kernel_id: str, error: PauseError | None) -> None:
        entry = self._entry(kernel_id)
        code = error.code if error else None
        if entry.state == "pausing":
            self._set(kernel_id, "running", outcome=entry.outcome, code=code)
        elif entry.state == "resuming":
            self._set(kernel_id, "paused", outcome=entry.outcome, code=code)
        entry.operation = None

    # --- pause --------------------------------------------------------------------------------------------------

    async def pause(self, request: PauseRequest) -> Operation:
        """Begin a pause; raises PauseError when it is refused (nothing has changed then)."""
        if request.scope == "workspace":
            return await self.require_workspace().pause(request)
        kernels = self._chosen(request.kernels)
        todo = []
        for kernel_id in kernels:
            other = self._by_kernel.get(kernel_id)
            if other is not None:
                raise PauseError("operation_in_progress", operation=other.id)
            if not self.provisioner(kernel_id).paused:
                todo.append(kernel_id)
        operation = self._begin("pause", todo or kernels, request.cause)
        if not todo:  # paused already: asking twice is not an error
            self._finish_at_once(operation)
            return operation.snapshot()
        try:
            self.settings.require_room()
            for kernel_id in todo:
                await self._precheck(kernel_id, request)
        except BaseException:
            self._abandon(operation)
            raise
        for kernel_id in todo:
            self._set(kernel_id, "pausing", phase="checking", operation=operation.id)
        options = PauseOptions(request.on_loss, request.when_busy, request.cause)
        self._launch(operation, self._pause_all(operation, [self._pause_run(operation, k, options) for k in todo]))
        return operation.snapshot()

    def _pause_run(self, operation: RunningOperation, kernel_id: str, options: PauseOptions) -> AnyPauseRun:
        exactly = self.provisioner(kernel_id).by_snapshot_only
        return (ExactPauseRun if exactly else PauseRun)(self, operation, kernel_id, options)

    async def pause_from_kernel(self, kernel_id: str, on_loss: OnLoss) -> tuple[Operation, Path]:
        """`%pause`: the kernel captures by itself after its cell; returns the folder it writes to."""
        if self.provisioner(kernel_id).paused:
            raise PauseError("kernel_not_found")
        operation = self._begin("pause", [kernel_id], "magic")
        run = PauseRun(self, operation, kernel_id, PauseOptions(on_loss, "wait", "magic", wait_for_kernel=False))
        try:
            await run.prepare()
        except BaseException:
            self._abandon(operation)
            raise
        assert run.staging is not None
        staging = run.staging
        self._set(kernel_id, "pausing", phase="checking", operation=operation.id)
        self._launch(operation, self._pause_all(operation, [run]))
        return operation.snapshot(), staging

    def _chosen(self, kernels: list[str] | None) -> list[str]:
        if kernels is None:
            kernels = [k for k in self.kernel_manager.list_kernel_ids() if self._not_pausable(k) is None]
        kernels = list(dict.fromkeys(kernels))
        if not kernels:
            raise PauseError("nothing_to_pause")
        return kernels

    async def _precheck(self, kernel_id: str, request: PauseRequest) -> None:
        provisioner = self.provisioner(kernel_id)
        if await provisioner.poll() is not None:
            raise PauseError("kernel_dead")
        if provisioner.by_snapshot_only:
            await self._precheck_exact(kernel_id, request)
            return
        busy = await self._really_busy(kernel_id)
        if busy and request.when_busy == "refuse":
            raise PauseError("kernel_busy")
        if busy or request.on_loss == "accept":
            return
        losses = await self._known_losses(kernel_id)
        if losses and not await self.snapshot_obstacles(kernel_id):
            losses = not_exact(losses)
        if losses:
            raise PauseError("would_lose", losses=losses)

    async def _precheck_exact(self, kernel_id: str, request: PauseRequest) -> None:
        """A kernel without our code: Jupyter knows whether it is busy, and only a snapshot keeps it."""
        if self.is_busy(kernel_id) and request.when_busy == "refuse":
            raise PauseError("kernel_busy")
        reasons = await self.snapshot_obstacles(kernel_id)
        if reasons:
            raise PauseError("snapshot_required", why=reasons[0].code, detail=reasons[0].message)

    async def _really_busy(self, kernel_id: str) -> bool:
        """Ask the kernel itself: Jupyter's own word lags behind by a message."""
        kernel = self.kernel_manager.get_kernel(kernel_id)
        reply = await control_request(kernel, {"op": "status"}, self.settings.control_timeout)
        return self.is_busy(kernel_id) if reply is None else bool(reply.get("busy"))

    async def _known_losses(self, kernel_id: str) -> list[Loss]:
        """Losses that a scan finds now. A kernel that does not answer in time is asked again after the capture."""
        kernel = self.kernel_manager.get_kernel(kernel_id)
        wait = self.settings.scan_timeout
        reply = await control_request(kernel, {"op": "inventory", "wait": wait}, wait + self.settings.control_timeout)
        return [Loss.model_validate(loss) for loss in (reply or {}).get("losses") or []]

    def _abandon(self, operation: RunningOperation) -> None:
        """An operation that was refused before it began leaves no trace."""
        self._operations.pop(operation.id, None)
        if self._exclusive is operation:
            self._exclusive = None
        for kernel_id in operation.model.kernels:
            if self._by_kernel.get(kernel_id) is operation:
                del self._by_kernel[kernel_id]

    def _finish_at_once(self, operation: RunningOperation) -> None:
        for kernel_id in operation.model.kernels:
            self._by_kernel.pop(kernel_id, None)
        entry = self._entry(operation.model.kernels[0])
        operation.model.checkpoint = entry.checkpoint.id if entry.checkpoint else None
        operation.model.outcome = entry.outcome
        operation.end("done")

    async def _pause_all(self, operation: RunningOperation, runs: Sequence[AnyPauseRun]) -> None:
        """One kernel after the other: they share one disk. The first failure stops the rest."""
        for run in runs:
            kernel_id = run.kernel_id
            report = await run.run()
            entry = self._entry(kernel_id)
            entry.last_pause = report
            entry.checkpoint = await self._summary(report.checkpoint)
            await self._keep_snapshot(kernel_id, report.snapshot)
            operation.model.checkpoint = report.checkpoint
            operation.model.cancellable = True
            # What was written decides the time, and so the next estimate; what is shared costs none.
            written = report.bytes if report.written is None else report.written
            self.journal.record(
                "paused", kernel_id=kernel_id, operation=operation.id, bytes=written, seconds=report.seconds
            )
            self._set(kernel_id, "paused")

    def offer(self, kernel_id: str, manifest: CheckpointManifest) -> None:
        """The kernel died, but a complete checkpoint is there: show it at the kernel's row."""
        self._entry(kernel_id).checkpoint = summary(manifest)

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
        provisioner = self.provisioner(kernel_id)
        entry = self._entry(kernel_id)
        if kernel_id in self._by_kernel:
            raise PauseError("operation_in_progress", operation=self._by_kernel[kernel_id].id)
        if not provisioner.paused:
            await self._note_first_use(kernel_id)
            if entry.state == "ready" and request.from_ == "snapshot" and entry.snapshot is not None:
                return await self._resume_again(kernel_id, request)
            if entry.state == "ready" and request.checkpoint is None:
                operation = self._begin("resume", [kernel_id], "user")
                self._finish_at_once(operation)
                return operation.snapshot()
            raise PauseError("not_paused")
        checkpoint_id = request.checkpoint or (entry.checkpoint.id if entry.checkpoint else None)
        snapshot_id = self._snapshot_for(entry, request, checkpoint_id)
        if checkpoint_id is None and snapshot_id is None:
            raise PauseError("checkpoint_missing")
        operation = self._begin("resume", [kernel_id], "user")
        try:
            if snapshot_id is None and checkpoint_id is not None:
                await self._require_loadable(kernel_id, checkpoint_id, request)
        except BaseException:
            self._abandon(operation)
            raise
        self._set(kernel_id, "resuming", phase="checking", operation=operation.id)
        self._launch(operation, self._resume_one(operation, kernel_id, checkpoint_id, snapshot_id, request))
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
        entry = self._entry(kernel_id)
        checkpoint = entry.checkpoint.id if entry.checkpoint else None
        await self.owner.record(kernel_id, state="paused", checkpoint=checkpoint, snapshot=entry.snapshot)
        await self.provisioner(kernel_id).release()
        self._set(kernel_id, "paused")
        return await self._resume_kernel(kernel_id, request)

    async def _require_loadable(self, kernel_id: str, checkpoint_id: str, request: ResumeRequest) -> None:
        """Raises PauseError when the checkpoint is not sound, or was made in another environment."""
        manifest = await self.verified_manifest(checkpoint_id, buffers=False, kernel_id=kernel_id)
        await self._require_same_environment(kernel_id, manifest, request)

    async def _require_not_held(self, kernel_id: str) -> None:
        """A session that another server held is taken over now, if that server is gone."""
        if kernel_id in self.kernel_manager:
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
        for entry in self._entries.values():
            held = entry.checkpoint is not None and entry.checkpoint.id == request.checkpoint
            # Also one that is coming back from it just now: that is refused there, instead of a second kernel here.
            if held and entry.state in ("paused", "resuming") and entry.kernel_id in self.kernel_manager:
                return await self._resume_kernel(entry.kernel_id, request)
        manifest = await self.verified_manifest(request.checkpoint, buffers=False)
        kernel_id = await self.owner.open_paused_session(
            kernel_name=manifest.kernel_name, path=request.path or manifest.path, checkpoint=manifest.id
        )
        self.adopted(kernel_id, summary(manifest), self.clock.now())
        return await self._resume_kernel(kernel_id, request)

    async def verified_manifest(
        self, checkpoint_id: str, *, buffers: bool, kernel_id: str | None = None
    ) -> CheckpointManifest:
        """Verify without unpickling; raises PauseError with older checkpoints of the session in `params`."""
        from .checkpoint.store import CheckpointError

        try:
            await asyncio.to_thread(self.store.verify, checkpoint_id, buffers=buffers)
            return await asyncio.to_thread(self.store.manifest, checkpoint_id)
        except CheckpointError as error:
            code = "checkpoint_missing" if error.code == "not_found" and kernel_id else error.code
            older = await self._older(checkpoint_id, kernel_id) if kernel_id else []
            params: dict[str, Any] = {**error.params, "checkpoint": checkpoint_id, "older": older}
            raise PauseError(code, **params) from error

    async def _older(self, checkpoint_id: str, kernel_id: str) -> list[dict[str, Any]]:
        """Other checkpoints of the same kernel: offered as a choice, never taken silently."""
        manifests = await asyncio.to_thread(self.store.list)
        return [
            summary(m).model_dump(mode="json") for m in manifests if m.kernel_id == kernel_id and m.id != checkpoint_id
        ]

    async def _require_same_environment(
        self, kernel_id: str, manifest: CheckpointManifest, request: ResumeRequest
    ) -> None:
        argv = self.provisioner(kernel_id).interpreter_argv
        if os.path.isabs(argv[0]) and await asyncio.to_thread(shutil.which, argv[0]) is None:
            name = self.kernel_manager.get_kernel(kernel_id).kernel_name
            raise PauseError("interpreter_missing", name=name)
        if request.on_difference == "accept":
            return
        from .checkpoint.compare import differences_with_interpreter

        differences = await differences_with_interpreter(manifest, argv)
        if differences:
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
        ours = not self.provisioner(kernel_id).by_snapshot_only
        if report.via == "snapshot" and ours:
            await self.note_cells_before(kernel_id)
        if report.fallback is None:
            await self._keep_snapshot(kernel_id, None)
        entry = self._entry(kernel_id)
        report.ports_changed = bool(getattr(self.provisioner(kernel_id), "ports_changed", False))
        entry.last_resume = self._last_resume = report
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
        self._set(kernel_id, "ready" if ours else "running", outcome=report.outcome)
        if checkpoint_id and report.proof.buffers is not None and report.proof.buffers.state == "checking":
            self._background(self._check_buffers(kernel_id, checkpoint_id, report))

    def _background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _check_buffers(self, kernel_id: str, checkpoint_id: str, report: ResumeReport) -> None:
        """Hash the raw buffers after `ready`; a mismatch names the variables and makes the outcome partial."""
        proof = report.proof.buffers
        assert proof is not None
        from .checkpoint.store import CheckpointError

        try:
            verification = await asyncio.to_thread(self.store.verify, checkpoint_id, buffers=True)
            names = list(verification.damaged_variables)
        except CheckpointError as error:
            names = list(error.params.get("variables") or ["?"])  # type: ignore[call-overload]
        proof.bytes_done = proof.bytes_total
        proof.state, proof.variables = ("mismatch", names) if names else ("ok", [])
        entry = self._entry(kernel_id)
        if names and entry.last_resume is report:
            report.outcome = "partial"
            self.journal.record("note", kernel_id=kernel_id, code="buffers_mismatch")
            if entry.state in ("ready", "running"):
                self._set(kernel_id, entry.state, outcome="partial", code="buffers_mismatch")
        else:
            self.announce()

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
        other = next((op for op in self._operations.values() if op.running), None)
        if other is not None:
            raise PauseError("operation_in_progress", operation=other.id)
        operation = self._begin(kind, list(self.kernel_manager.list_kernel_ids()), cause)
        operation.model.scope = "workspace"
        self._exclusive = operation
        return operation

    def require_workspace(self) -> WorkspacePauser:
        """The whole pod's part; raises PauseError `workspace_unsupported` where there is none."""
        if self.workspace is None:
            raise PauseError("workspace_unsupported")
        return self.workspace

    def launch(self, operation: RunningOperation, work: Coroutine[Any, Any, None]) -> None:
        """Let the operation run."""
        self._launch(operation, work)

    def abandon(self, operation: RunningOperation) -> None:
        """The operation was refused before it began: it leaves no trace."""
        self._abandon(operation)

    def background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something that ends with the server."""
        return self._background(work)

    def cancel_all(self) -> None:
        """Ask every operation to end that still can."""
        for operation in self._operations.values():
            if operation.running and operation.model.cancellable:
                operation.cancel_requested.set()

    async def ended(self, operation_id: str) -> Operation:
        """Wait for the end of an operation."""
        operation = self._find(operation_id)
        if operation.task is not None:
            await asyncio.wait({operation.task})
        return operation.snapshot()

    def set_all(
        self, kernels: list[str], state: State, *, phase: Phase | None = None, operation: str | None = None
    ) -> None:
        """Show kernels in a state; one that is paused on the disk goes neither to `pausing` nor to `resuming`."""
        for kernel_id in kernels:
            if state == "paused" or not self.is_paused(kernel_id):
                self._set(kernel_id, state, phase=phase, operation=operation)

    def back_to_work(self, kernel_id: str, code: str | None) -> None:
        """Whatever was begun with the kernel is over: it runs, or is paused as before."""
        entry = self._entry(kernel_id)
        if entry.state in ("pausing", "resuming"):
            state: State = "paused" if self.is_paused(kernel_id) else "running"
            self._set(kernel_id, state, outcome=entry.outcome, code=code)
        entry.operation = None

    async def came_back(self, report: ResumeReport) -> None:
        """A kernel came back with its workspace."""
        entry = self._entry(report.kernel)
        entry.last_resume = report
        if report.kernel in self.kernel_manager:
            await self.note_cells_before(report.kernel)
        self._set(report.kernel, "ready" if report.outcome != "fresh" else "running", outcome=report.outcome)

    async def note_cells_before(self, kernel_id: str) -> None:
        """The process came back as it was: cells that it has run by now are not its first use."""
        kernel = self.kernel_manager.get_kernel(kernel_id)
        status = await control_request(kernel, {"op": "status"}, self.settings.control_timeout)
        self._entry(kernel_id).cells_before = int((status or {}).get("cells_shown") or 0)

    async def leave_as_paused(self, kernel_id: str, checkpoint: str) -> None:
        """The server goes, and this kernel's checkpoint is written: end it as a paused one, for the next start."""
        if kernel_id not in self.kernel_manager or self.is_paused(kernel_id):
            return
        await self.owner.record(kernel_id, state="paused", checkpoint=checkpoint)
        await self.provisioner(kernel_id).release()
        self._entry(kernel_id).checkpoint = await self._summary(checkpoint)
        self._set(kernel_id, "paused")

    async def pause_in(self, operation: RunningOperation, kernels: list[str], options: PauseOptions) -> None:
        """Pause single kernels inside a larger operation."""
        await self._pause_all(operation, [PauseRun(self, operation, kernel_id, options) for kernel_id in kernels])

    async def precheck(self, kernel_id: str, request: PauseRequest) -> None:
        """Raises PauseError when the kernel cannot be paused now, or not without a loss."""
        if not self.is_paused(kernel_id):
            await self._precheck(kernel_id, request)

    async def paths(self) -> dict[str, str | None]:
        """The notebook of each kernel that has one."""
        models = await self.session_manager.list_sessions()
        return {str((model.get("kernel") or {}).get("id")): model.get("path") for model in models}

    def is_paused(self, kernel_id: str) -> bool:
        """Whether the kernel has no process now because it was paused."""
        if kernel_id not in self.kernel_manager:
            return False
        return bool(getattr(getattr(self.kernel_manager.get_kernel(kernel_id), "provisioner", None), "paused", False))

    def checkpoint_of(self, kernel_id: str) -> str | None:
        """The checkpoint that a kernel would come back from."""
        checkpoint = self._entry(kernel_id).checkpoint
        return checkpoint.id if checkpoint is not None else None

    def pid_of(self, kernel_id: str) -> int | None:
        """The kernel's process, where it is ours to know."""
        if kernel_id not in self.kernel_manager:
            return None
        return getattr(getattr(self.kernel_manager.get_kernel(kernel_id), "provisioner", None), "kernel_pid", None)

    def any_used(self) -> bool:
        """Whether a kernel has run a cell, or was started, since they all were `ready`."""
        return any(self._entry(k).state == "running" for k in self.kernel_manager.list_kernel_ids())

    # --- what happens to kernels from outside --------------------------------------------------------------------

    async def take_over(self, adopted: Adopted) -> None:
        """A session of an earlier server is ours now."""
        record = adopted.record
        if record is not None:
            entry = self._entry(adopted.kernel_id)
            entry.aborted_cells = record.aborted_cells
            entry.aborted_notebook_cells = record.aborted_notebook_cells
            self.outputs.note(adopted.kernel_id, record.missed_output)
        if adopted.live:
            await self.adopted_live(adopted.kernel_id, adopted.server_seen)
        else:
            self.adopted(adopted.kernel_id, await self._summary(adopted.checkpoint), adopted.since)
            await self._keep_snapshot(adopted.kernel_id, record.snapshot if record is not None else None)

    def adopted(self, kernel_id: str, checkpoint: CheckpointSummary | None, since: datetime) -> None:
        """A paused session was taken over from disk."""
        entry = self._entry(kernel_id)
        entry.checkpoint = checkpoint
        self._set(kernel_id, "paused")
        entry.since = since

    async def adopted_live(self, kernel_id: str, server_seen: datetime | None = None) -> None:
        """A live kernel was taken over from a server that is gone; a pause that it was in the middle of is off."""
        if await self._really_busy(kernel_id):
            # Jupyter Server starts from "idle"; its culler would end a cell that runs long without printing.
            self.kernel_manager.get_kernel(kernel_id).execution_state = "busy"
        await self._note_output_without_server(kernel_id, server_seen)
        if await self._let_go(kernel_id, self.settings.adoption_timeout):
            self.announce()
            return
        self._set(kernel_id, "unknown", code="adopting")
        self._background(self._let_go_later(kernel_id))

    async def _note_output_without_server(self, kernel_id: str, server_seen: datetime | None) -> None:
        """A cell that ran while the kernel had no server may have printed: nobody could count that."""
        kernel = self.kernel_manager.get_kernel(kernel_id)
        status = await control_request(kernel, {"op": "status"}, self.settings.control_timeout)
        if status is None or server_seen is None:
            return
        now = self.clock.now()
        alone = status.get("ended_alone_at")
        until = now if status.get("busy") else datetime.fromtimestamp(alone, UTC) if alone else None
        if until is not None and until > server_seen:
            self.outputs.note(kernel_id, MissedOutput(since=server_seen, until=min(until, now), cause="no_server"))

    async def _let_go(self, kernel_id: str, timeout: float) -> bool:
        """Lift the hold of a cut-short pause; False when a capture still holds the kernel after `timeout` seconds.

        The capture's staging folder is gone, so it ends soon; until then cells would be aborted.
        """
        kernel = self.kernel_manager.get_kernel(kernel_id)
        limit = self.clock.monotonic() + timeout
        while True:
            reply = await control_request(kernel, {"op": "unhold"}, self.settings.control_timeout)
            if reply is not None and not reply.get("held"):
                return True
            if reply is None or self.clock.monotonic() > limit or kernel_id not in self.kernel_manager:
                return False
            await self.clock.sleep(POLL_INTERVAL)

    async def _let_go_later(self, kernel_id: str) -> None:
        await self._let_go(kernel_id, self.settings.stall_timeout)
        if kernel_id in self.kernel_manager and self._entry(kernel_id).state == "unknown":
            self._set(kernel_id, "running")

    # --- snapshots ----------------------------------------------------------------------------------------------

    async def snapshot_obstacles(self, kernel_id: str) -> list[Reason]:
        """Why a pause of this kernel would take no snapshot; empty when it would."""
        provisioner = self.provisioner(kernel_id)
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

    async def _keep_snapshot(self, kernel_id: str, snapshot_id: str | None) -> None:
        """This snapshot is the kernel's now (None: it has none); the one before it is deleted."""
        entry = self._entry(kernel_id)
        before, entry.snapshot = entry.snapshot, snapshot_id
        if entry.checkpoint is not None:
            entry.checkpoint.via = "snapshot" if snapshot_id is not None else "checkpoint"
        if before != snapshot_id and self.snapshots is not None:
            await forget(self.snapshots, before)

    def kernel_restarted(self, kernel_id: str, *, while_paused: bool) -> None:
        """A person restarted the kernel: it is empty now, and that is said; the checkpoint stays."""
        entry = self._entry(kernel_id)
        entry.last_resume, entry.aborted_cells, entry.aborted_notebook_cells = None, [], []
        self.outputs.forget(kernel_id)
        self._background(self._keep_snapshot(kernel_id, None))
        self._set(kernel_id, "running", outcome="fresh", code="restarted_while_paused" if while_paused else "restarted")

    def kernel_ended(self, kernel_id: str) -> None:
        """The kernel was shut down; its checkpoints stay listed."""
        operation = self._by_kernel.get(kernel_id)
        if operation is not None and operation.model.cancellable:
            operation.cancel_requested.set()
        entry = self._entries.pop(kernel_id, None)
        if entry is not None and self.snapshots is not None:
            self._background(forget(self.snapshots, entry.snapshot))
        self.announce()

    def remember_aborted(self, kernel_id: str, message_ids: list[str], cell_ids: list[str]) -> None:
        """Cells that were answered `aborted` because a pause had begun: the frontend offers to run them."""
        entry = self._entry(kernel_id)
        entry.aborted_cells, entry.aborted_notebook_cells = message_ids, cell_ids

    def session_notes(self, kernel_id: str) -> dict[str, Any]:
        """What belongs into the session's record on disk, so that the next server can say it too."""
        entry = self._entries.get(kernel_id)
        missed = self.outputs.of(kernel_id)
        if missed is not None and (entry is None or entry.state not in ("pausing", "paused")):
            # Written once when the gap begins, not with every line that is printed.
            missed = missed.model_copy(update={"messages": None, "until": missed.since})
        return {
            "aborted_cells": list(entry.aborted_cells) if entry else [],
            "aborted_notebook_cells": list(entry.aborted_notebook_cells) if entry else [],
            "missed_output": missed.model_copy() if missed is not None else None,
        }

    # --- checkpoints --------------------------------------------------------------------------------------------

    def uses(self, checkpoint_id: str) -> bool:
        """True while a paused kernel will come back from it."""
        return any(
            e.checkpoint is not None
            and e.checkpoint.id == checkpoint_id
            and e.state in ("paused", "pausing", "resuming")
            for e in self._entries.values()
        )

    async def used_checkpoints(self) -> set[str]:
        """Checkpoints that a paused session will come back from: of this server, and of others over the same folder."""
        elsewhere = await asyncio.to_thread(self.owner.held_elsewhere)
        mine = {e.checkpoint.id for e in self._entries.values() if e.checkpoint is not None}
        return set(elsewhere) | {checkpoint_id for checkpoint_id in mine if self.uses(checkpoint_id)}

    async def _claimed_checkpoints(self) -> set[str]:
        """Used ones, and those that a running kernel came from or saved last: its proof or a retry may read them."""
        claimed = {e.checkpoint.id for e in self._entries.values() if e.checkpoint is not None}
        return await self.used_checkpoints() | claimed

    async def clean_up(self) -> None:
        """Delete checkpoints that have expired. Raises nothing: it is nobody's request."""
        try:
            await self.retention.clean()
        except Exception:
            self.log.exception("jupyter-pause: deleting expired checkpoints failed; they stay")

    async def delete_checkpoint(self, checkpoint_id: str, *, force: bool) -> None:
        """Delete for good; raises PauseError `checkpoint_in_use` unless forced (never during an operation)."""
        elsewhere = await asyncio.to_thread(self.owner.held_elsewhere)
        if self.uses(checkpoint_id) or checkpoint_id in elsewhere:
            busy = elsewhere.get(checkpoint_id, False) or any(
                e.checkpoint is not None and e.checkpoint.id == checkpoint_id and e.state in ("pausing", "resuming")
                for e in self._entries.values()
            )
            if busy or not force:
                raise PauseError("checkpoint_in_use")
        await asyncio.to_thread(self.store.delete, checkpoint_id)
        for entry in self._entries.values():
            if entry.checkpoint is not None and entry.checkpoint.id == checkpoint_id:
                entry.checkpoint = None
        self.announce()

    # --- life ---------------------------------------------------------------------------------------------------

    @property
    def working(self) -> bool:
        """True while an operation runs (the server must not stop for lack of activity)."""
        return any(op.running for op in self._operations.values())

    def count_running(self) -> int:
        """Kernels that have a process now."""
        return sum(1 for k in self.kernel_manager.list_kernel_ids() if self._entry(k).state != "paused")

    def only_paused(self) -> bool:
        """True when there are kernels and all of them are paused."""
        kernels = list(self.kernel_manager.list_kernel_ids())
        return bool(kernels) and all(self._entry(k).state == "paused" for k in kernels)

    async def tick(self) -> None:
        """Called every two seconds: notices first use of resumed kernels, and kernels that came or went."""
        for kernel_id, entry in list(self._entries.items()):
            if kernel_id not in self.kernel_manager:
                if kernel_id not in self._by_kernel:
                    self._entries.pop(kernel_id, None)
                continue
            if entry.state == "ready":
                await self._note_first_use(kernel_id)
        self.outputs.sync(self.kernel_manager.list_kernel_ids())
        if self.workspace is not None:
            await self.workspace.tick()
        seen = {
            k: reason.code if (reason := self._not_pausable(k)) else None for k in self.kernel_manager.list_kernel_ids()
        }
        if seen != self._seen:
            self._seen = seen
            self.announce()

    def stoppable(self) -> list[str]:
        """Kernels that can be saved before a stop: pausable, not paused, in no operation."""
        kernels = self.kernel_manager.list_kernel_ids()
        idle = [k for k in kernels if k not in self._by_kernel and self._not_pausable(k) is None]
        return [k for k in idle if not self.provisioner(k).paused]

    def pauses_under_way(self) -> dict[str, RunningOperation]:
        """Pauses of single kernels that somebody asked for before the server was stopped, by kernel."""
        alone = {k: op for k, op in self._by_kernel.items() if op.model.kind == "pause" and op.task is not None}
        return {k: op for k, op in alone.items() if op.model.scope == "kernel"}

    def pause_for_stop(self, kernel_id: str, cause: Cause) -> RunningOperation:
        """Pause one kernel because the server stops: nobody is left to be asked. Raises PauseError."""
        self.settings.require_room()
        operation = self._begin("pause", [kernel_id], cause)
        try:
            options = PauseOptions("accept", "wait", cause, save_documents=False)
            run = self._pause_run(operation, kernel_id, options)
        except BaseException:
            self._abandon(operation)
            raise
        self._set(kernel_id, "pausing", phase="checking", operation=operation.id)
        self._launch(operation, self._pause_all(operation, [run]))
        return operation

    async def stop(self) -> None:
        """End what is under way; kernels that were being paused keep running or stay complete on disk."""
        self._stopping = True
        self.outputs.close()
        for operation in self._operations.values():
            if operation.running and operation.model.cancellable:
                operation.cancel_requested.set()
        tasks = [task for task in self._tasks if not task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=self.settings.control_timeout)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _not_usable(why: Reason) -> PauseError:
    params = {name: value for name, value in why.params.items() if name not in ("detail", "why")}
    return PauseError("snapshot_not_usable", detail=why.message, why=why.code, **params)
