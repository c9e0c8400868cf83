# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""cases.md S36: what a kernel prints while no page is open is not in the notebook, and that is said."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import websocket

from tests.harness import TOKEN, ServerProcess, until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path / "base")
    try:
        yield made.start()
    finally:
        made.clean_up()


@contextlib.contextmanager
def page(server: ServerProcess, kernel: str) -> Iterator[websocket.WebSocket]:
    """What a page has open on a kernel."""
    address = f"ws://127.0.0.1:{server.port}/api/kernels/{kernel}/channels?session_id={uuid.uuid4().hex}"
    connection = websocket.create_connection(address, header=[f"Authorization: token {TOKEN}"], timeout=60)
    try:
        yield connection
    finally:
        connection.close()


def run_in_page(connection: websocket.WebSocket, code: str) -> None:
    message = uuid.uuid4().hex
    header = {"msg_id": message, "msg_type": "execute_request", "session": "page", "username": "", "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    request = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    connection.send(json.dumps(request))
    while True:
        reply = json.loads(connection.recv())
        if reply["parent_header"].get("msg_id") == message and reply["header"]["msg_type"] == "execute_reply":
            assert reply["content"]["status"] == "ok"
            return


def missed(server: ServerProcess, kernel: str) -> Any:
    row = server.row(kernel)
    return row and row["missed_output"]


def print_until_counted(server: ServerProcess, kernel: str) -> dict[str, Any]:
    """The server begins to listen a moment after it first saw the kernel."""

    def look() -> Any:
        server.run(kernel, "print('to nobody')")
        return missed(server, kernel)

    found: dict[str, Any] = until(look, "output to nobody is counted")
    return found


def connections(server: ServerProcess, kernel: str) -> int:
    count: int = server.get(f"api/kernels/{kernel}")["connections"]
    return count


def test_s36_output_that_no_page_received_is_counted_and_said_after_pause_and_restart(server: ServerProcess) -> None:
    kernel = server.notebook("prints.ipynb")["kernel"]["id"]
    before = print_until_counted(server, kernel)
    assert before["cause"] == "no_page" and before["messages"] >= 1
    server.run(kernel, "for number in range(5):\n    display(number)")
    after = until(lambda: (m := missed(server, kernel)) and m["messages"] >= before["messages"] + 5 and m, "counted")
    assert after["since"] == before["since"] and after["until"] >= before["until"]

    assert server.pause(kernel)["state"] == "done"
    assert missed(server, kernel) == after
    server.kill()
    server.start()
    assert missed(server, kernel) == after
    assert server.resume(kernel=kernel)["outcome"] == "restored"
    assert missed(server, kernel) == after

    with page(server, kernel) as connection:
        assert missed(server, kernel) == after

        def gap_is_over() -> bool:
            run_in_page(connection, "print('to somebody')")
            return missed(server, kernel) is None

        until(gap_is_over, "the gap is over once a page runs a cell")
        run_in_page(connection, "print('to somebody')")
        assert missed(server, kernel) is None


def test_s36_output_that_a_page_received_is_no_gap(server: ServerProcess) -> None:
    kernel = server.notebook("seen.ipynb")["kernel"]["id"]
    with page(server, kernel) as connection:
        run_in_page(connection, "print('seen')")
        server.run(kernel, "print('from another client, seen by the page')")
        run_in_page(connection, "print('seen')")
        assert missed(server, kernel) is None
    until(lambda: connections(server, kernel) == 0, "the page is gone")
    # The same watch does count: the silence above was not its own.
    assert print_until_counted(server, kernel)["messages"] >= 1


def test_s36_a_cell_that_ran_while_the_server_was_away_is_said(server: ServerProcess, tmp_path: Path) -> None:
    kernel = server.notebook("away.ipynb")["kernel"]["id"]
    go = tmp_path / "go"
    wait = f"import os, time\nwhile not os.path.exists({str(go)!r}):\n    print('.', flush=True)\n    time.sleep(0.05)"
    with server.client(kernel) as client:
        client.execute(wait)
        until(lambda: server.get(f"api/kernels/{kernel}")["execution_state"] == "busy", "the cell runs")
        server.kill()
        server.start()
        found = missed(server, kernel)
        assert found["cause"] == "no_server" and found["messages"] is None
        assert found["since"] <= found["until"]
        go.touch()


def test_s36_a_cell_that_ended_while_the_server_was_away_is_said(server: ServerProcess, tmp_path: Path) -> None:
    kernel = server.notebook("ended.ipynb")["kernel"]["id"]
    go = tmp_path / "go"
    with server.client(kernel) as client:
        client.execute(f"import os, time\nwhile not os.path.exists({str(go)!r}):\n    time.sleep(0.05)\nprint('done')")
        until(lambda: server.get(f"api/kernels/{kernel}")["execution_state"] == "busy", "the cell runs")
        server.kill()
        go.touch()
        assert client.get_shell_msg(timeout=60)["content"]["status"] == "ok"
        server.start()
        found = missed(server, kernel)
        assert found["cause"] == "no_server" and found["messages"] is None


def test_s36_a_kernel_that_ran_nothing_meanwhile_has_no_gap(server: ServerProcess) -> None:
    kernel = server.notebook("idle.ipynb")["kernel"]["id"]
    with page(server, kernel) as connection:
        run_in_page(connection, "print('seen')")
    until(lambda: (server.checkpoints / "sessions" / kernel / "session.json").exists(), "its record is written")
    server.kill()
    server.start()
    assert server.row(kernel) is not None
    assert missed(server, kernel) is None
