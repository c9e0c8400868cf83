# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The owner inside the whole extension: orphans, and questions that leave no trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import ServerProcess, until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path, options=["--PauseApp.orphan_timeout=1"]).start()
    yield made
    made.clean_up()


def test_kernel_without_a_server_saves_itself_and_comes_back_under_the_next_one(server: ServerProcess) -> None:
    session = server.notebook("a.ipynb")
    kernel = session["kernel"]["id"]
    token = server.run(kernel, "import os; token = os.urandom(8).hex()", "token")
    record = server.checkpoints / "sessions" / kernel / "session.json"
    until(lambda: record.exists() and json.loads(record.read_text())["session_id"] == session["id"], "recorded")
    server.kill()
    until(lambda: not server.kernels_alive(), "the kernel ended")
    saved = json.loads(record.read_text())
    assert (saved["state"], saved["cause"]) == ("paused", "orphaned")
    server.start()
    assert [s["id"] for s in server.get("api/sessions")] == [session["id"]]
    row = server.row(kernel)
    assert row is not None
    assert (row["state"], row["checkpoint"]["id"]) == ("paused", saved["checkpoint"])
    assert server.resume(kernel=kernel)["outcome"] == "restored"
    assert server.run(kernel, "", "token") == token


def test_looking_at_a_kernel_is_no_activity_and_does_not_call_it_idle(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "import time")

    def model() -> dict[str, str]:
        found: dict[str, str] = server.get(f"api/kernels/{kernel}")
        return found

    until(lambda: model()["execution_state"] == "idle", "idle")
    before = model()["last_activity"]
    server.api("GET", f"inventory?kernel={kernel}&wait=1")
    assert model()["last_activity"] == before
    with server.client(kernel) as client:
        client.execute("time.sleep(600)")
        until(lambda: model()["execution_state"] == "busy", "busy")
        server.api("GET", f"inventory?kernel={kernel}")
        assert model()["execution_state"] == "busy"


def test_adopted_kernel_that_runs_a_cell_is_busy_until_the_cell_ends(server: ServerProcess, tmp_path: Path) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    go, began = tmp_path / "go", tmp_path / "began"
    with server.client(kernel) as client:
        wait = f"while not os.path.exists({str(go)!r}): time.sleep(0.05)"
        code = f"import os, time\nopen({str(began)!r}, 'w').close()\n{wait}"
        client.execute(code)
        until(began.exists, "the cell runs")
        server.kill()
        server.start()

        def state() -> str:
            found: str = server.get(f"api/kernels/{kernel}")["execution_state"]
            return found

        assert state() == "busy"
        server.api("GET", f"inventory?kernel={kernel}")
        assert state() == "busy"
        go.touch()
        until(lambda: state() == "idle", "idle again")
