# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which operations there are: at most one a kernel, or one on everything; each of them ends, and stays known."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from .errors import PauseError, as_pause_error
from .operations import Cancelled, DecisionWord, RunningOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from .clock import Clock
    from .journal import Journal
    from .states import Cause, Operation, OperationKind

#: How many ended operations `GET operations/ID` still knows.
KEPT_OPERATIONS = 200


class OperationBook:
    """Begins operations, finds them again, and lets none run for ever."""

    def __init__(
        self,
        clock: Clock,
        journal: Journal,
        log: Any,
        *,
        changed: Callable[[RunningOperation, bool], None],
        ended: Callable[[RunningOperation, PauseError | None], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        """`changed`: called with every change of one; `ended`: when its work is over; `spawn`: starts its work."""
        self._clock = clock
        self._journal = journal
        self._log = log
        self._changed = changed
        self._ended = ended
        self._spawn = spawn
        self._all: dict[str, RunningOperation] = {}
        self._by_kernel: dict[str, RunningOperation] = {}
        #: The operation on the whole workspace, beside which no other may run.
        self.exclusive: RunningOperation | None = None
        #: Set when the server stops: from then on none begins.
        self.closed = False

    # --- looking --------------------------------------------------------------------------------------------------

    def find(self, operation_id: str) -> RunningOperation:
        """The operation of that id; raises PauseError `operation_not_found`."""
        if operation_id not in self._all:
            raise PauseError("operation_not_found")
        return self._all[operation_id]

    def of(self, kernel_id: str) -> RunningOperation | None:
        """The operation that has the kernel now, if any."""
        return self._by_kernel.get(kernel_id)

    def under_way(self) -> list[RunningOperation]:
        """Those that run. One that is still looked at, and may be refused, is none yet."""
        return [op for op in self._all.values() if op.running and op.task is not None]

    @property
    def working(self) -> bool:
        """True while one runs or is looked at (the server must not stop for lack of activity)."""
        return any(op.running for op in self._all.values())

    def pauses_of_kernels(self) -> dict[str, RunningOperation]:
        """Pauses of single kernels that run now, by kernel."""
        pauses = {k: op for k, op in self._by_kernel.items() if op.model.kind == "pause" and op.task is not None}
        return {k: op for k, op in pauses.items() if op.model.scope == "kernel"}

    # --- beginning ------------------------------------------------------------------------------------------------

    def require_free(self, kernels: Iterable[str]) -> None:
        """Raise PauseError `operation_in_progress` while one of the kernels has an operation, or all have one."""
        taken = [self.exclusive, *(self._by_kernel.get(kernel_id) for kernel_id in kernels)]
        other = next((op for op in taken if op is not None), None)
        if other is not None:
            raise PauseError("operation_in_progress", operation=other.id)

    async def until_decided(self, kernels: Iterable[str]) -> None:
        """Wait until it is known of each kernel's operation whether it begins or is refused.

        Somebody who asks for the same meanwhile is told of an operation that runs, or is answered for himself: never of
        one that was refused and is not there any more when he looks for it.
        """
        for kernel_id in kernels:
            while (other := self.exclusive or self.of(kernel_id)) is not None and not other.decided.is_set():
                await other.decided.wait()

    def begin(self, kind: OperationKind, kernels: list[str], cause: Cause) -> RunningOperation:
        """Claim the kernels; raises PauseError `operation_in_progress`, or `server_stopping`."""
        if self.closed:
            raise PauseError("server_stopping")
        self.require_free(kernels)
        operation = RunningOperation(kind, kernels, cause, self._clock, self._changed)
        self._all[operation.id] = operation
        for kernel_id in kernels:
            self._by_kernel[kernel_id] = operation
        over = [key for key, op in self._all.items() if not op.running]
        for key in over[: max(0, len(self._all) - KEPT_OPERATIONS)]:
            del self._all[key]
        return operation

    def begin_on_everything(self, kind: OperationKind, kernels: list[str], cause: Cause) -> RunningOperation:
        """Claim the whole workspace; raises PauseError `operation_in_progress` while any other runs."""
        other = next((op for op in self._all.values() if op.running), None)
        if other is not None:
            raise PauseError("operation_in_progress", operation=other.id)
        operation = self.begin(kind, kernels, cause)
        operation.model.scope = "workspace"
        self.exclusive = operation
        return operation

    def abandon(self, operation: RunningOperation) -> None:
        """It was refused before it began: it leaves no trace."""
        self._all.pop(operation.id, None)
        self._let_go(operation)
        operation.decided.set()

    def end_at_once(self, operation: RunningOperation) -> None:
        """There was nothing to do."""
        self._let_go(operation)
        operation.end("done")
        operation.decided.set()

    def launch(self, operation: RunningOperation, work: Coroutine[Any, Any, None]) -> None:
        """Let it run."""
        operation.task = self._spawn(self._supervise(operation, work))
        operation.decided.set()

    # --- ending ---------------------------------------------------------------------------------------------------

    async def _supervise(self, operation: RunningOperation, work: Coroutine[Any, Any, None]) -> None:
        """Whatever happens in it, it ends."""
        error: PauseError | None = None
        state: Literal["done", "failed", "cancelled"] = "done"
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
                self._log.exception("jupyter-pause: an operation failed unexpectedly")
                error = PauseError("internal", detail=type(failure).__name__)
        finally:
            exclusive = operation is self.exclusive
            for kernel_id in operation.model.kernels:
                self._by_kernel.pop(kernel_id, None)
            if not exclusive:
                self._ended(operation, error)
            operation.end(state, error)
            self._journal.record(
                "operation",
                operation=operation.id,
                code=error.code if error else state,
                phase=operation.model.phase,
                bytes=operation.model.bytes_done,
                seconds=operation.snapshot().elapsed,
            )
            if exclusive:
                self.exclusive = None
                self._ended(operation, error)

    def _let_go(self, operation: RunningOperation) -> None:
        if self.exclusive is operation:
            self.exclusive = None
        for kernel_id in operation.model.kernels:
            if self._by_kernel.get(kernel_id) is operation:
                del self._by_kernel[kernel_id]

    def decide(self, operation_id: str, decision: DecisionWord) -> Operation:
        """Answer one's question; raises PauseError `operation_not_found`, `too_late` or `no_question`."""
        operation = self.find(operation_id)
        operation.decide(decision)
        return operation.snapshot()

    async def cancel(self, operation_id: str, timeout: float) -> Operation:
        """Cancel one and wait until everything is put back, at most `timeout` seconds."""
        operation = self.find(operation_id)
        operation.cancel()
        if operation.task is not None:
            await asyncio.wait({operation.task}, timeout=timeout)
        return operation.snapshot()

    def cancel_all(self) -> None:
        """Ask every operation to end that still can."""
        for operation in self._all.values():
            if operation.running and operation.model.cancellable:
                operation.cancel_requested.set()

    async def ended(self, operation_id: str) -> Operation:
        """Wait for the end of one."""
        operation = self.find(operation_id)
        if operation.task is not None:
            await asyncio.wait({operation.task})
        return operation.snapshot()
