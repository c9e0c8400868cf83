# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Our part of a running kernel: answers the server, holds cells during a pause, saves and loads the kernel's state.

It hooks into ipykernel's message handlers and nothing else: a person's extensions, start-up files and configuration
stay as they are, and nothing is imported that the kernel's own environment would have to provide.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable

from . import (
    control,
    files,
    gate,
    history,
    interpreter,
    link,
    loading,
    mark,
    register,
    saving,
    settings,
    subshells,
    tips,
)
from .files import KernelFiles

REQUEST = "jupyter_pause_request"
CONTROL = "jupyter_pause_control"


def install(app: Any, connection_file: str | None) -> Agent:
    """Put an agent into the kernel of `app`, an initialised but not yet started IPKernelApp; load what is to be loaded.

    Raises only before anything was changed: whatever fails later is told to the server and leaves a working kernel.
    """
    kernel_files = files.KernelFiles(connection_file or app.abs_connection_file)
    agent = Agent(app.kernel, kernel_files)
    agent.install()
    loading.load_at_start(agent)
    agent.start_watchdog()
    return agent


class Agent:
    """One per kernel process."""

    def __init__(self, kernel: Any, kernel_files: KernelFiles) -> None:
        self.kernel = kernel
        #: IPython's shell, or None for a kernel that is not IPython.
        self.shell: Any = getattr(kernel, "shell", None)
        self.files = kernel_files
        self.mark = mark.Mark()
        self.baseline: Any = interpreter.Baseline(self.shell) if self.shell is not None else None
        self.gate = gate.Gate(kernel, self._cell_ended, self._cell_aborted)
        self.saver = saving.Saver(self)
        self.control = control.Control(self)
        self.inventory: Any = None
        #: What did not work in here, as sentences; the server shows them.
        self.problems: list[str] = []
        #: When the last cell ended that had no server (seconds since the epoch): what it printed went to nobody.
        self.ended_alone_at: float | None = None
        self._watchdog: Any = None
        self._after_cell: str | None = None
        self._reporting = threading.Event()

    def install(self) -> None:
        """Register handlers, magics and the inventory. A part that fails is noted and left out."""
        for part in (self._install_handlers, self._install_inventory, self._install_magics, tips.keep_one_tip):
            try:
                part()
            except Exception as error:
                self.note_problem(part.__name__.strip("_"), error)

    def note_problem(self, part: str, error: Exception) -> None:
        """Something in here did not work; the server shows it."""
        self.problems.append("{}: {}: {}".format(part, type(error).__name__, error))

    def _install_handlers(self) -> None:
        self.kernel.shell_handlers[REQUEST] = self._on_request
        self.kernel.control_handlers[CONTROL] = self.control.on_message
        self.gate.install()

    def _install_inventory(self) -> None:
        from . import inventory

        self.inventory = inventory.Inventory(self)

    def _install_magics(self) -> None:
        from . import magics

        if self.shell is not None:
            magics.register(self)

    def start_watchdog(self) -> None:
        """Watch the server from now on."""
        try:
            from . import watchdog

            self._watchdog = watchdog.start(self)
        except Exception as error:
            self.note_problem("watchdog", error)

    # --- capture ------------------------------------------------------------------------------------------------

    async def _on_request(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Shell channel: it arrives behind running and queued cells, which is how the server waits for idle."""
        content = parent.get("content") or {}
        staging = content.get("staging")
        reply = {"status": "error"}
        if content.get("op") == "capture" and isinstance(staging, str) and os.path.isdir(staging):  # noqa: ASYNC240
            self.saver.begin(staging)
            reply = {"status": "ok"}
        self.kernel.session.send(stream, "jupyter_pause_reply", reply, parent=parent, ident=ident)

    def capture_after_cell(self, staging: str) -> None:
        """`%pause`: capture once the running cell is done, before any queued one."""
        self._after_cell = staging

    def _cell_ended(self) -> None:
        if self._watchdog is not None and self._watchdog.is_alone():
            self.ended_alone_at = time.time()
        staging, self._after_cell = self._after_cell, None
        if staging is not None:
            self.saver.begin(staging)
        if self.inventory is not None:
            self.inventory.cell_ended()

    def hidden(self) -> set[str]:
        """Names in the namespace that are not a person's: IPython's own, and what start-up files make anew.

        What start-up files made is kept all the same where that is possible: a cell may have changed it.
        """
        hidden = history.hidden_names(self.shell)
        namespace = self.shell.user_ns
        same = {name for name, value in self.baseline.names.items() if namespace.get(name, self) is value}
        if same:
            scanner = self._new_scanner({name for name in list(namespace) if name not in same})
            while not scanner.step(3600.0):
                continue
            hidden |= {item["name"] for item in scanner.result()["variables"] if item["fate"] == "lost"}
        return hidden

    def scanner(self) -> Any:
        """A new scan of all variables and changed settings (main thread). Raises ImportError, OSError."""
        return self._new_scanner(self.hidden(), settings.collect(self.shell, self.baseline.settings))

    def _new_scanner(self, hidden: set[str], changed: dict[str, Any] | None = None) -> Any:
        self.register_cloudpickle()
        from . import scan

        return scan.Scanner(self.shell.user_ns, hidden, changed)

    def register_cloudpickle(self) -> None:
        """Make the server's cloudpickle importable under our own name. Raises ImportError or OSError."""
        folder = self.files.server().get("cloudpickle")
        if not isinstance(folder, str):
            raise ImportError("the kernel was not started by a server with jupyter-pause")
        register.register(folder)

    def capture(
        self,
        staging: str,
        request: dict[str, Any],
        on_progress: Callable[[dict[str, Any]], None],
        cancelled: Callable[[], bool],
    ) -> dict[str, Any]:
        """Write the state to `staging` (main thread, no cell running); returns what ``result.json`` says."""
        if self.shell is None:
            return saving.failure("not_ipython", "This kernel is not an IPython kernel; only its files can be kept.")
        self.register_cloudpickle()
        from . import capture, shadow_start

        skip_env = request.get("skip_env") or self.files.server().get("skip_env")
        state = interpreter.describe(self.shell, self.baseline, skip_env)
        state["subshells"] = subshells.running(self.kernel)
        state["background"] = self.inventory.background_losses() if self.inventory is not None else []
        namespace = self.shell.user_ns
        shadow_start.write(staging, namespace, state)
        namespace[history.NAME] = history.collect(self.shell)
        namespace[settings.NAME] = settings.collect(self.shell, self.baseline.settings)
        try:
            result: dict[str, Any] = capture.capture(
                namespace,
                staging,
                request,
                interpreter=state,
                hidden=self.hidden(),
                on_progress=on_progress,
                cancelled=cancelled,
            )
        finally:
            namespace.pop(history.NAME, None)
            namespace.pop(settings.NAME, None)
        result.setdefault("not_stored", state["env"]["not_stored"])
        if result["status"] == "ok":
            result["losses"] = result["losses"] + state["background"]
        return result

    # --- cells that were not run --------------------------------------------------------------------------------

    def _cell_aborted(self) -> None:
        """Tell the server a moment later, once for many: it offers to run them after the resume."""
        if self.saver.active or self._reporting.is_set():
            return  # the saver reports before it ends
        self._reporting.set()
        timer = threading.Timer(0.1, self.report_aborted)
        timer.name, timer.daemon = "jupyter_pause report", True
        timer.start()

    def report_aborted(self) -> None:
        """Send the list of cells answered `aborted`; blocks up to two seconds, never raises."""
        self._reporting.clear()
        messages, cells = list(self.gate.aborted_messages), list(self.gate.aborted_cells)
        if not messages:
            return
        try:
            link.request(self.files, {"op": "aborted", "messages": messages, "cells": cells}, timeout=2.0)
        except link.ServerUnreachableError:
            return
