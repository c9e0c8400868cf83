# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What happens to the kernels when the server stops: who stops it decides what is done."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupyter_pause.stopping.record import StopRecord, corrected
from jupyter_pause.stopping.signals import StopSignals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jupyter_pause.owners.base import Adopted
    from jupyter_pause.pauser import Pauser
    from jupyter_pause.states import OnExit, StopCause, StopReport


@dataclass(frozen=True)
class StopSettings:
    """What app.py reads from the configuration. Times are seconds."""

    on_exit: OnExit
    on_exit_timeout: float
    grace_period: float
    interrupt_on_stop: bool


class Stopper:
    """Decides what is done with running kernels before Jupyter Server ends them.

    `ask(question, give_up)` asks a person at the terminal in a thread: True keep, False discard, None nobody answered.
    """

    def __init__(
        self,
        pauser: Pauser,
        signals: StopSignals,
        record: StopRecord,
        settings: StopSettings,
        *,
        ask: Callable[[str, Callable[[], bool]], bool | None],
        log: Any,
    ) -> None:
        self._pauser = pauser
        self._signals = signals
        self._record = record
        self._settings = settings
        self._ask = ask
        self._log = log
        self._work: asyncio.Task[None] | None = None

    async def run(self, *, stop_called: bool) -> None:
        """Before the kernels are ended. A second stop while the first is at work waits for it.

        `stop_called`: see `StopSignals.cause`.
        """
        if self._work is None:
            self._work = asyncio.get_running_loop().create_task(self._run(stop_called))
        await asyncio.shield(self._work)

    async def _run(self, stop_called: bool) -> None:
        self._signals.install()
        interrupts = self._signals.interrupts
        cause = self._signals.cause(stop_called=stop_called)
        try:
            keep = cause == "ordered" or await self._wanted(cause)
            if self._signals.ordered_at is not None:  # it may have come while a person was being asked
                cause, keep = "ordered", True
            if keep:
                await self._rescue(cause, lambda: self._signals.interrupts > interrupts)
            else:
                await asyncio.to_thread(self._record.forget)
                self._say_what_ends("on_exit = 'checkpoint'")
        except Exception:
            self._log.exception("jupyter-pause: saving the kernels before the stop failed")

    async def _wanted(self, cause: StopCause) -> bool:
        """A person's own act: as configured. Behind a browser nobody can be asked any more: then the state is kept."""
        if self._settings.on_exit != "ask" or not self._pauser.kernels.count_running():
            return self._settings.on_exit != "discard"
        if cause != "terminal":
            return True
        question = f"Save the state of {self._pauser.kernels.count_running()} running kernel(s) for the next start"
        answer = await asyncio.to_thread(self._ask, question, lambda: self._signals.ordered_at is not None)
        return answer is not False

    async def _rescue(self, cause: StopCause, hurry: Callable[[], bool]) -> None:
        if not self._pauser.kernels.count_running():
            await asyncio.to_thread(self._record.forget)
            return
        from jupyter_pause.stopping.rescue import Rescue

        now = self._pauser.clock.monotonic()
        if cause == "ordered":
            assert self._signals.ordered_at is not None
            limit = self._settings.grace_period
            deadline = self._signals.ordered_at + limit
        else:
            limit = self._settings.on_exit_timeout
            deadline = now + limit
        if limit <= 0:
            self._say_what_ends("grace_period > 0" if cause == "ordered" else "on_exit_timeout > 0")
            return
        running = self._pauser.kernels.count_running()
        self._log.info("jupyter-pause: the server stops; saving %d running kernel(s) within %d s", running, limit)
        await Rescue(
            self._pauser,
            self._record,
            stop=cause,
            deadline=deadline,
            interrupt=self._settings.interrupt_on_stop,
            hurry=hurry,
        ).run()

    def _say_what_ends(self, setting: str) -> None:
        if running := self._pauser.kernels.count_running():
            self._log.info(
                "jupyter-pause: %d running kernel(s) end with it; PauseApp.%s keeps their state.", running, setting
            )

    async def last_stop(self, adopted: Sequence[Adopted]) -> StopReport | None:
        """What the last stop kept, as it looks now that the sessions of the earlier server were taken over."""
        report = await asyncio.to_thread(self._record.read)
        return None if report is None else corrected(report, {a.kernel_id: a.checkpoint for a in adopted})


__all__ = ["StopRecord", "StopSettings", "StopSignals", "Stopper"]
