# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The kernel's side together with a real Jupyter server: `%pause` in a Run All, and life after the server's death."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import LIMIT, ServerProcess, until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path, options=["--PauseApp.orphan_timeout=1"]).start()
    yield made
    made.clean_up()


def _run_all(server: ServerProcess, kernel: str, cells: list[str]) -> list[dict[str, Any]]:
    """Queue all cells at once; their replies in order."""
    with server.client(kernel) as client:
        sent = [client.execute(cell) for cell in cells]
        replies: dict[str, dict[str, Any]] = {}
        while not all(message in replies for message in sent):
            reply = client.get_shell_msg(timeout=LIMIT)
            replies[reply["parent_header"].get("msg_id")] = reply
        return [replies[message]["content"] | {"id": message} for message in sent]


def _state(server: ServerProcess, kernel: str) -> str:
    row = server.row(kernel)
    return str(row["state"]) if row else "none"


def test_pause_in_a_run_all_and_back(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    pid = server.run(kernel, "import os; x = [1]", "os.getpid()")
    replies = _run_all(server, kernel, ["x.append(2)", "%pause", "x.append(3)", "x.append(4)"])
    assert [reply["status"] for reply in replies] == ["ok", "ok", "aborted", "aborted"]
    until(lambda: _state(server, kernel) == "paused", "the kernel is paused")
    row = server.row(kernel)
    assert row is not None
    assert row["aborted_cells"]
    assert server.resume(kernel=kernel)["outcome"] == "restored"
    assert server.run(kernel, "", "x") == "[1, 2]"
    assert server.run(kernel, "", "os.getpid()") != pid
    assert server.run(kernel, "", "len(In), get_ipython().execution_count") == "(4, 4)"


def test_a_loss_refuses_the_pause_and_accepting_it_pauses(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "gen = (n for n in range(3)); next(gen)")
    _run_all(server, kernel, ["%pause"])
    assert server.run(kernel, "", "next(gen)") == "1"
    assert _state(server, kernel) != "paused"
    _run_all(server, kernel, ["%pause --accept-loss"])
    until(lambda: _state(server, kernel) == "paused", "the kernel is paused")
    assert server.resume(kernel=kernel)["outcome"] == "partial"


def test_an_orphan_is_found_paused_by_the_next_server(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "token = 'kept'")
    server.kill()
    until(lambda: not server.kernels_alive(), "the orphan saved itself and ended")
    record = json.loads((server.checkpoints / "sessions" / kernel / "session.json").read_bytes())
    assert (record["state"], record["cause"]) == ("paused", "orphaned")
    server.start()
    until(lambda: _state(server, kernel) == "paused", "the next server lists it")
    assert server.resume(kernel=kernel)["outcome"] == "restored"
    assert server.run(kernel, "", "token") == "'kept'"
