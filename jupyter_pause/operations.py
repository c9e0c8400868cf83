# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""An operation while it runs: its record, its progress, its question and its cancellation."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any, Literal

from .errors import PauseError
from .states import Cause, Operation, OperationKind, Phase, Question

if TYPE_CHECKING:
    from collections.abc import Callable

    from .clock import Clock

DecisionWord = Literal["accept", "refuse"]


class RunningOperation:
    """One pause or resume. `changed` is called after every change that somebody may want to see."""

    def __init__(
        self,
        kind: OperationKind,
        kernels: list[str],
        cause: Cause,
        clock: Clock,
        changed: Callable[[RunningOperation, bool], None],
    ) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._ended: float | None = None
        self._changed = changed
        self._decision: asyncio.Future[DecisionWord] | None = None
        self.cancel_requested = asyncio.Event()
        #: Set once it runs, or was refused: until then it is only looked at whether it may begin.
        self.decided = asyncio.Event()
        #: The server is being stopped: steps that only make sure are left out.
        self.in_a_hurry = False
        self.task: asyncio.Task[None] | None = None
        self.model = Operation(id=uuid.uuid4().hex, kind=kind, kernels=kernels, started=clock.now(), cause=cause)

    @property
    def id(self) -> str:
        """32 hex digits."""
        return self.model.id

    @property
    def running(self) -> bool:
        """True until it is done, failed or cancelled."""
        return self.model.state in ("running", "needs_decision")

    def snapshot(self) -> Operation:
        """A copy of the record with `elapsed` (seconds) brought up to date."""
        end = self._ended if self._ended is not None else self._clock.monotonic()
        return self.model.model_copy(update={"elapsed": round(end - self._began, 3)}, deep=True)

    def enter(self, phase: Phase) -> None:
        """Begin a phase; raises `Cancelled` when somebody cancelled meanwhile."""
        self.raise_if_cancelled()
        self.model.phase = phase
        self._changed(self, True)

    def progress(self, done: int, total: int | None) -> None:
        """Bytes written or read so far."""
        if (done, total) != (self.model.bytes_done, self.model.bytes_total):
            self.model.bytes_done, self.model.bytes_total = done, total
            self._changed(self, False)

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` when cancelling was asked for while it is still possible."""
        if self.cancel_requested.is_set() and self.model.cancellable:
            raise Cancelled

    def point_of_no_return(self) -> None:
        """From here on the operation can no longer be cancelled."""
        self.raise_if_cancelled()
        self.model.cancellable = False
        self._changed(self, True)

    def cancel(self) -> None:
        """Ask for cancellation; raises PauseError `too_late` or `not_cancellable`."""
        if not self.running:
            raise PauseError("too_late")
        if not self.model.cancellable:
            raise PauseError("not_cancellable")
        self.cancel_requested.set()

    async def ask(self, question: Question, timeout: float) -> DecisionWord:
        """Wait for a decision; nobody answering for `timeout` seconds counts as "refuse"."""
        self._decision = asyncio.get_running_loop().create_future()
        self.model.state, self.model.question = "needs_decision", question
        self._changed(self, True)
        cancelled = asyncio.ensure_future(self.cancel_requested.wait())
        try:
            waiting: set[asyncio.Future[Any]] = {self._decision, cancelled}
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            self.raise_if_cancelled()
            return self._decision.result() if self._decision.done() else "refuse"
        finally:
            cancelled.cancel()
            self._decision = None
            if self.running:
                self.model.state, self.model.question = "running", None
                self._changed(self, True)

    def decide(self, decision: DecisionWord) -> None:
        """Answer the question; raises PauseError `too_late` or `no_question`."""
        if not self.running:
            raise PauseError("too_late")
        if self._decision is None or self._decision.done():
            raise PauseError("no_question")
        self._decision.set_result(decision)

    def accept_losses(self) -> None:
        """Answer an open question about losses when nobody is left who could, and hurry."""
        self.in_a_hurry = True
        question, decision = self.model.question, self._decision
        if question is not None and question.code == "would_lose" and decision is not None and not decision.done():
            decision.set_result("accept")

    def end(self, state: Literal["done", "failed", "cancelled"], error: PauseError | None = None) -> None:
        """Close the record."""
        self._ended = self._clock.monotonic()
        self.model.state = state
        self.model.question = None
        self.model.cancellable = False
        self.model.error = error.to_model() if error is not None else None
        self._changed(self, True)


class Cancelled(Exception):
    """The person cancelled; whoever catches it puts things back."""
