# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The whole pod's part of the state machine: `pauser.py` hands `scope: workspace` over to it.

It joins the owner (who starts and stops the pod), the promise on the home volume, and the kernels, and it says of the
workspace only what one of them confirmed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from jupyter_pause.bounded import bounded
from jupyter_pause.errors import PauseError
from jupyter_pause.inventory import environments
from jupyter_pause.inventory.files import read_mounts
from jupyter_pause.inventory.gpu import gpu_items
from jupyter_pause.kernel.interpreter import LIVE_ENV, matches
from jupyter_pause.kernel_channel import control_request
from jupyter_pause.kernel_manager_marks import ManagerMarks
from jupyter_pause.owners.base import Check
from jupyter_pause.pausing import PauseOptions
from jupyter_pause.states import (
    AGGREGATION_ORDER,
    Loss,
    Operation,
    Phase,
    PodSnapshotRow,
    Proof,
    Reason,
    ResumeReport,
    ResumeRequest,
    State,
    WorkspaceRow,
)

from .intent import Intent, IntentFile, ServerMark
from .pausing import Thawed, WorkspacePauseRun
from .proving import ThawProof, cold_report
from .sentences import reason
from .thaw import Gap, GapWatch, PodIdentity, Whereabouts, judge

if TYPE_CHECKING:
    from datetime import datetime

    from jupyter_pause.operations import RunningOperation
    from jupyter_pause.owners.base import OwnerView, WorkspaceOwner
    from jupyter_pause.pauser import Pauser
    from jupyter_pause.states import Outcome, PauseRequest, ServerState, WorkspaceResumeReport

#: Seconds after which checks that stood in the way are made again when somebody looks.
CHECK_AGAIN = 60.0
#: Seconds that looking where environments lie may take; a dead network mount may block for ever.
ENVIRONMENT_LIMIT = 5.0
#: Seconds between two calls of `tick`.
TICK = 2.0
#: Seconds and tries in which a pause that others asked for waits for an operation that is under way.
JOIN_PAUSE, JOIN_TRIES = 0.2, 10


@dataclass(frozen=True)
class WorkspaceSettings:
    """What app.py reads from the configuration. Times are seconds.

    `release_timeout`: from a release without a snapshot (or a finished one) until the pod must be gone.
    `confirm_timeout`: how long the owner's word is waited for after a thaw. `step`: between two looks for a thaw.
    """

    checkpoint_budget: float = 60.0
    snapshot_timeout: float = 1200.0
    release_timeout: float = 300.0
    apply_checkpoints: Literal["ask", "always"] = "ask"
    confirm_timeout: float = 20.0
    kernel_timeout: float = 10.0
    step: float = 0.5


class WorkspacePauser:
    """Pauses the workspace and finds out how it came back; one operation for all of it at a time."""

    def __init__(
        self,
        *,
        pauser: Pauser,
        owner: WorkspaceOwner,
        intents: IntentFile,
        identity: PodIdentity,
        settings: WorkspaceSettings,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.pauser = pauser
        self.owner = owner
        self.intents = intents
        self.identity = identity
        self.settings = settings
        self.mark = ServerMark()
        self.whereabouts: Whereabouts = identity.look()
        #: The server is being ended: what is under way is not put back any more.
        self.stopping = asyncio.Event()
        self._environ = environ
        self._started = pauser.clock.now()
        self._gaps = GapWatch(pauser.clock)
        self._checks: list[Check] = []
        self._checked: datetime | None = None
        self._checking: asyncio.Task[None] | None = None
        self._operation: RunningOperation | None = None
        self._thawed: Thawed | None = None
        self._ready_since: datetime | None = None
        self._outcome: Outcome | None = None
        self._last_resume: WorkspaceResumeReport | None = None
        self._reason: Reason | None = None
        self._times: dict[str, datetime] = {}
        self._joining = False
        #: A pause was asked for and this process is on its way out.
        self._going = False
        self._seen: OwnerView | None = None
        self._specifications: dict[str, list[str]] = {}
        #: Kernels that the idle culler must not end when they wake up, days older by the clock.
        self._not_culled: dict[str, ManagerMarks] = {}

    # --- looking ------------------------------------------------------------------------------------------------

    def complete(self, state: ServerState) -> None:
        """Put the workspace into the answer of `GET state`."""
        row = self.row()
        state.mode, state.scope, state.owner, state.workspace = "cluster", "workspace", self.owner.kind, row
        states: list[State] = [kernel.state for kernel in state.kernels]
        if row.state not in ("running", "ready") or not states:
            states.append(row.state)
        state.state = next(s for s in AGGREGATION_ORDER if s in states)
        if row.state == state.state:
            state.phase, state.since = row.phase, row.since
        state.blocked_by = self.blocked_by(row)
        state.can_pause = not state.blocked_by and row.state in ("running", "ready") and row.operation is None
        self._check_again_when_blocked()

    def row(self) -> WorkspaceRow:
        """The workspace as its owner and we have it."""
        view = self.owner.view()
        state, phase, since = self._shown(view)
        operation = self._operation
        return WorkspaceRow(
            namespace=self.owner.namespace,
            name=self.owner.name,
            state=state,
            phase=phase,
            since=since or self._started,
            observed_at=view.observed_at,
            stateful=view.stateful,
            pod=view.pod,
            snapshot=view.snapshot,
            waiting=view.waiting,
            reason=self._reason or view.error,
            warnings=[reason(c.code, c.params) for c in self._checks if c.severity == "warns"],
            operation=operation.id if operation is not None else None,
            outcome=self._outcome,
            last_resume=self._last_resume,
            timeline={**self._times, **view.timeline},
            door=self.owner.door(),
        )

    def event(self) -> dict[str, Any]:
        """The workspace's part of a `state` event: no name, no path."""
        row = self.row()
        why = row.waiting or row.reason
        return {
            "state": row.state,
            "phase": row.phase,
            "outcome": row.outcome,
            "operation": row.operation,
            "code": why.code if why is not None else None,
        }

    def _shown(self, view: OwnerView) -> tuple[State, Phase | None, datetime | None]:
        operation = self._operation
        if operation is not None:
            state: State = "pausing" if operation.model.kind == "pause" else "resuming"
            return state, operation.model.phase, operation.model.started
        if self.stopping.is_set() and self._going:
            return "pausing", "releasing", view.since
        if view.state in ("running", "resuming", "waiting") and self._ready_since is not None:
            return "ready", None, self._ready_since  # proven from inside: whatever the cluster still has to note
        return view.state, view.phase, view.since

    def blocked_by(self, row: WorkspaceRow) -> list[Reason]:
        """What stands in the way of a pause; an owner of whom nothing is known does too."""
        found = [reason(c.code, c.params) for c in self._checks if c.severity == "blocks"]
        if row.state == "unknown" and row.operation is None:
            found.append(row.reason or reason("not_looked_yet"))
        elif self._checked is None:
            found.append(reason("not_looked_yet"))
        try:
            self.pauser.settings.require_room()
        except PauseError as error:
            found.append(Reason(code=error.code, message=error.sentence))
        return found

    def note_time(self, step: str, at: datetime) -> None:
        """A time for the timeline."""
        self._times[step] = at

    async def environment(self) -> dict[str, Any]:
        """What a snapshot is bound to, as far as it shows from inside."""
        devices = [item for item in await gpu_items(()) if item.kind == "device"]
        return {"gpus": sorted(device.name for device in devices)}

    def live_environment(self) -> dict[str, str]:
        """The server's own variables that kernels share (tokens among them). Never written down."""
        return {name: value for name, value in self._environ.items() if matches(name, LIVE_ENV)}

    def token_names(self) -> list[str]:
        """Names of the server's variables that look like credentials."""
        return sorted(name for name in self._environ if matches(name, self.pauser.settings.skip_env))

    # --- checks -------------------------------------------------------------------------------------------------

    async def refresh_checks(self) -> list[Check]:
        """Look again at what stands in the way."""
        self._checks = [*await self.owner.checks(), *await self._environment_checks()]
        self._checked = self.pauser.clock.now()
        self.pauser.kernels.announce()
        return self._checks

    def _interpreters(self) -> dict[str, list[str]]:
        """What starts the Python kernels that there are, by the name of their specification."""
        manager = self.pauser.kernel_manager
        kernels = [manager.get_kernel(kernel_id) for kernel_id in manager.list_kernel_ids()]
        # The provisioner's: a specification that says just "python" means the server's own.
        found = {kernel.kernel_name: getattr(kernel.provisioner, "interpreter_argv", []) for kernel in kernels}
        return {name: list(argv) for name, argv in found.items() if argv}

    async def _environment_checks(self) -> list[Check]:
        """S37: environments that a cold start would not have."""
        self._specifications = self._interpreters()
        argv_of = self._specifications
        try:
            names = await bounded(
                lambda: environments.names_to_warn_of(argv_of, read_mounts()), ENVIRONMENT_LIMIT, "environments"
            )
        except (TimeoutError, OSError):
            return []  # nothing is known of them, so nothing is said
        return [Check(environments.REASON, "warns", {"names": names})] if names else []

    async def _note_new_environments(self) -> None:
        """A kernel of another specification was started since the checks were made."""
        if self._checked is None or self._interpreters() == self._specifications:
            return
        others = [check for check in self._checks if check.code != environments.REASON]
        self._checks = [*others, *await self._environment_checks()]
        self.pauser.kernels.announce()

    def _check_again_when_blocked(self) -> None:
        """Rights are granted without a sign: whoever looks at a blocked button makes us look again, not too often."""
        blocked = any(check.severity == "blocks" for check in self._checks)
        old = self._checked is not None and (self.pauser.clock.now() - self._checked).total_seconds() > CHECK_AGAIN
        if blocked and old:
            self._check_soon()

    def _check_soon(self) -> None:
        if self._checking is None or self._checking.done():
            self._checking = self.pauser.background(self._check_quietly())

    async def _check_quietly(self) -> None:
        try:
            await self.refresh_checks()
        except Exception:
            self.pauser.log.exception("jupyter-pause: looking at what stands in the way of a pause failed")

    # --- pause --------------------------------------------------------------------------------------------------

    async def pause(self, request: PauseRequest) -> Operation:
        """Begin to pause the workspace; raises PauseError when it is refused (nothing has changed then)."""
        operation = self.pauser.begin_workspace("pause", request.cause)
        options = PauseOptions(request.on_loss, request.when_busy, request.cause)
        try:
            await self._require_free()
            stateful = self.owner.view().stateful is True
            await self._precheck(request, operation.model.kernels, stateful)
            run = WorkspacePauseRun(self, operation, options)
        except BaseException:
            self.pauser.operations.abandon(operation)
            raise
        self._begin(operation, run, stateful)
        return operation.snapshot()

    async def _require_free(self) -> None:
        self.pauser.settings.require_room()
        checks = await self.refresh_checks()
        blocked = [reason(c.code, c.params).model_dump(mode="json") for c in checks if c.severity == "blocks"]
        view = self.owner.view()
        if view.state in ("pausing", "paused"):
            raise PauseError("workspace_pausing")
        if view.state == "unknown":
            blocked.append((view.error or reason("not_looked_yet")).model_dump(mode="json"))
        if blocked:
            raise PauseError("workspace_blocked", blocked_by=blocked)

    async def _precheck(self, request: PauseRequest, kernels: list[str], stateful: bool) -> None:
        """With a snapshot nothing in memory is lost; without one the kernels are asked as on one machine."""
        if stateful:
            if request.when_busy == "refuse" and any(self.pauser.kernels.is_busy(kernel_id) for kernel_id in kernels):
                raise PauseError("kernel_busy")
            return
        losses: list[Loss] = []
        paths = await self.pauser.paths()
        for kernel_id in kernels:
            try:
                await self.pauser.precheck(kernel_id, request)
            except PauseError as error:
                if error.code == "not_pausable":
                    name = paths.get(kernel_id) or kernel_id
                    losses.append(Loss(name=name, path=name, type="kernel", reason=error.sentence))
                elif error.code == "would_lose":
                    losses += error.losses or []
                else:
                    raise
        if losses and request.on_loss == "refuse":
            raise PauseError("would_lose", losses=losses)

    def _begin(self, operation: RunningOperation, run: WorkspacePauseRun, stateful: bool) -> None:
        self._operation, self._reason, self._thawed, self._times = operation, None, None, {}
        self.pauser.kernels.show_all(operation.model.kernels, "pausing", phase="checking", operation=operation.id)
        self.pauser.kernels.announce()
        self.pauser.operations.launch(operation, self._pause(run, stateful))

    async def _pause(self, run: WorkspacePauseRun, stateful: bool) -> None:
        self._thawed = await run.run(stateful=stateful)

    def left(self, operation: RunningOperation, error: PauseError | None) -> None:
        """An operation on the workspace has ended; `pauser.py` calls this in its place for single kernels."""
        if self._operation is operation:
            self._operation = None
        thawed, self._thawed = self._thawed, None
        code = error.code if error is not None else None
        self._reason = reason(error.code, error.params) if error is not None else None
        if thawed is not None:
            self._begin_proof(thawed)
            return
        self._going = self.stopping.is_set() and error is None and operation.model.kind == "pause"
        if not self._going:
            for kernel_id in operation.model.kernels:
                self.pauser.kernels.back_to_work(kernel_id, code)
        self.pauser.kernels.announce()

    def keep_from_culler(self, kernels: list[str]) -> None:
        """Jupyter's own culler may be the first to run after a thaw: it would count the pause as idle time (S10)."""
        for kernel_id in kernels:
            if kernel_id in self.pauser.kernel_manager and not self.pauser.kernels.is_paused(kernel_id):
                marks = ManagerMarks(self.pauser.kernel_manager.get_kernel(kernel_id))
                self._not_culled.setdefault(kernel_id, marks).never_cull()

    async def unhold(self, kernels: list[str]) -> None:
        """Cells run again in all kernels that were kept from running them, and their idle clocks start anew."""

        async def let_go(kernel_id: str) -> None:
            marks = self._not_culled.pop(kernel_id, None)
            if marks is not None:
                marks.cull_as_ever()
            if kernel_id in self.pauser.kernel_manager and not self.pauser.kernels.is_paused(kernel_id):
                kernel = self.pauser.kernel_manager.get_kernel(kernel_id)
                await control_request(kernel, {"op": "unhold"}, self.settings.kernel_timeout)

        await asyncio.gather(*(let_go(kernel_id) for kernel_id in kernels))

    # --- what the owner does without us ---------------------------------------------------------------------------

    def _owner_changed(self) -> None:
        view, before = self.owner.view(), self._seen
        self._seen = view
        same = before is not None and (before.state, before.phase, before.waiting, before.error, before.snapshot) == (
            view.state,
            view.phase,
            view.waiting,
            view.error,
            view.snapshot,
        )
        if not same:
            self.pauser.kernels.announce()
        if before is not None and before.state != "running" and view.state == "running":
            self._check_soon()
        if view.state == "pausing" and view.phase == "snapshotting" and not self._joining and self._operation is None:
            self._joining = True
            self.pauser.background(self._join())

    async def _join(self) -> None:
        """Somebody else asked for the pause. There are seconds: marks and promise, silence, then the freeze."""
        try:
            for _ in range(JOIN_TRIES):
                if self.stopping.is_set() or self._operation is not None:
                    return
                try:
                    operation = self.pauser.begin_workspace("pause", "stop")
                except PauseError:
                    self.pauser.operations.cancel_all()
                    await asyncio.sleep(JOIN_PAUSE)
                    continue
                options = PauseOptions("accept", "wait", "stop", save_documents=False)
                self._begin(operation, WorkspacePauseRun(self, operation, options, joins=True), stateful=True)
                return
            await self.owner.quiet()  # no promise could be made, but at least nothing of ours breaks the snapshot
        finally:
            self._joining = False

    # --- back again -------------------------------------------------------------------------------------------------

    def _begin_proof(self, thawed: Thawed) -> None:
        operation = self.pauser.begin_workspace("resume", "user")
        self.pauser.idle_clock_anew()
        self.keep_from_culler(operation.model.kernels)
        self.whereabouts = self.identity.look()
        self._gaps.restart()
        self._operation = operation
        self.pauser.kernels.show_all(operation.model.kernels, "resuming", phase="proving", operation=operation.id)
        self.pauser.kernels.announce()
        self.pauser.operations.launch(operation, self._prove(operation, thawed))

    async def _prove(self, operation: RunningOperation, thawed: Thawed) -> None:
        operation.enter("proving")
        operation.point_of_no_return()
        try:
            await self.pauser.owner.after_thaw()
        except OSError:  # the home volume may be late; records are written again with the next change
            self.pauser.log.exception("jupyter-pause: records could not be written anew after the pause")
        try:
            report = await ThawProof(self, thawed).run()
        finally:
            await self.unhold(operation.model.kernels)
        operation.model.outcome = report.outcome
        self._outcome, self._last_resume = report.outcome, report
        self._ready_since = self.pauser.clock.now()
        self.note_time("proven", self._ready_since)
        await self._show_in_kernels(report)
        self.pauser.journal.record(
            "workspace",
            operation=operation.id,
            code=report.outcome,
            seconds=report.paused_seconds,
            kernels=len(report.kernels),
            mismatched=sum(1 for proof in report.kernels if proof.mark is False or proof.mismatched),
        )
        if thawed.intent is not None:
            await self._close(thawed.intent, "proved", report)
        self._check_soon()

    async def _show_in_kernels(self, report: WorkspaceResumeReport) -> None:
        for proof in report.kernels:
            if self.pauser.kernels.is_paused(proof.kernel):
                self.pauser.kernels.show_all([proof.kernel], "paused")
                continue
            good = proof.mark is not False and not proof.mismatched
            outcome: Outcome = "fresh" if proof.mark is False else "restored" if good else "partial"
            await self.pauser.came_back(
                ResumeReport(
                    kernel=proof.kernel,
                    at=report.at,
                    outcome=outcome,
                    via="snapshot" if outcome != "fresh" else None,
                    checkpoint=proof.checkpoint,
                    seconds=report.paused_seconds,
                    proof=Proof(mark=proof.mark, compared=proof.compared, mismatched=proof.mismatched),
                )
            )

    async def _close(self, intent: Intent, state: Literal["proved", "fresh", "taken_back"], report: Any = None) -> None:
        """The promise is kept or void; whoever starts next in this pod reads how it ended."""
        closed = intent.model_copy(
            update={
                "state": state,
                "report": report,
                "resumed_pod_uid": self.whereabouts.pod_uid or self.owner.view().pod_uid,
                "resumed_namespace_id": self.whereabouts.namespace_id,
            }
        )
        try:
            await asyncio.to_thread(self.intents.write, closed)
        except OSError:
            self.pauser.log.warning("jupyter-pause: the promise of the last pause could not be closed on disk")

    async def owner_says_elsewhere(self) -> bool:
        """Where no file tells which pod this is: one question to the owner."""
        before = self.owner.view().pod_uid
        try:
            await self.owner.wake()
            now = await self.owner.resumed_from()
        except Exception:
            return False
        elsewhere = now.pod_uid is not None and before is not None and now.pod_uid != before
        if not elsewhere and self._operation is not None:
            await self.owner.quiet()
        return elsewhere

    # --- start and stop -------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """After an earlier server's sessions were taken over: what does the disk say, then what does the owner."""
        intent = await asyncio.to_thread(self.intents.read)
        told = intent is not None and await self._tell_at_once(intent)
        self.owner.listen(self._owner_changed)
        self.pauser.background(self._start_owner(None if told else intent))

    async def _tell_at_once(self, intent: Intent) -> bool:
        """What files alone tell: a new pod, or how the last resume in this one ended. False: ask the owner."""
        here = self.whereabouts
        if intent.state in ("proved", "fresh"):
            if intent.report is not None and self._is_here(intent.resumed_pod_uid, intent.resumed_namespace_id) is True:
                self._last_resume, self._outcome = intent.report, intent.report.outcome
            return True
        if intent.state == "taken_back":
            return True
        if Whereabouts(intent.pod_uid).is_elsewhere(here) is True:
            await self._started_cold(intent)
            return True
        return False

    def _is_here(self, pod_uid: str | None, namespace_id: str | None) -> bool | None:
        now = self.whereabouts.pod_uid or self.owner.view().pod_uid
        if pod_uid is not None and now is not None:
            return pod_uid == now
        return None if namespace_id is None else namespace_id == self.whereabouts.namespace_id

    async def _start_owner(self, undecided: Intent | None) -> None:
        try:
            await self.owner.start()
            if undecided is not None:
                if self._is_here(undecided.pod_uid, undecided.namespace_id) is False:
                    await self._started_cold(undecided)
                else:
                    await self._started_in_the_middle(undecided)
            await self._check_quietly()
        except Exception:
            self.pauser.log.exception("jupyter-pause: the owner of this workspace could not be followed")

    async def _started_cold(self, intent: Intent) -> None:
        """Same files, new processes: said in that word, and the checkpoints are offered (or applied, if set)."""
        kept = {entry.id for entry in await asyncio.to_thread(self.pauser.store.entries) if entry.damaged is None}
        report = cold_report(intent, self.pauser.clock.now(), kept)
        report.warnings += self._without_specification(intent)
        self._last_resume, self._outcome = report, "fresh"
        self.pauser.journal.record(
            "workspace",
            operation=intent.operation,
            code="fresh",
            kernels=len(report.kernels),
            seconds=report.paused_seconds,
        )
        await self._close(intent, "fresh", report)
        self.pauser.kernels.announce()
        if self.settings.apply_checkpoints == "always":
            self.pauser.background(self._apply_checkpoints(intent, report))

    def _without_specification(self, intent: Intent) -> list[Reason]:
        """S37: kernels of the promise that nothing can start any more."""
        promised = {promise.kernel_id for promise in intent.kernels}
        lacking = self.pauser.owner.without_specification
        errors = [
            PauseError("kernelspec_missing", name=name)
            for name in sorted({name for kernel_id, name in lacking.items() if kernel_id in promised})
        ]
        return [Reason(code=error.code, message=error.sentence, params=error.params) for error in errors]

    async def _apply_checkpoints(self, intent: Intent, report: WorkspaceResumeReport) -> None:
        """Setting `apply_checkpoints: always`. What cannot be resumed as it is stays paused and says why."""
        await self.pauser.taken_over.wait()
        for proof in report.kernels:
            if proof.checkpoint is None or not self.pauser.kernels.is_paused(proof.kernel):
                continue
            try:
                operation = await self.pauser.resume(ResumeRequest(kernel=proof.kernel))
                if (await self.pauser.operations.ended(operation.id)).state == "done":
                    report.via = "checkpoint"
            except PauseError as error:
                self.pauser.note(proof.kernel, error.code)
        await self._close(intent, "fresh", report)
        self.pauser.kernels.announce()

    async def _started_in_the_middle(self, intent: Intent) -> None:
        """A server died in the middle of a pause and this one took its place in the same pod."""
        view = self.owner.view()
        if view.state == "pausing":
            return  # it goes on; `_owner_changed` has joined it, with new marks
        self.pauser.journal.record("note", code="pause_cut_short", operation=intent.operation)
        await self._close(intent, "taken_back")

    async def before_stop(self) -> None:
        """The server is being ended, first of all: by the release that was asked for, or by others.

        Kernels whose checkpoint is written already are ended as paused ones, so that the next start finds them.
        """
        operation = self._operation
        self.stopping.set()
        if operation is None or operation.model.kind != "pause" or operation.task is None:
            return
        if operation.model.phase in ("checking", "saving"):  # nobody was asked yet: others save the kernels now
            operation.cancel_requested.set()
        await asyncio.wait({operation.task}, timeout=self.settings.step * 4)
        intent = await asyncio.to_thread(self.intents.read)
        if intent is not None and intent.operation == operation.id:
            for promise in intent.kernels:
                if promise.checkpoint is not None and not promise.paused:
                    await self.pauser.leave_as_paused(promise.kernel_id, promise.checkpoint)

    async def stop(self) -> None:
        """Follow the owner no more."""
        await self.owner.stop()

    async def tick(self) -> None:
        """Called every two seconds: a freeze that nobody asked us for, and the first use after a resume."""
        if self._ready_since is not None and self.pauser.kernels.any_used():
            self._ready_since = None
            self.pauser.kernels.announce()
        await self._note_new_environments()
        gap = self._gaps.look(TICK)
        if self._operation is None and not self.stopping.is_set():
            await self._look_for_a_thaw(gap)

    async def _look_for_a_thaw(self, gap: Gap) -> None:
        now = await asyncio.to_thread(self.identity.look)
        verdict = judge(self.whereabouts, now, gap)
        elsewhere = verdict == "thawed" or (verdict == "ask" and await self.owner_says_elsewhere())
        if elsewhere and self._operation is None:
            try:
                self._begin_proof(Thawed(gap, None))
            except PauseError:
                return  # an operation on a kernel was frozen with it and goes on now; the next tick tries again

    # --- snapshots ------------------------------------------------------------------------------------------------

    async def snapshots(self) -> list[PodSnapshotRow]:
        """Pod snapshots, newest first."""
        return await self.owner.snapshots()

    async def delete_snapshot(self, snapshot_id: str, *, force: bool) -> None:
        """Ask the cluster to delete one."""
        await self.owner.delete_snapshot(snapshot_id, force=force)
