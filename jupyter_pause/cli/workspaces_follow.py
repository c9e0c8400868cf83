# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Follows a workspace to where it was asked to go: live progress, a limit, Ctrl-C that leaves the request in place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from jupyter_pause.clock import SYSTEM_CLOCK

from .output import Output, duration
from .server import CliError
from .workspaces_text import SNAPSHOT_PROBLEMS, progress, reason_of, row, silence, state_words

if TYPE_CHECKING:
    from jupyter_pause.owners.base import OwnerView

    from .workspaces_target import Target

#: Seconds between two lines of progress; changes come by themselves.
TICK = 1.0
#: Exit code: the time is up and there is no capacity yet.
STILL_WAITING = 5


class Follow:
    """One wait for a workspace, with the time it has taken (seconds)."""

    def __init__(self, target: Target, output: Output, *, verb: str, timeout: float) -> None:
        self._target, self._output = target, output
        self._verb, self._timeout = verb, timeout
        self._began = SYSTEM_CLOCK.monotonic()
        self._told = ""
        #: Has something been asked of the cluster that goes on without us?
        self.asked = False
        self.waited_for_capacity = 0.0

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return SYSTEM_CLOCK.monotonic() - self._began

    async def until(self, reached: Callable[[OwnerView], bool]) -> OwnerView:
        """The first view that `reached` accepts; it may raise CliError to give up.

        Raises CliError `still_waiting` (exit code 5), `timeout` (1) or `cluster_unreachable` (4) when the time is up,
        and `detached` (130) on Ctrl-C.
        """
        try:
            while True:
                view = self._target.view()
                if reached(view):
                    self._output.end_progress()
                    return view
                self._show(view)
                left = self._timeout - self.seconds
                if left <= 0:
                    raise await self._time_is_up(view)
                await self._wait(view, min(TICK, left))
        except asyncio.CancelledError:
            raise self._detached() from None

    async def _wait(self, view: OwnerView, seconds: float) -> None:
        before = self.seconds
        await self._target.changed(seconds)
        if view.state == "waiting":
            self.waited_for_capacity += self.seconds - before

    def _show(self, view: OwnerView) -> None:
        """A line that changes on a terminal; elsewhere one line per step, so that a log says what happened."""
        if self._output.live:
            self._output.progress(progress(self._verb, view, self.seconds, self._target.silent()))
            return
        step = f"{state_words(view)}{': ' + reason_of(view) if reason_of(view) else ''}"
        if step != self._told:
            self._told = step
            self._output.say(f"{self._target.name}: {step}, after {duration(self.seconds)}")

    async def _time_is_up(self, view: OwnerView) -> CliError:
        name, target = self._target.name, self._target
        after = duration(self.seconds)
        silent = target.silent()
        body = {"workspace": row(target.namespace, name, target.kind, view)}
        if silent is not None:
            return CliError(
                "cluster_unreachable", f"{_capital(silence(silent))} ({after}). {self._left()}", exit_code=4
            )
        if view.state == "waiting":
            text = f"After {after} {name} is still waiting for capacity: {reason_of(view)}. {self._left()}"
            return CliError("still_waiting", text, exit_code=STILL_WAITING, body=body)
        reason = f" ({reason_of(view)})" if reason_of(view) else ""
        kept = await self._kept(view)
        text = f"After {after} {name} is not there yet; the last step seen is {state_words(view)}{reason}. {kept}"
        return CliError("timeout", text + self._left(), body=body)

    async def _kept(self, view: OwnerView) -> str:
        """The snapshot that a resume which does not end leaves behind (cases.md S21), looked up, not assumed."""
        if view.snapshot is None or view.state == "pausing":
            return ""
        problem = await self._target.snapshot_problem()
        return f"Snapshot {view.snapshot} {SNAPSHOT_PROBLEMS[problem] if problem else 'is kept'}. "

    def _detached(self) -> CliError:
        return CliError("detached", f"Stopped looking. {self._left()}", exit_code=130)

    def _left(self) -> str:
        """What goes on without us."""
        where = f"{self._target.name} --namespace {self._target.namespace}"
        if not self.asked:
            return f"Nothing was asked for; `jupyter pause status {where}` shows how it goes on."
        return (
            f"What was asked for stays asked for: see `jupyter pause status {where}`, "
            f"or wait on with `jupyter pause wait {where}`."
        )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
