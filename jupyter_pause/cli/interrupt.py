# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Ctrl-C while the server is being asked to begin: kept until it has answered, or nobody would know what to cancel."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .output import Output


class HeldInterrupt:
    """Keeps one Ctrl-C back between `hold` and `release`; a second one ends the command at once."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._pressed = False
        self._before: Any = None

    def hold(self) -> None:
        """From now on Ctrl-C waits."""
        if self._before is None:
            self._before = signal.signal(signal.SIGINT, self._on_signal)

    def release(self) -> None:
        """Ctrl-C works again; raises KeyboardInterrupt when it was pressed meanwhile. May be called again."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None
        if self._pressed:
            self._pressed = False
            raise KeyboardInterrupt

    def _on_signal(self, number: int, frame: Any) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True
        self._output.complain("Waiting for the server's answer ... (Ctrl-C again leaves the operation to the server)")
