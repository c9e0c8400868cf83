# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Life without a server: an orphan saves itself and ends; a kernel that is adopted lives on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from jupyter_pause.kernel import processes

from .livekernel import LiveKernel, sleeper, until


@pytest.fixture
def server() -> Iterator[Popen[bytes]]:
    """A process that stands for the server."""
    process = sleeper()
    yield process
    process.kill()
    process.wait()


def _record(kernel: LiveKernel) -> None:
    record = {"schema_version": 1, "kernel_id": kernel.id, "state": "running", "root_dir": "/", "own_field": {"a": 1}}
    kernel._write(kernel.session_file, json.dumps(record).encode())


def _session(kernel: LiveKernel) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(kernel.session_file.read_bytes())
    return value


@pytest.fixture
def watched(new_kernel: Callable[..., LiveKernel], server: Popen[bytes]) -> LiveKernel:
    """A kernel whose server is another process, and which becomes an orphan half a second after that one ended."""
    kernel = new_kernel()
    _record(kernel)
    kernel.write_kernel_file(server=server.pid, orphan_timeout=0.5)
    return kernel.start()


def test_an_orphan_saves_itself_and_ends(
    new_kernel: Callable[..., LiveKernel], any_python: str, server: Popen[bytes]
) -> None:
    kernel = new_kernel(any_python)
    _record(kernel)
    kernel.write_kernel_file(server=server.pid, orphan_timeout=0.5)
    kernel.start()
    kernel.execute("x = 41")
    server.kill()
    server.wait()
    until(lambda: not kernel.running, "the orphan ended")
    session = _session(kernel)
    assert (session["state"], session["cause"], session["own_field"]) == ("paused", "orphaned", {"a": 1})
    assert kernel.session_file.stat().st_mode & 0o077 == 0
    assert list((kernel.root / "staging").iterdir()) == []
    manifest = kernel.manifest(session["checkpoint"])
    assert (manifest["kernel_id"], manifest["cause"], manifest["path"]) == (kernel.id, "orphaned", "a.ipynb")
    kernel.end()
    kernel.write_kernel_file()
    assert kernel.resume(session["checkpoint"])["outcome"] == "restored"
    assert kernel.value("x + 1") == "42"


def test_another_process_with_the_same_pid_is_not_the_server(
    new_kernel: Callable[..., LiveKernel], server: Popen[bytes]
) -> None:
    kernel = new_kernel()
    _record(kernel)
    started = processes.start_time(server.pid)
    assert started is not None
    gone = {"pid": server.pid, "start_time": started - 1000, "socket": None}
    kernel.write_kernel_file(orphan_timeout=0.5)
    facts = json.loads((kernel.runtime / f"jupyter-pause-{kernel.id}.json").read_bytes())
    facts["server"] = gone
    kernel._write(kernel.runtime / f"jupyter-pause-{kernel.id}.json", json.dumps(facts).encode())
    kernel.start(wait=False)
    until(lambda: not kernel.running, "the orphan ended")
    assert _session(kernel)["state"] == "paused"


def test_a_running_cell_is_waited_for(watched: LiveKernel, server: Popen[bytes], tmp_path: Path) -> None:
    go = tmp_path / "go"
    cell = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nlate = 'done'"
    watched.send(cell)
    until(lambda: watched.control(op="status")["busy"], "the cell runs")
    server.kill()
    server.wait()
    looks = watched.control(op="status")
    assert looks["busy"]
    assert looks["capturing"] is False
    go.touch()
    until(lambda: not watched.running, "the orphan ended")
    names = [v["name"] for v in watched.manifest(_session(watched)["checkpoint"])["variables"]]
    assert "late" in names


def test_children_end_with_an_orphan(watched: LiveKernel, server: Popen[bytes]) -> None:
    watched.execute(
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)"
    )
    child = int(watched.value("child.pid"))
    started = processes.start_time(child)
    server.kill()
    server.wait()
    until(lambda: not watched.running, "the orphan ended")
    until(lambda: not processes.alive(child, started), "its child ended")


def test_a_record_that_cannot_be_written_leaves_no_stray_checkpoint(watched: LiveKernel, server: Popen[bytes]) -> None:
    watched.execute("x = 1")
    watched.session_file.unlink()
    server.kill()
    server.wait()
    until(lambda: watched.control(op="status")["problems"], "the failure was noted")
    until(lambda: not watched.control(op="status")["held"], "cells run again")
    assert watched.execute("x").text == "1"
    assert list((watched.root / "checkpoints").iterdir()) == []
    assert list((watched.root / "staging").iterdir()) == []


def test_a_set_clock_does_not_make_an_orphan(watched: LiveKernel, server: Popen[bytes]) -> None:
    """The start time of a process moves with the clock, its ticks since boot do not."""
    watched.execute(
        "import sys\nprocesses = sys.modules['jupyter_pause_kernel.processes']\n"
        "looks, original = [], processes.alive\n"
        "def alive(pid, started=None):\n    looks.append(1)\n    return original(pid, started and started - 3600)\n"
        "processes.alive = alive"
    )
    until(lambda: int(watched.value("len(looks)")) > 10, "several looks")
    assert watched.control(op="status")["capturing"] is False
    assert watched.running
    assert list((watched.root / "checkpoints").iterdir()) == []


def test_losses_do_not_stop_an_orphan(watched: LiveKernel, server: Popen[bytes]) -> None:
    watched.execute("gen = (n for n in range(3)); keep = 1")
    server.kill()
    server.wait()
    until(lambda: not watched.running, "the orphan ended")
    manifest = watched.manifest(_session(watched)["checkpoint"])
    assert [loss["name"] for loss in manifest["losses"]] == ["gen"]


def test_a_kernel_that_is_adopted_in_time_lives_on(watched: LiveKernel, server: Popen[bytes]) -> None:
    watched.execute("x = 1")
    watched.control(op="hold")
    watched.write_kernel_file(server=os.getpid(), orphan_timeout=0.5)
    server.kill()
    server.wait()
    until(lambda: not watched.control(op="status")["held"], "the dead server's hold was lifted")
    assert watched.execute("x").text == "1"
    assert watched.running
    assert list((watched.root / "checkpoints").iterdir()) == []


def test_what_cannot_be_saved_runs_on(watched: LiveKernel, server: Popen[bytes]) -> None:
    watched.execute("x = 1")
    (watched.root / "staging").rmdir()
    (watched.root / "staging").write_text("in the way")
    server.kill()
    server.wait()
    until(lambda: watched.control(op="status")["problems"], "the failure was noted")
    assert watched.execute("x").text == "1"
    assert _session(watched)["state"] == "running"


def test_a_kernel_whose_files_are_gone_is_left_alone(watched: LiveKernel, server: Popen[bytes]) -> None:
    (watched.runtime / f"jupyter-pause-{watched.id}.json").unlink()
    server.kill()
    server.wait()
    assert watched.execute("1 + 1").text == "2"
    watched.write_kernel_file(server=os.getpid())
    assert watched.execute("2 + 2").text == "4"


def test_processes_are_told_apart_by_their_start(server: Popen[bytes]) -> None:
    started = processes.start_time(server.pid)
    assert started is not None
    assert processes.alive(server.pid, started)
    assert processes.alive(server.pid, None)
    assert not processes.alive(server.pid, started - 100)
    server.kill()
    until(lambda: not processes.alive(server.pid, started), "a zombie is not alive")
    server.wait()
    assert not processes.alive(server.pid, None)
    assert not processes.alive(0)
    assert not processes.alive(None)
