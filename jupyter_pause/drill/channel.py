# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A client on a kernel's WebSocket, as a browser has one. It stays open while the kernel is paused."""

from __future__ import annotations

import json
import time
import uuid
from datetime import UTC, datetime
from typing import Any

#: Seconds that a cell of the drill may take.
CELL_LIMIT = 120.0


class CellError(Exception):
    """A cell did not answer, or failed."""


class KernelChannel:
    """Sends cells and reads their replies."""

    def __init__(self, url: str, token: str, kernel_id: str) -> None:
        """Open the WebSocket; raises OSError or the library's exception when that fails."""
        import websocket

        self._session = uuid.uuid4().hex
        self._replies: dict[str, dict[str, Any]] = {}
        self._socket = websocket.create_connection(
            f"ws{url.removeprefix('http')}api/kernels/{kernel_id}/channels?session_id={self._session}",
            header=[f"Authorization: token {token}"],
            timeout=CELL_LIMIT,
        )

    def close(self) -> None:
        """Close it; a connection that is gone already is fine."""
        try:
            self._socket.close()
        except Exception:
            return

    def send(self, code: str, *, expression: str | None = None, history: bool = True) -> str:
        """Send a cell; returns its message id. `expression` is evaluated after it, `history` counts it."""
        message_id = uuid.uuid4().hex
        header = {
            "msg_id": message_id,
            "msg_type": "execute_request",
            "session": self._session,
            "username": "drill",
            "date": datetime.now(UTC).isoformat(),
            "version": "5.3",
        }
        content = {
            "code": code,
            "silent": False,
            "store_history": history,
            "user_expressions": {"value": expression} if expression else {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        self._socket.send(json.dumps({**message, "buffers": []}))
        return message_id

    def reply(self, message_id: str, limit: float = CELL_LIMIT) -> dict[str, Any]:
        """The `execute_reply` of a cell. Raises CellError when none comes within `limit` seconds."""
        end = time.monotonic() + limit
        while message_id not in self._replies:
            left = end - time.monotonic()
            if left <= 0:
                raise CellError(f"no reply within {limit:.0f} s")
            self._read_one(left)
        return self._replies.pop(message_id)

    def _read_one(self, limit: float) -> None:
        self._socket.settimeout(limit)
        try:
            text = self._socket.recv()
        except Exception as error:  # the library's own timeouts and disconnections, and those of the system
            raise CellError(f"the WebSocket failed ({type(error).__name__})") from error
        if not text:
            raise CellError("the WebSocket was closed by the server")
        if isinstance(text, bytes):
            return
        message = json.loads(text)
        if message.get("header", {}).get("msg_type") == "execute_reply":
            self._replies[message["parent_header"].get("msg_id")] = message["content"]

    def run(self, code: str, *, expression: str | None = None, history: bool = True) -> str | None:
        """Run a cell; returns the text of `expression`. Raises CellError when either fails."""
        content = self.reply(self.send(code, expression=expression, history=history))
        return value_of(content, expression)


def value_of(content: dict[str, Any], expression: str | None) -> str | None:
    """What the expression of a cell gave, from its reply. Raises CellError when the cell or the expression failed."""
    if content.get("status") != "ok":
        raise CellError(f"the cell ended with {content.get('ename') or content.get('status')}: {content.get('evalue')}")
    if expression is None:
        return None
    value = content.get("user_expressions", {}).get("value", {})
    if value.get("status") != "ok":
        raise CellError(f"the expression ended with {value.get('ename')}: {value.get('evalue')}")
    text: str = value["data"]["text/plain"]
    return text
