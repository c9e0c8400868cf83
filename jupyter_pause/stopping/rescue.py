# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Saving all kernels in the time that is left before the server's process is killed.

Each kernel is an operation of its own: one that fails or is too large costs only itself. What was saved is a complete
checkpoint and a paused session, which the next server takes over; what was not is named on disk and in the journal.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import psutil

from jupyter_pause.bounded import bounded
from jupyter_pause.inventory import estimate
from jupyter_pause.kernel_channel import control_request
from jupyter_pause.states import StoppedKernel, StopReport
from jupyter_pause.stopping.plan import Candidate, plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from jupyter_pause.journal import Rate
    from jupyter_pause.operations import RunningOperation
    from jupyter_pause.pauser import Pauser
    from jupyter_pause.states import Cause, StopCause
    from jupyter_pause.stopping.record import StopRecord

#: Kernels saved at the same time: most of a small one is waiting, not writing. Seen on two cores: six kernels of 50 MB
#: take 6 s one by one and 3 s in threes; three of 400 MB take 9.5 s either way.
LANES = 3
#: Seconds that a kernel gets to say what it holds, and how often the end of an operation is looked for.
LOOK, POLL = 2.0, 0.1
#: Resident bytes of a kernel in which nobody has done anything: not a person's.
BARE_KERNEL = 90_000_000
#: Seconds kept for the end of a busy kernel's cell, from the question whether it is still busy.
INTERRUPT_MARGIN = 4.0
#: Seconds that kernels get to answer once time is up: they are ended next.
HURRY = 0.3


class Rescue:
    """One stop. `deadline` is a second of the pauser's monotonic clock; `hurry()` says that nobody wants to wait on."""

    def __init__(
        self,
        pauser: Pauser,
        record: StopRecord,
        *,
        stop: StopCause,
        deadline: float,
        interrupt: bool,
        hurry: Callable[[], bool] = lambda: False,
    ) -> None:
        self._pauser = pauser
        self._record = record
        self._clock = pauser.clock
        self._began = pauser.clock.monotonic()
        self._deadline = deadline
        self._interrupt = interrupt
        self._hurry = hurry
        self._cause: Cause = "stop" if stop == "ordered" else "exit"
        self._operations: dict[str, RunningOperation] = {}
        self._report = StopReport(at=pauser.clock.now(), cause=stop, limit=round(self._left, 3))
        self._kernels: dict[str, StoppedKernel] = {}
        #: Seconds before the deadline at which cells that still run are interrupted.
        self._reserve = INTERRUPT_MARGIN

    @property
    def _left(self) -> float:
        return self._deadline - self._clock.monotonic()

    @property
    def _time_is_up(self) -> bool:
        return self._left <= 0 or self._hurry()

    async def run(self) -> StopReport:
        """Save what can be saved until the deadline. Never raises because of one kernel."""
        await self._name_everything()
        kernels = self._pauser.stoppable()
        self._operations = self._pauser.operations.pauses_of_kernels()
        documents = asyncio.ensure_future(self._save_documents(kernels))
        try:
            candidates = await self._look_at(kernels)
            self._reserve = INTERRUPT_MARGIN + sum(c.seconds for c in candidates if c.busy)
            order = plan(candidates, self._left)
            work = asyncio.ensure_future(self._save_all(order.first, order.then, order.busy))
            await self._until_done(work)
            await self._give_up(work)
        finally:
            documents.cancel()
        await self._conclude()
        return self._report

    async def _until_done(self, work: asyncio.Future[None]) -> None:
        while not work.done() and not self._time_is_up:
            for operation in self._operations.values():
                operation.accept_losses()  # nobody can answer; they are named in the checkpoint and the journal
            await asyncio.wait({work}, timeout=POLL)

    # --- what is there --------------------------------------------------------------------------------------------

    async def _name_everything(self) -> None:
        """On disk first: what is not saved in the end was named all the same."""
        for row in (await self._pauser.state()).kernels:
            if row.state != "paused":
                self._kernels[row.id] = StoppedKernel(
                    kernel=row.id,
                    path=row.path,
                    name=row.name,
                    saved=False,
                    checkpoint=row.checkpoint.id if row.checkpoint else None,
                    code="stopped_unsaved" if row.pausable else "not_pausable",
                )
        await self._write()

    async def _look_at(self, kernels: list[str]) -> list[Candidate]:
        rate = (await asyncio.to_thread(self._pauser.journal.throughput)).pause
        return list(await asyncio.gather(*(self._candidate(kernel_id, rate) for kernel_id in kernels)))

    async def _candidate(self, kernel_id: str, rate: Rate) -> Candidate:
        """What the kernel itself says; where it has not looked closely yet, its memory is the upper bound."""
        kernel = self._pauser.kernel_manager.get_kernel(kernel_id)
        reply = await control_request(kernel, {"op": "inventory", "wait": 0}, min(LOOK, max(self._left / 4, POLL)))
        variables = (reply or {}).get("variables") or []
        value = sum(int(v["bytes"]) for v in variables if v.get("fate") != "lost" and v.get("bytes"))
        size = value
        if reply is None or not reply.get("complete"):
            size = max(value, await self._memory_of(kernel_id) - BARE_KERNEL)
            value = max(value, 1 if reply is None or variables else 0)
        seconds = estimate(size, rate, None).pause_seconds
        assert seconds is not None
        busy = bool((reply or {}).get("busy", self._pauser.kernels.is_busy(kernel_id)))
        return Candidate(kernel_id, value, seconds, busy)

    async def _memory_of(self, kernel_id: str) -> int:
        pid = self._pauser.kernels.provisioner(kernel_id).kernel_pid

        def read() -> int:
            try:
                return int(psutil.Process(pid).memory_info().rss)
            except psutil.Error:
                return 0

        try:
            return await bounded(read, LOOK, "rss")
        except TimeoutError:
            return 0

    async def _save_documents(self, kernels: list[str]) -> None:
        """Beside the saving of the kernels. Pages can still save over connections that are open already."""
        limit = min(self._pauser.settings.save_timeout, max(self._left / 2, POLL))
        answers = await self._pauser.documents.ask(kernels, limit)
        if answers.silent or answers.unsaved:
            self._pauser.journal.record(
                "note", code="documents_unknown", silent=answers.silent, unsaved=len(answers.unsaved)
            )

    # --- saving ---------------------------------------------------------------------------------------------------

    async def _save_all(self, first: list[str], then: list[str], busy: list[str]) -> None:
        under_way = [self._ended(kernel_id, operation) for kernel_id, operation in self._operations.items()]
        waiting = asyncio.gather(*under_way, *(self._save(kernel_id) for kernel_id in busy))
        try:
            for group in (first, then):
                await self._in_lanes(group)
            await waiting
        finally:
            waiting.cancel()

    async def _in_lanes(self, kernels: list[str]) -> None:
        queue = list(reversed(kernels))

        async def lane() -> None:
            while queue:
                await self._save(queue.pop())

        await asyncio.gather(*(lane() for _ in range(LANES)))

    async def _save(self, kernel_id: str) -> None:
        """Saved as soon as no cell runs. Shortly before the time is up a cell is interrupted, if that is allowed.

        Also of a kernel that was idle when it was looked at: a page may have sent it a cell since.
        """
        operation = self._begin(kernel_id)
        if operation is None:
            return
        assert operation.task is not None
        if self._interrupt:
            await asyncio.wait({operation.task}, timeout=max(self._left - self._reserve, 0.0))
            await self._interrupt_cell(kernel_id, operation)
        await self._ended(kernel_id, operation)

    def _begin(self, kernel_id: str) -> RunningOperation | None:
        if self._time_is_up:
            return None
        try:
            operation = self._pauser.pause_for_stop(kernel_id, self._cause)
        except Exception as error:
            self._kernels[kernel_id].code = getattr(error, "code", "internal")
            return None
        self._operations[kernel_id] = operation
        return operation

    async def _ended(self, kernel_id: str, operation: RunningOperation) -> None:
        assert operation.task is not None
        await asyncio.wait({operation.task})
        await self._note(kernel_id, operation)

    async def _interrupt_cell(self, kernel_id: str, operation: RunningOperation) -> None:
        """Never into a capture that has begun: the kernel is asked first."""
        if not operation.running or kernel_id not in self._pauser.kernel_manager:
            return
        kernel = self._pauser.kernel_manager.get_kernel(kernel_id)
        status = await control_request(kernel, {"op": "status"}, min(LOOK, max(self._left / 2, POLL)))
        idle = status is not None and status.get("busy") is False  # no answer: a cell that lets no other thread run
        if idle or operation.model.phase != "checking":
            return
        await kernel.interrupt_kernel()
        self._kernels[kernel_id].interrupted = True
        self._pauser.note(kernel_id, "interrupted_for_stop")

    # --- the end --------------------------------------------------------------------------------------------------

    async def _give_up(self, work: asyncio.Future[None]) -> None:
        """Time is up. What is past its commit ends by itself; the rest is called off and leaves no checkpoint."""
        self._pauser.settings.control_timeout = HURRY
        open_ones = [o for o in self._operations.values() if o.task is not None and not o.task.done()]
        for operation in open_ones:
            if operation.model.cancellable:
                operation.cancel_requested.set()
        if open_ones:
            await asyncio.wait([o.task for o in open_ones if o.task is not None], timeout=1.0)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    async def _note(self, kernel_id: str, operation: RunningOperation) -> None:
        """One operation has ended: say so on disk at once."""
        kernel = self._kernels.get(kernel_id)
        if kernel is None:
            return
        model = operation.model
        if model.state == "done" and model.checkpoint is not None:
            kernel.saved, kernel.checkpoint, kernel.code = True, model.checkpoint, None
            kernel.losses = await self._count_losses(model.checkpoint)
        elif model.error is not None:
            kernel.code = model.error.code
        await self._write()

    async def _count_losses(self, checkpoint_id: str) -> int:
        try:
            return len((await asyncio.to_thread(self._pauser.store.manifest, checkpoint_id)).losses)
        except Exception:
            return 0

    async def _conclude(self) -> None:
        self._report.seconds = round(self._clock.monotonic() - self._began, 3)
        await self._write()
        journal, log = self._pauser.journal, self._pauser.log
        saved = [k for k in self._kernels.values() if k.saved]
        unsaved = [k for k in self._kernels.values() if not k.saved]
        for kernel in saved:
            if kernel.losses:
                journal.record("note", kernel_id=kernel.kernel, code="losses_accepted", losses=kernel.losses)
        for kernel in unsaved:
            journal.record("note", kernel_id=kernel.kernel, code=kernel.code)
            log.warning("jupyter-pause: the kernel %s was not saved before the stop (%s)", kernel.kernel, kernel.code)
        numbers: dict[str, Any] = {"saved": len(saved), "unsaved": len(unsaved), "seconds": self._report.seconds}
        journal.record("stop", code=self._report.cause, **numbers)
        log.info("jupyter-pause: %d of %d kernel(s) saved before the stop", len(saved), len(self._kernels))

    async def _write(self) -> None:
        self._report.kernels = [kernel.model_copy() for kernel in self._kernels.values()]
        try:
            await asyncio.to_thread(self._record.write, self._report.model_copy(deep=True))
        except OSError as error:
            self._pauser.log.warning("jupyter-pause: what this stop keeps could not be written down: %s", error)
