# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What is set on a kernel's own manager while it has no process, and taken back afterwards.

Three things of Jupyter Server would otherwise go wrong with a paused kernel: a new WebSocket waits for `kernel_info`
and "nudges" a kernel that is not busy (twice a minute's time-out), and the idle culler shuts it down.
"""

from __future__ import annotations

import asyncio
import copy
from concurrent.futures import Future
from typing import Any

from .clock import SYSTEM_CLOCK

#: Seconds; what `metadata.cull_idle_timeout` of the manager's own copy of the kernel specification says meanwhile.
NEVER_CULL = 10 * 365 * 86400
#: WebSocket close code "service restart": clients connect again.
_SERVICE_RESTART = 1012


class _Busy(str):
    """The word `busy` that can be told from one the kernel said."""

    __slots__ = ()


_PLACEHOLDER = _Busy("busy")


class ManagerMarks:
    """The marks on one kernel manager. Every method may be called again."""

    def __init__(self, kernel_manager: Any) -> None:
        self._km = kernel_manager
        self._kernel_spec: Any = None
        self._info: Future[Any] | None = None
        self._watching = False

    # --- set and taken back -------------------------------------------------------------------------------------

    def apply(self) -> None:
        """The kernel has no process: busy, known, never culled."""
        self._set_state(_PLACEHOLDER)
        self._watch_state(True)
        self._answer_kernel_info()
        self.never_cull()

    def never_cull(self) -> None:
        """Keep the idle culler away: also from a process that is about to be frozen, for days perhaps."""
        if self._kernel_spec is None and self._km.kernel_spec is not None:
            self._kernel_spec = self._km.kernel_spec
            own = copy.copy(self._kernel_spec)
            own.metadata = {**self._kernel_spec.metadata, "cull_idle_timeout": NEVER_CULL}
            self._km._kernel_spec = own

    def cull_as_ever(self) -> None:
        """The idle clock starts anew: the time without a process, or in a snapshot, was no idle time (S10)."""
        if self._kernel_spec is not None:
            self._km._kernel_spec, self._kernel_spec = self._kernel_spec, None
        if hasattr(self._km, "last_activity"):
            self._km.last_activity = SYSTEM_CLOCK.now()

    def expect_answer(self) -> None:
        """There is a process that loads: still "busy", but what the kernel says itself counts now."""
        self._watch_state(False)
        self._set_state(_PLACEHOLDER)

    def remove(self, state: str = "idle") -> None:
        """Back to what Jupyter would say; `state` where the kernel itself has not said anything yet."""
        # While the state was watched nothing but our own word can stand there.
        if self._watching or getattr(self._km, "execution_state", None) is _PLACEHOLDER:
            self._watch_state(False)
            self._set_state(state)
        self.cull_as_ever()
        if self._info is not None and getattr(self._km, "_kernel_info_future", None) is self._info:
            del self._km._kernel_info_future  # it said nothing: the next connection asks the kernel
        self._info = None

    def _set_state(self, state: str) -> None:
        if hasattr(self._km, "execution_state"):
            self._km.execution_state = state

    def _watch_state(self, on: bool) -> None:
        """Late messages of the ended process, and the start of an adoption, must not change the state."""
        if on == self._watching or not self._km.has_trait("execution_state"):
            return
        self._watching = on
        (self._km.observe if on else self._km.unobserve)(self._keep_busy, "execution_state")

    def _keep_busy(self, change: Any) -> None:
        if change["new"] != "busy":
            self._km.execution_state = _PLACEHOLDER

    def _answer_kernel_info(self) -> None:
        """Jupyter Server keeps one answer per kernel; without one every new WebSocket would wait for it."""
        known = getattr(self._km, "_kernel_info_future", None)
        if known is None:
            self._info = known = self._km._kernel_info_future = Future()
        if not known.done():
            known.set_result({})

    # --- connections --------------------------------------------------------------------------------------------

    def reconnect_clients(self) -> None:
        """The ports changed: everything of this server that is connected to the old ones has to connect anew."""
        km, manager, kernel_id = self._km, self._km.parent, self._km.kernel_id
        km._close_control_socket()
        km._connect_control_socket()
        if kernel_id in getattr(manager, "_kernels", {}) and hasattr(manager, "start_watching_activity"):
            manager.stop_watching_activity(kernel_id)
            manager.start_watching_activity(kernel_id)
        server = getattr(manager, "parent", None)
        connections = getattr(getattr(server, "kernel_websocket_connection_class", None), "_open_sockets", ())
        for connection in list(connections):
            if connection.kernel_id == kernel_id:
                connection.websocket_handler.close(_SERVICE_RESTART, "the kernel has other ports")

    async def answered(self) -> None:
        """Return once the kernel answers on its shell channel, behind the cells that were waiting for it.

        On a stream of the manager's own: closing a second client's `zmq.asyncio` sockets disturbs others of the loop.
        """
        session = self._km.session
        message = session.msg("kernel_info_request")
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def on_message(parts: list[bytes]) -> None:
            try:
                reply = session.deserialize(session.feed_identities(parts)[1])
            except ValueError:  # not signed with this kernel's key
                return
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"] and not answer.done():
                answer.set_result(None)

        stream = self._km.connect_shell()
        try:
            stream.on_recv(on_message)
            session.send(stream, message)
            await answer
        finally:
            stream.close()
