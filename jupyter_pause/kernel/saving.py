# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""One capture, from the request to ``result.json``: runs on the main thread, between cells, with cells held."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Callable

from . import files

if TYPE_CHECKING:
    from .agent import Agent

#: Seconds without a cell arriving after which those queued behind the pause count as answered, and the most to wait.
QUIET, LONGEST_QUIET = 0.05, 2.0
#: Seconds between two progress files.
PROGRESS_INTERVAL = 0.2


class Saver:
    """Captures the kernel's state into staging folders, one at a time."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._task_staging: str | None = None
        self._unhold_afterwards = False

    @property
    def active(self) -> bool:
        """True from the request until ``result.json`` is written."""
        return self._task_staging is not None

    def begin(self, staging: str, ended: Callable[[], None] | None = None) -> None:
        """Capture to `staging` as soon as no cell runs; returns at once. Cells are held from now on.

        Any thread may call this; `ended()` is called when ``result.json`` is written.
        """
        if self.active:
            message = "Another capture of this kernel is under way."
            write_result(staging, failure("operation_in_progress", message))
            if ended is not None:
                ended()
            return
        self._task_staging = staging
        self._unhold_afterwards = False
        self._agent.gate.hold()
        self._agent.kernel.io_loop.add_callback(self.run, staging, ended)

    def unhold(self) -> None:
        """Let cells run again: now, or when the capture under way has ended."""
        self._unhold_afterwards = True
        if not self.active:
            self._agent.gate.unhold()

    async def run(self, staging: str, ended: Callable[[], None] | None = None) -> None:
        """Do it; never raises an Exception."""
        began = time.monotonic()
        result = failure("capture_failed", "The capture was interrupted.")
        try:
            await self._wait_until_idle(staging)
            await self._settle()
            result = self._capture(staging)
            await self._settle()
        except Exception as error:
            result = _explain(error)
        finally:
            result.setdefault("seconds", round(time.monotonic() - began, 3))
            await self._report_aborted()
            self._task_staging = None
            if result["status"] != "ok" or self._unhold_afterwards:
                self._agent.gate.unhold()
            write_result(staging, result)
            if ended is not None:
                ended()

    async def _wait_until_idle(self, staging: str) -> None:
        """Cells in subshells and cells that await may still run; a cancelled pause does not wait for them."""
        await _until(lambda: not self._agent.gate.running or cancelled(staging))

    async def _settle(self) -> None:
        """Let the cells queued behind the pause be answered before the thread is busy, or the process ends."""
        if getattr(self._agent.kernel, "eventloop", None) is not None:
            return  # a window system's loop owns the thread between messages: a sleep might never end
        gate = self._agent.gate
        await asyncio.sleep(QUIET)
        await _until(lambda: time.monotonic() - gate.changed >= QUIET, LONGEST_QUIET)

    async def _report_aborted(self) -> None:
        reporter = threading.Thread(target=self._agent.report_aborted, name="jupyter_pause report", daemon=True)
        reporter.start()
        await _until(lambda: not reporter.is_alive(), 3.0)

    def _capture(self, staging: str) -> dict[str, Any]:
        if cancelled(staging):
            return {"status": "cancelled", "losses": [], "not_stored": [], "bytes": 0}
        request = files.read_private(os.path.join(staging, "request.json"))
        return self._agent.capture(staging, request, Progress(staging), lambda: cancelled(staging))


class Progress:
    """Writes ``progress.json``, at most five times a second."""

    def __init__(self, staging: str) -> None:
        self._path = os.path.join(staging, "progress.json")
        self._last: float | None = None
        self._phase: str | None = None

    def __call__(self, progress: dict[str, Any]) -> None:
        """`progress` has phase, bytes_done, bytes_total and variable. A disk that is full must not stop us here."""
        now = time.monotonic()
        if self._last is not None and now - self._last < PROGRESS_INTERVAL and progress.get("phase") == self._phase:
            return
        self._last, self._phase = now, progress.get("phase")
        try:
            files.write_private(self._path, progress, sync=False)
        except OSError:
            return


async def _until(check: Callable[[], bool], limit: float = float("inf")) -> None:
    """Wait until `check()` or `limit` seconds have passed; what is waited for happens on threads and on disk."""
    deadline = time.monotonic() + limit
    while not check() and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def cancelled(staging: str) -> bool:
    """True when the server asked to stop (or took the folder away)."""
    return os.path.exists(os.path.join(staging, "cancel")) or not os.path.isdir(staging)


def failure(code: str, message: str) -> dict[str, Any]:
    """What ``result.json`` says when nothing was saved."""
    return {"status": "failed", "code": code, "message": message, "losses": [], "not_stored": [], "bytes": 0}


def write_result(staging: str, result: dict[str, Any]) -> None:
    """Write ``result.json``; a folder that is gone needs none."""
    try:
        files.write_private(os.path.join(staging, "result.json"), result)
    except OSError:
        return


def _explain(error: BaseException) -> dict[str, Any]:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return failure("no_space", "The disk became full. Nothing was lost: the kernel runs on as it was.")
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT):
        return failure("unwritable", "The checkpoint folder cannot be written to ({}).".format(error.strerror))
    return failure("capture_failed", "{}: {}".format(type(error).__name__, error))
