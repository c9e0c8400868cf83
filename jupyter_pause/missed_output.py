# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Output that no page received: counted, so that the gap in a notebook is stated and not just there (cases.md S36).

In Jupyter the browser writes output into the notebook. While no page is connected to a kernel what it prints goes to
nobody; Jupyter Server keeps it only for a page that comes back with its old connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .states import MissedOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .clock import Clock

#: What a page would have put into the notebook (Jupyter messaging protocol, "Messages on the IOPub channel").
OUTPUT = frozenset({"stream", "display_data", "update_display_data", "execute_result", "error"})


class OutputWatch:
    """Listens to the output of kernels and counts what came while nobody was connected."""

    def __init__(self, kernel_manager: Any, clock: Clock, changed: Callable[[], None]) -> None:
        """`changed` is called when a gap begins and when it is over."""
        self._manager = kernel_manager
        self._clock = clock
        self._changed = changed
        self._streams: dict[str, tuple[int, Any]] = {}
        self._missed: dict[str, MissedOutput] = {}

    def of(self, kernel_id: str) -> MissedOutput | None:
        """The kernel's gap, until the next cell that a page runs."""
        return self._missed.get(kernel_id)

    def note(self, kernel_id: str, missed: MissedOutput | None) -> None:
        """A gap that is known from elsewhere: an earlier server's, or the time without a server."""
        if missed is not None:
            self._missed[kernel_id] = missed

    def sync(self, kernel_ids: Iterable[str]) -> None:
        """Listen to exactly these kernels; one whose ports changed is connected anew."""
        wanted = set(kernel_ids)
        for kernel_id in set(self._streams) - wanted:
            self._close(kernel_id)
        for kernel_id in set(self._missed) - wanted:
            del self._missed[kernel_id]
        for kernel_id in wanted:
            kernel = self._manager.get_kernel(kernel_id)
            port = kernel.iopub_port
            if self._streams.get(kernel_id, (port, None))[0] != port:
                self._close(kernel_id)
            if kernel_id not in self._streams and port:
                self._streams[kernel_id] = (port, self._open(kernel_id, kernel))

    def forget(self, kernel_id: str) -> None:
        """The kernel was restarted: what it printed before is over."""
        self._missed.pop(kernel_id, None)

    def close(self) -> None:
        """Stop listening."""
        for kernel_id in list(self._streams):
            self._close(kernel_id)

    def _open(self, kernel_id: str, kernel: Any) -> Any:
        session = kernel.session
        # Not `connect_iopub`'s owner's stream: the one of Jupyter Server's own activity watch stays as it is.
        stream = kernel.connect_iopub()

        def on_message(parts: list[bytes]) -> None:
            try:
                message = session.deserialize(session.feed_identities(parts)[1], content=False)
            except ValueError:  # not signed with this kernel's key
                return
            self._received(kernel_id, str(message["header"]["msg_type"]))

        stream.on_recv(on_message)
        return stream

    def _close(self, kernel_id: str) -> None:
        _, stream = self._streams.pop(kernel_id)
        if not stream.closed():
            stream.close()

    def _received(self, kernel_id: str, message_type: str) -> None:
        if kernel_id not in self._manager:
            return
        alone = self._manager.kernel_model(kernel_id)["connections"] == 0
        missed = self._missed.get(kernel_id)
        if message_type == "execute_input" and not alone and missed is not None:
            del self._missed[kernel_id]  # somebody works here again and was told when the notebook opened
            self._changed()
        elif message_type in OUTPUT and alone:
            now = self._clock.now()
            if missed is None:
                self._missed[kernel_id] = MissedOutput(messages=1, since=now, until=now, cause="no_page")
                self._changed()
                return
            missed.until = now
            if missed.messages is not None:
                missed.messages += 1
