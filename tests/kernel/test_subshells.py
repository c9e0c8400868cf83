# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Clients that were told a subshell's id can go on using it after a resume into a new process."""

from __future__ import annotations

from typing import Any

from .livekernel import LiveKernel


def _control(kernel: LiveKernel, kind: str, **content: Any) -> dict[str, Any]:
    message = kernel.client.session.msg(kind, content)
    kernel.client.control_channel.send(message)
    while True:
        reply = kernel.client.get_control_msg(timeout=60)
        if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
            body: dict[str, Any] = reply["content"]
            return body


def _execute(kernel: LiveKernel, code: str, subshell: str | None) -> str:
    """Send a cell to a subshell; the message's id."""
    content = {"code": code, "silent": False, "user_expressions": {}, "allow_stdin": False, "store_history": True}
    message = kernel.client.session.msg("execute_request", content)
    message["header"]["subshell_id"] = subshell
    kernel.client.shell_channel.send(message)
    return str(message["header"]["msg_id"])


def test_a_subshell_is_there_again_under_its_id(kernel: LiveKernel) -> None:
    ids = [_control(kernel, "create_subshell_request")["subshell_id"] for _ in range(2)]
    kernel.execute("x = 1")
    assert kernel.resume(kernel.save())["status"] == "ok"
    assert _control(kernel, "list_subshell_request")["subshell_id"] == ids
    # It is a subshell as before: it answers while the main one is busy.
    busy = kernel.begin("import time\nwhile x == 1: time.sleep(0.01)")
    assert kernel.answer(_execute(kernel, "x = 2", ids[1])).status == "ok"
    assert kernel.answer(busy).status == "ok"
    assert _control(kernel, "delete_subshell_request", subshell_id=ids[0])["status"] == "ok"
    new = _control(kernel, "create_subshell_request")["subshell_id"]
    assert _control(kernel, "list_subshell_request")["subshell_id"] == [ids[1], new]


def test_without_subshells_nothing_is_made(kernel: LiveKernel) -> None:
    kernel.execute("x = 1")
    assert kernel.resume(kernel.save())["status"] == "ok"
    assert _control(kernel, "list_subshell_request")["subshell_id"] == []
