# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What is known of each kernel beyond what Jupyter knows; whoever wants to know is told of every change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import PauseError
from .kernel_channel import control_request
from .provisioner import PauseProvisioner
from .states import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from .clock import Clock
    from .journal import Journal
    from .states import CheckpointSummary, Outcome, PauseReport, Phase, ResumeReport, State


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


class KernelTable:
    """The kernels of this server and their states."""

    def __init__(
        self,
        kernel_manager: Any,
        clock: Clock,
        journal: Journal,
        *,
        emit: Callable[[str, dict[str, Any]], None],
        workspace_event: Callable[[], dict[str, Any]],
        control_timeout: Callable[[], float],
    ) -> None:
        """`emit(name, data)` publishes an event; `workspace_event()`: the state of the whole; times are seconds."""
        self.manager = kernel_manager
        self._clock = clock
        self._journal = journal
        self._emit = emit
        self._workspace_event = workspace_event
        self._control_timeout = control_timeout
        self._entries: dict[str, KernelEntry] = {}
        #: Kernels at the last look, with the code of what stands in the way of pausing them.
        self._seen: dict[str, str | None] = {}
        #: Grows with every event.
        self.revision = 0

    def __contains__(self, kernel_id: str) -> bool:
        """Whether Jupyter has the kernel."""
        return kernel_id in self.manager

    def __iter__(self) -> Iterator[str]:
        """The ids of the kernels that Jupyter has."""
        return iter(list(self.manager.list_kernel_ids()))

    # --- one kernel -----------------------------------------------------------------------------------------------

    def entry(self, kernel_id: str) -> KernelEntry:
        """What is known; a kernel that nothing was known of runs."""
        if kernel_id not in self._entries:
            self._entries[kernel_id] = KernelEntry(kernel_id, self._clock.now())
        return self._entries[kernel_id]

    def known(self, kernel_id: str) -> KernelEntry | None:
        """What is known, if anything is."""
        return self._entries.get(kernel_id)

    def entries(self) -> list[KernelEntry]:
        """Everything that is known."""
        return list(self._entries.values())

    def drop(self, kernel_id: str) -> KernelEntry | None:
        """The kernel is no more; returns what was known."""
        return self._entries.pop(kernel_id, None)

    def not_pausable(self, kernel_id: str) -> Reason | None:
        """Why this kernel can never be paused; None when it can."""
        provisioner = getattr(self.manager.get_kernel(kernel_id), "provisioner", None)
        if provisioner is None:
            return Reason(code="starting")
        if not isinstance(provisioner, PauseProvisioner):
            return Reason(code="foreign_provisioner")
        reason = provisioner.not_pausable
        return None if reason is None else Reason.model_validate(reason, from_attributes=True)

    def provisioner(self, kernel_id: str) -> PauseProvisioner:
        """The kernel's provisioner when it is ours; raises PauseError `kernel_not_found` or `not_pausable`."""
        if kernel_id not in self.manager:
            raise PauseError("kernel_not_found")
        reason = self.not_pausable(kernel_id)
        provisioner = self.manager.get_kernel(kernel_id).provisioner
        if reason is not None or not isinstance(provisioner, PauseProvisioner):
            code = reason.code if reason is not None else "foreign_provisioner"
            raise PauseError("not_pausable", detail=code, why=code, **(reason.params if reason else {}))
        return provisioner

    def is_busy(self, kernel_id: str) -> bool:
        """True while Jupyter says that a cell runs."""
        return getattr(self.manager.get_kernel(kernel_id), "execution_state", None) == "busy"

    async def really_busy(self, kernel_id: str) -> bool:
        """Ask the kernel itself: Jupyter's own word lags behind by a message."""
        reply = await self.ask_status(kernel_id)
        return self.is_busy(kernel_id) if reply is None else bool(reply.get("busy"))

    async def ask_status(self, kernel_id: str) -> dict[str, Any] | None:
        """What the kernel says of itself; None when it does not answer in time."""
        return await control_request(self.manager.get_kernel(kernel_id), {"op": "status"}, self._control_timeout())

    def is_paused(self, kernel_id: str) -> bool:
        """Whether the kernel has no process now because it was paused."""
        if kernel_id not in self.manager:
            return False
        return bool(getattr(getattr(self.manager.get_kernel(kernel_id), "provisioner", None), "paused", False))

    def pid_of(self, kernel_id: str) -> int | None:
        """The kernel's process, where it is ours to know."""
        if kernel_id not in self.manager:
            return None
        return getattr(getattr(self.manager.get_kernel(kernel_id), "provisioner", None), "kernel_pid", None)

    async def note_cells_before(self, kernel_id: str) -> None:
        """The process came back as it was: cells that it has run by now are not its first use."""
        status = await self.ask_status(kernel_id)
        self.entry(kernel_id).cells_before = int((status or {}).get("cells_shown") or 0)

    async def note_first_use(self, kernel_id: str) -> None:
        """`ready` means back, proven and not used yet: the first cell turns it into `running`.

        The kernel itself is asked: what Jupyter calls activity also comes from a frontend that only reconnects.
        """
        entry = self._entries.get(kernel_id)
        if entry is None or entry.state != "ready" or kernel_id not in self.manager:
            return
        status = await self.ask_status(kernel_id)
        used = status is not None and int(status.get("cells_shown") or 0) > entry.cells_before
        if used and entry.state == "ready":
            self.show(kernel_id, "running", outcome=entry.outcome)

    # --- all of them ------------------------------------------------------------------------------------------------

    def pausable(self) -> list[str]:
        """Kernels that can be paused at all."""
        return [kernel_id for kernel_id in self if self.not_pausable(kernel_id) is None]

    def any_used(self) -> bool:
        """Whether a kernel has run a cell, or was started, since they all were `ready`."""
        return any(self.entry(kernel_id).state == "running" for kernel_id in self)

    def count_running(self) -> int:
        """Kernels that have a process now."""
        return sum(1 for kernel_id in self if self.entry(kernel_id).state != "paused")

    def only_paused(self) -> bool:
        """True when there are kernels and all of them are paused."""
        kernels = list(self)
        return bool(kernels) and all(self.entry(kernel_id).state == "paused" for kernel_id in kernels)

    def look_for_changes(self) -> None:
        """Tell when kernels came or went, or can be paused now, or no more."""
        seen = {k: reason.code if (reason := self.not_pausable(k)) else None for k in self}
        if seen != self._seen:
            self._seen = seen
            self.announce()

    # --- changing -----------------------------------------------------------------------------------------------

    def show(
        self,
        kernel_id: str,
        state: State,
        *,
        phase: Phase | None = None,
        operation: str | None = None,
        outcome: Outcome | None = None,
        code: str | None = None,
    ) -> None:
        """The kernel is in this state from now on."""
        entry = self.entry(kernel_id)
        if entry.state != state:
            entry.since = self._clock.now()
        entry.state, entry.phase, entry.operation, entry.outcome = state, phase, operation, outcome
        entry.reason = Reason(code=code) if code else None
        self.publish(
            "state",
            {
                "kernel_id": kernel_id,
                "state": state,
                "phase": phase,
                "outcome": outcome,
                "operation": operation,
                "code": code,
            },
        )
        self._journal.record("state", kernel_id=kernel_id, operation=operation, phase=phase, code=code or state)

    def show_all(
        self, kernels: list[str], state: State, *, phase: Phase | None = None, operation: str | None = None
    ) -> None:
        """Show kernels in a state; one that is paused on the disk goes neither to `pausing` nor to `resuming`."""
        for kernel_id in kernels:
            if state == "paused" or not self.is_paused(kernel_id):
                self.show(kernel_id, state, phase=phase, operation=operation)

    def back_to_work(self, kernel_id: str, code: str | None) -> None:
        """Whatever was begun with the kernel is over: it runs, or is paused as before."""
        entry = self.entry(kernel_id)
        if entry.state in ("pausing", "resuming"):
            state: State = "paused" if self.is_paused(kernel_id) else "running"
            self.show(kernel_id, state, outcome=entry.outcome, code=code)
        entry.operation = None

    def announce(self) -> None:
        """Tell every frontend to read everything again: a kernel came or went, the workspace changed its state."""
        self.publish("state", {"kernel_id": None, **self._workspace_event()})

    def publish(self, name: str, data: dict[str, Any]) -> None:
        """Emit a numbered event."""
        self._emit(name, self.with_revision(data))

    def with_revision(self, data: dict[str, Any]) -> dict[str, Any]:
        """Number an event."""
        self.revision += 1
        return {"revision": self.revision, **data}
