# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Who stops the server: the same hook of Jupyter Server runs for a signal, for Ctrl-C and for File > Shut Down.

Handlers that are already there are called as ever; ours only write down what came and when.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jupyter_pause.clock import Clock
    from jupyter_pause.states import StopCause


class StopSignals:
    """Remembers SIGTERM and SIGINT. Times are seconds of the injected monotonic clock."""

    def __init__(
        self, clock: Clock, environ: Mapping[str, str] = os.environ, *, stop: Callable[[], None] | None = None
    ) -> None:
        """`stop()` stops the server; called for a SIGINT by JupyterHub where Python would only break off."""
        self._clock = clock
        # JupyterHub's spawners for local processes begin with SIGINT (seen: LocalProcessSpawner.stop, JupyterHub 6);
        # nobody sits at a terminal there, and without one Jupyter Server does not handle it: it would end without
        # any clean-up.
        self._interrupt_is_order = bool(environ.get("JUPYTERHUB_API_URL"))
        self._stop = stop
        self._installed: dict[int, tuple[Any, Any]] = {}
        #: When the stop was ordered first; None: it was not.
        self.ordered_at: float | None = None
        #: How often Ctrl-C was pressed.
        self.interrupts = 0

    def install(self) -> None:
        """Stand in front of the handlers of this process. Outside the main thread, as in tests, nothing happens.

        Calling it again also covers handlers that were exchanged since: Jupyter Server does that on Ctrl-C.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)
            ours = self._installed.get(number, (None, None))[0]
            if callable(before) and before is not ours:
                wrapper = self._in_front_of(self._ending(before))
                signal.signal(number, wrapper)
                self._installed[number] = (wrapper, before)

    def uninstall(self) -> None:
        """Give the process its own handlers back, unless somebody exchanged ours meanwhile."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number, (ours, before) in self._installed.items():
            if signal.getsignal(number) is ours:
                signal.signal(number, before)
        self._installed.clear()

    def _ending(self, handler: Callable[[int, Any], Any]) -> Callable[[int, Any], Any]:
        stop = self._stop
        if handler is not signal.default_int_handler or not self._interrupt_is_order or stop is None:
            return handler
        return lambda number, frame: stop()

    def _in_front_of(self, handler: Callable[[int, Any], Any]) -> Callable[[int, Any], Any]:
        def note_and_go_on(number: int, frame: Any) -> Any:
            self.note(number)
            return handler(number, frame)

        return note_and_go_on

    def note(self, number: int) -> None:
        """A signal came. Runs inside a signal handler: it only writes down."""
        if number == signal.SIGTERM or self._interrupt_is_order:
            if self.ordered_at is None:
                self.ordered_at = self._clock.monotonic()
        else:
            self.interrupts += 1

    def cause(self, *, stop_called: bool) -> StopCause:
        """Why the server stops now. `stop_called`: its `stop()` was called, which the REST interface does not do."""
        if self.ordered_at is not None:
            return "ordered"
        if not stop_called:
            return "request"
        return "terminal" if self.interrupts else "itself"
