# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Cells during a pause: answered `aborted`, never left on [*], and run again once the hold is lifted."""

from __future__ import annotations

import signal
from collections.abc import Callable

from .livekernel import LiveKernel, until


def test_cells_are_aborted_while_held_and_run_afterwards(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute("x = 1")
    assert kernel.control(op="hold")["held"] is True
    answer = kernel.execute("x = 2")
    assert answer.status == "aborted"
    assert answer.states == ["busy", "idle"]
    assert kernel.control(op="status")["held"] is True
    assert kernel.control(op="unhold")["held"] is False
    assert kernel.execute("x").text == "1"


def test_status_is_answered_while_a_cell_runs(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    cell = kernel.begin("import time\nwhile True: time.sleep(0.01)")
    assert kernel.control(op="status")["busy"] is True
    kernel.interrupt(cell)
    until(lambda: not kernel.control(op="status")["busy"], "the cell ended")


def test_a_cell_that_awaits_counts_as_running(kernel: LiveKernel) -> None:
    cell = kernel.begin("import asyncio; \nwhile True: await asyncio.sleep(0.01)")
    staging = kernel.new_staging()
    kernel.request_capture(staging)
    assert not kernel.replied(cell)
    assert not (staging / "result.json").exists()
    kernel.interrupt(cell)
    assert kernel.result(staging)["status"] == "ok"


def test_widget_messages_are_kept_back_and_handled_after_an_unhold(kernel: LiveKernel) -> None:
    kernel.execute(
        "got = []\nfrom comm import get_comm_manager\n"
        "def target(comm, message):\n    comm.on_msg(lambda m: got.append(m['content']['data']))\n"
        "get_comm_manager().register_target('t', target)"
    )
    send = kernel.client.shell_channel.send
    message = kernel.client.session.msg
    send(message("comm_open", {"comm_id": "c1", "target_name": "t", "data": {}}))
    send(message("comm_msg", {"comm_id": "c1", "data": {"n": 1}}))
    until(lambda: kernel.value("got") == "[{'n': 1}]", "the first message")
    kernel.control(op="hold")
    send(message("comm_msg", {"comm_id": "c1", "data": {"n": 2}}))
    assert kernel.execute("1").status == "aborted"
    kernel.control(op="unhold")
    until(lambda: kernel.value("got") == "[{'n': 1}, {'n': 2}]", "the second message")


def test_a_cell_sent_over_the_control_channel_is_held_too(kernel: LiveKernel) -> None:
    kernel.control(op="hold")
    request = kernel.client.session.msg(
        "execute_request", {"code": "y = 1", "silent": False, "store_history": True, "user_expressions": {}}
    )
    kernel.client.control_channel.send(request)
    reply = kernel.client.get_control_msg(timeout=60)
    assert reply["content"]["status"] == "aborted"
    kernel.control(op="unhold")
    assert kernel.value("'y' in globals()") == "False"


def test_an_unknown_operation_is_refused(kernel: LiveKernel) -> None:
    assert kernel.control(op="no such")["code"] == "unknown_op"
    assert kernel.control(op="__class__")["code"] == "unknown_op"


def test_interrupt_while_held_changes_nothing(kernel: LiveKernel) -> None:
    kernel.control(op="hold")
    kernel.manager.signal_kernel(signal.SIGINT)
    assert kernel.execute("1").status == "aborted"
    kernel.control(op="unhold")
    assert kernel.execute("1").status == "ok"


def test_a_cell_in_a_subshell_is_waited_for_and_later_ones_are_aborted(kernel: LiveKernel) -> None:
    """ipykernel 7 runs subshells on threads of their own: what they change must be in the capture."""
    assert "kernel subshells" in kernel.client.kernel_info(reply=True, timeout=60)["content"]["supported_features"]
    created = kernel.client.session.msg("create_subshell_request", {})
    kernel.client.control_channel.send(created)
    subshell = kernel.client.get_control_msg(timeout=60)["content"]["subshell_id"]
    go = kernel.runtime / "go"

    def send(code: str) -> str:
        content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
        message = kernel.client.session.msg("execute_request", content)
        message["header"]["subshell_id"] = subshell
        kernel.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    running = send(f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nlate = 'done'")
    until(lambda: kernel.control(op="status")["busy"], "the subshell's cell runs")
    staging = kernel.new_staging()
    kernel.request_capture(staging)
    until(lambda: kernel.control(op="status")["capturing"], "the capture waits")
    queued = send("late = 'overwritten'")
    assert not (staging / "result.json").exists()
    go.touch()
    assert kernel.answer(running).status == "ok"
    assert kernel.answer(queued).status == "aborted"
    assert kernel.result(staging)["status"] == "ok"
    kernel.control(op="unhold")
    assert kernel.value("late") == "'done'"


def test_over_ipc(new_kernel: Callable[..., LiveKernel]) -> None:
    kernel = new_kernel(transport="ipc")
    kernel.write_kernel_file()
    kernel.start()
    kernel.execute("x = 1")
    assert kernel.resume(kernel.save())["outcome"] == "restored"
    assert kernel.execute("x").text == "1"
