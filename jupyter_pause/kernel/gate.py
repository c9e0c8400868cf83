# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Stands in front of ipykernel's handlers: knows which cells run, and answers cells `aborted` while held.

After a capture whatever a cell changes would be lost quietly, so no cell runs until the process ends or the hold is
lifted. Widget messages are kept back instead: they get no answer, and are handled if the hold is lifted. While the
process itself goes to a snapshot cells wait too: it will run them when it is back.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from typing import Any, Callable

_CELLS = ("execute_request",)
#: Seconds between two looks of a cell that waits for the end of a snapshot.
_WAIT = 0.02
_COMMS = ("comm_open", "comm_msg", "comm_close")


class Gate:
    """One per kernel. All methods may be called from any thread."""

    def __init__(self, kernel: Any, on_cell_end: Callable[[], None], on_abort: Callable[[], None]) -> None:
        """`on_cell_end()` runs on the cell's own thread right after its reply was sent; `on_abort()` after an abort."""
        self._kernel = kernel
        self._on_cell_end = on_cell_end
        self._on_abort = on_abort
        self._lock = threading.Lock()
        self._running = 0
        self._kept_back: list[Any] = []
        self._held = False
        self._parking = False
        #: Monotonic second of the last change: a cell began or ended, or was aborted.
        self.changed = time.monotonic()
        #: Cells run in this process so far: what was measured before is old when it differs.
        self.cells_run = 0
        #: The same without silent ones (frontends send those by themselves): 0 means that nobody used the kernel yet.
        self.cells_shown = 0
        #: What was answered `aborted` since the hold began: message ids, and the ids of their notebook cells.
        self.aborted_messages: list[str] = []
        self.aborted_cells: list[str] = []

    def install(self) -> None:
        """Wrap the handlers of the shell and the control channel (which takes cells as well)."""
        for table in (self._kernel.shell_handlers, self._kernel.control_handlers):
            for names, wrap in ((_CELLS, self._wrap_cell), (_COMMS, self._wrap_comm)):
                for name in names:
                    if name in table:
                        table[name] = wrap(table[name])

    @property
    def running(self) -> bool:
        """True while at least one cell (also one that awaits, also one in a subshell) runs."""
        return self._running > 0

    @property
    def held(self) -> bool:
        """True while cells are answered `aborted`."""
        return self._held

    def hold(self, park: bool = False) -> None:
        """From now on every cell is answered `aborted`; with `park` it waits for the end of the hold instead."""
        with self._lock:
            if not self._held:
                self.aborted_messages, self.aborted_cells = [], []
            self._held, self._parking = True, park

    def unhold(self) -> None:
        """Cells run again, and widget messages that were kept back are handled now."""
        with self._lock:
            self._held = self._parking = False
            kept, self._kept_back = self._kept_back, []
        loop = getattr(self._kernel, "io_loop", None)
        if kept and loop is not None:
            loop.add_callback(self._replay, kept)

    def _wrap_cell(self, handler: Any) -> Any:
        async def execute_request(stream: Any, ident: Any, parent: dict[str, Any]) -> None:
            while self._held and self._parking:  # noqa: ASYNC110
                await asyncio.sleep(_WAIT)
            if self._held:
                self._abort(stream, ident, parent)
                return
            with self._lock:
                self._running += 1
                self.cells_run += 1
                if not (parent.get("content") or {}).get("silent"):
                    self.cells_shown += 1
                self.changed = time.monotonic()
            try:
                await _finish(handler(stream, ident, parent))
            finally:
                with self._lock:
                    self._running -= 1
                    self.changed = time.monotonic()
                self._on_cell_end()

        return execute_request

    def _wrap_comm(self, handler: Any) -> Any:
        async def comm_request(stream: Any, ident: Any, parent: dict[str, Any]) -> None:
            with self._lock:
                if self._held:
                    self._kept_back.append((handler, stream, ident, parent))
                    return
            await _finish(handler(stream, ident, parent))

        return comm_request

    def _abort(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """The reply ipykernel itself gives to cells queued behind a failed one; its caller says busy and idle."""
        self._kernel._send_abort_reply(stream, parent, ident)
        content = parent.get("content") or {}
        with self._lock:
            self.changed = time.monotonic()
            if not content.get("silent"):
                self.aborted_messages.append(parent["header"]["msg_id"])
                cell = (parent.get("metadata") or {}).get("cellId")
                if cell:
                    self.aborted_cells.append(cell)
        self._on_abort()

    async def _replay(self, kept: list[Any]) -> None:
        for handler, stream, ident, parent in kept:
            try:
                self._kernel.set_parent(ident, parent)
                await _finish(handler(stream, ident, parent))
            except Exception:
                self._kernel.log.debug("jupyter-pause: a late widget message failed", exc_info=True)


async def _finish(result: Any) -> None:
    if inspect.isawaitable(result):
        await result
