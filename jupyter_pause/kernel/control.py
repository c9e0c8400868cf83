# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The control channel: short questions of the server, answered on ipykernel's control thread while a cell runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Callable

from . import interpreter, samples

if TYPE_CHECKING:
    from .agent import Agent

REPLY = "jupyter_pause_control_reply"
#: Version of the messages between server and kernel.
PROTOCOL = 1


class Control:
    """Answers ``jupyter_pause_control``. An answer that has to wait is sent later; the thread is never kept."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def on_message(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """ipykernel's handler: looks up the operation and sends its reply."""
        content = parent.get("content") or {}

        def reply(body: dict[str, Any]) -> None:
            self._agent.kernel.session.send(stream, REPLY, body, parent=parent, ident=ident)

        operation = getattr(self, "_op_" + str(content.get("op")), None)
        if operation is None:
            reply({"status": "error", "code": "unknown_op"})
            return
        try:
            body = operation(content, reply)
        except Exception as error:
            body = {"status": "error", "code": "agent_failed", "message": "{}: {}".format(type(error).__name__, error)}
        if body is not None:
            reply(dict({"status": "ok"}, **body))

    def _op_status(self, content: dict[str, Any], reply: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        agent = self._agent
        return {
            "busy": agent.gate.running,
            "ended_alone_at": agent.ended_alone_at,
            "cells_shown": agent.gate.cells_shown,
            "held": agent.gate.held,
            "capturing": agent.saver.active,
            "pid": os.getpid(),
            "version": PROTOCOL,
            "available": agent.shell is not None and not agent.problems,
            "problems": list(agent.problems),
            "reviver_problems": _reviver_problems(),
        }

    def _op_hold(self, content: dict[str, Any], reply: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        self._agent.gate.hold(park=bool(content.get("park")))
        return {"held": True}

    def _op_unhold(self, content: dict[str, Any], reply: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        self._agent.saver.unhold()
        return {"held": self._agent.gate.held}

    def _op_mark(self, content: dict[str, Any], reply: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        mark = self._agent.mark
        return {"digest": mark.renew() if content.get("renew") else mark.digest}

    def _op_prove(self, content: dict[str, Any], reply: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        return {"mark": self._agent.mark.reveal(), "nonce": content.get("nonce"), "pid": os.getpid()}

    def _op_sample(self, content: dict[str, Any], reply: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        if self._agent.shell is None:
            return {"samples": [], "busy": False}
        count = content.get("count")
        number = count if isinstance(count, int) and not isinstance(count, bool) else 20
        return {
            "samples": samples.take(self._agent.shell, max(0, min(number, 1000)), content.get("names")),
            "busy": self._agent.gate.running,
        }

    def _op_renew_env(self, content: dict[str, Any], reply: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        return {"renewed": interpreter.renew_env(content.get("env") or {})}

    def _op_inventory(self, content: dict[str, Any], reply: Callable[[dict[str, Any]], None]) -> dict[str, Any] | None:
        if self._agent.inventory is None:
            return {"status": "error", "code": "not_available"}
        wait = content.get("wait")
        seconds = float(wait) if isinstance(wait, (int, float)) and not isinstance(wait, bool) else 0.0
        self._agent.inventory.answer(min(max(seconds, 0.0), 600.0), lambda body: reply(dict({"status": "ok"}, **body)))
        return None


def _reviver_problems() -> list[str]:
    """Revivers of installed packages that could not be loaded; none before the first scan or capture."""
    plugins = sys.modules.get(__package__ + ".revivers.plugins") if __package__ else None
    return list(getattr(plugins, "problems", ()))
