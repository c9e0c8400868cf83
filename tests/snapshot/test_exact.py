# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The whole kernel process goes to disk and comes back: real server, real kernel, real CRIU."""

from __future__ import annotations

import ast
import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.harness import HttpError, ServerProcess, until

from .driver import paused, resumed, row, snapshots

#: What no checkpoint can hold, beside what it can. The random values exist in this process's memory only.
STATE = """
import hashlib, os, secrets, sqlite3, subprocess, threading, time
import numpy as np
token = secrets.token_hex(16)
big = np.random.default_rng().integers(0, 2**63, size=26_000_000)       # 208 MB
checksum = hashlib.sha256(big).hexdigest()
def numbers():
    yield from range(1000)
half = numbers()
while next(half) < 41:
    pass
ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.01)
thread = threading.Thread(target=tick, daemon=True)
thread.start()
db = sqlite3.connect(":memory:")
_ = db.execute("create table t (a)")
_ = db.executemany("insert into t values (?)", [(i,) for i in range(1000)])
notes = open("notes.txt", "w")
_ = notes.write("not flushed")
child = subprocess.Popen(["sleep", "3600"])
"""
#: Evaluated before and after.
SAME = """(os.getpid(), token, checksum, hashlib.sha256(big).hexdigest() == checksum,
    list(db.execute("select count(*), sum(a) from t")), child.pid, child.poll(), notes.tell(), thread.is_alive())"""


def test_everything_comes_back_in_the_same_process(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    before = ast.literal_eval(server.run(kernel, STATE, SAME))
    pid, child = before[0], before[5]
    assert before[3]

    report = paused(server, kernel)["last_pause"]
    assert report["snapshot"]
    assert report["snapshot_bytes"] > 208_000_000
    assert report["snapshot_reasons"] == []
    until(lambda: not psutil.pid_exists(pid) and not psutil.pid_exists(child), "the processes are gone")
    (folder,) = snapshots(server)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.rglob("*"))
    record = json.loads((server.checkpoints / "sessions" / kernel / "session.json").read_text())
    assert record["snapshot"] == folder.name

    operation = server.resume(kernel=kernel)
    assert operation["state"] == "done", operation
    resumed = row(server, kernel)["last_resume"]
    assert resumed["via"] == "snapshot"
    assert resumed["outcome"] == "restored"
    assert resumed["proof"]["mark"] is True
    assert resumed["fallback"] is None
    assert row(server, kernel)["state"] == "ready"
    assert ast.literal_eval(server.run(kernel, "", SAME)) == before
    assert server.run(kernel, "", "next(half)") == "42"
    assert server.run(kernel, "seen = ticks; time.sleep(0.5)", "ticks > seen") == "True"
    server.run(kernel, "notes.write(', and more'); notes.close(); child.kill(); child.wait()")
    assert (server.root / "notes.txt").read_text() == "not flushed, and more"
    until(lambda: snapshots(server) == [], "the snapshot is deleted: the process has gone on")


def test_it_comes_back_to_a_server_that_was_killed_and_started_again(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    before = ast.literal_eval(server.run(kernel, STATE, SAME))
    paused(server, kernel)
    server.kill()
    server.start()
    found = row(server, kernel)
    assert found["state"] == "paused"
    assert found["checkpoint"]["via"] == "snapshot"
    assert server.resume(kernel=kernel)["state"] == "done"
    assert row(server, kernel)["last_resume"]["via"] == "snapshot"
    assert ast.literal_eval(server.run(kernel, "", SAME)) == before
    assert server.run(kernel, "", "next(half)") == "42"


def test_a_restored_kernel_is_interrupted_restarted_and_shut_down_like_any_other(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    pid = int(server.run(kernel, "import os, time\nx = 1", "os.getpid()"))
    paused(server, kernel)
    assert server.resume(kernel=kernel)["state"] == "done"

    with server.client(kernel) as client:
        client.execute("try:\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    x = 'interrupted'")
        until(lambda: server.get(f"api/kernels/{kernel}")["execution_state"] == "busy", "the cell runs")
        server.request("POST", f"api/kernels/{kernel}/interrupt")
    assert server.run(kernel, "", "x") == "'interrupted'"

    server.request("POST", f"api/kernels/{kernel}/restart")
    again = int(server.run(kernel, "import os", "os.getpid()"))
    assert again != pid
    assert server.run(kernel, "", "'x' in globals()") == "False"

    paused(server, kernel)
    assert server.resume(kernel=kernel)["state"] == "done"
    server.request("DELETE", f"api/kernels/{kernel}")
    until(lambda: not psutil.pid_exists(again), "the process is gone, and no zombie stays")
    until(lambda: snapshots(server) == [], "its snapshot is gone too")


def test_a_restored_kernel_that_dies_is_restarted_by_jupyter(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    pid = int(server.run(kernel, "import os", "os.getpid()"))
    paused(server, kernel)
    assert server.resume(kernel=kernel)["state"] == "done"
    os.kill(pid, signal.SIGKILL)
    until(lambda: server.kernels_alive() and server.kernels_alive()[0].pid != pid, "Jupyter starts another process")
    assert int(server.run(kernel, "import os", "os.getpid()")) != pid


def test_it_can_be_paused_and_resumed_again_and_again(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    pid = server.run(kernel, "import os\nhalf = iter(range(100))", "os.getpid()")
    for turn in range(3):
        paused(server, kernel)
        assert len(snapshots(server)) == 1
        assert server.resume(kernel=kernel)["state"] == "done"
        assert server.run(kernel, "", "(os.getpid(), next(half))") == f"({pid}, {turn})"


def test_other_kernels_may_write_the_history_meanwhile(server: ServerProcess) -> None:
    """IPython keeps its history database open in every kernel; CRIU alone refuses a file whose size has changed."""
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    other = server.notebook("b.ipynb")["kernel"]["id"]
    server.run(kernel, "x = iter(range(3))", "next(x)")
    history = server.base / "ipython" / "profile_default" / "history.sqlite"
    paused(server, kernel)
    size = history.stat().st_size
    server.run(other, "y = '" + "long " * 20_000 + "'")
    server.run(other, "z = 1")
    until(lambda: history.stat().st_size > size, "the history has grown")
    assert server.resume(kernel=kernel)["state"] == "done"
    assert row(server, kernel)["last_resume"]["via"] == "snapshot"
    assert server.run(kernel, "", "next(x)") == "1"


def test_a_cell_sent_while_paused_runs_after_the_resume(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "half = iter(range(100))", "next(half)")
    paused(server, kernel)
    with server.client(kernel) as client:
        message = client.execute("", user_expressions={"value": "next(half)"})
        assert server.resume(kernel=kernel)["state"] == "done"
        reply = until(lambda: _reply(client, message), "the cell runs")
    assert reply["user_expressions"]["value"]["data"]["text/plain"] == "1"


def test_pause_from_a_cell_keeps_the_process_too(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    pid = server.run(
        kernel, "import os\nhalf = iter(n for n in range(100))\nwhile next(half) < 41: pass", "os.getpid()"
    )
    with server.client(kernel) as client:
        client.execute("before = 1\n%pause\nafter = 2")
        queued = client.execute("after = 3")
        until(lambda: row(server, kernel)["state"] == "paused", "it pauses after its own cell")
    report = row(server, kernel)["last_pause"]
    assert (report["snapshot_reasons"], bool(report["snapshot"])) == ([], True)
    assert row(server, kernel)["aborted_cells"] == [queued]
    assert resumed(server, kernel)["via"] == "snapshot"
    assert server.run(kernel, "", "(os.getpid(), before, after, next(half))") == f"({pid}, 1, 2, 42)"


def test_a_lost_connection_refuses_the_pause_from_a_cell_even_so(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "import socket\nhalf = iter(n for n in range(9))\nline = socket.create_server(('127.0.0.1', 0))")
    server.run(kernel, "%pause")
    assert row(server, kernel)["state"] == "running"
    assert server.run(kernel, "", "next(half)") == "0"


def _reply(client: Any, message: str) -> dict[str, Any] | None:
    reply = client.get_shell_msg(timeout=90)
    return reply["content"] if reply["parent_header"].get("msg_id") == message else None


def test_its_ports_belong_to_somebody_at_every_moment(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    pid = int(server.run(kernel, "import os", "os.getpid()"))
    info = json.loads((server.runtime / f"kernel-{kernel}.json").read_text())
    ports = {info[name] for name in ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")}
    paused(server, kernel)
    assert server.resume(kernel=kernel)["state"] == "done"
    assert server.process is not None
    for process in (pid, server.process.pid):  # the restored kernel, and the server with copies of its sockets
        held = {c.laddr.port for c in psutil.Process(process).net_connections("tcp") if c.status == psutil.CONN_LISTEN}
        assert ports <= held, process


def test_resume_can_be_told_to_start_from_the_checkpoint(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    pid = server.run(kernel, "import os\nx = [1, 2]", "os.getpid()")
    paused(server, kernel)
    operation = server.resume(**{"kernel": kernel, "from": "checkpoint"})
    assert operation["state"] == "done", operation
    resumed = row(server, kernel)["last_resume"]
    assert resumed["via"] == "checkpoint"
    assert resumed["fallback"] is None
    assert server.run(kernel, "", "x") == "[1, 2]"
    assert server.run(kernel, "", "os.getpid()") != pid


def test_without_a_snapshot_there_is_none_to_start_from(tmp_path: Path, criu: Path) -> None:
    server = ServerProcess(tmp_path, options=[f"--PauseApp.criu={criu}", "--PauseApp.snapshots=off"])
    try:
        server.start()
        kernel = server.notebook("a.ipynb")["kernel"]["id"]
        server.run(kernel, "x = 1")
        report = paused(server, kernel)["last_pause"]
        assert report["snapshot"] is None
        assert snapshots(server) == []
        with pytest.raises(HttpError) as refused:
            server.resume(**{"kernel": kernel, "from": "snapshot"})
        assert refused.value.body["code"] == "snapshot_unavailable"
        assert server.resume(kernel=kernel)["state"] == "done"
        assert server.run(kernel, "", "x") == "1"
    finally:
        server.clean_up()
