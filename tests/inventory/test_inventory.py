# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The inventory of a real process, put together from what the kernel says and what the system says."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jupyter_pause import inventory as package
from jupyter_pause.inventory import build_inventory, estimate
from jupyter_pause.inventory.connections import read_process
from jupyter_pause.inventory.reasons import REASONS
from jupyter_pause.journal import LARGE, Journal

PROGRAM = """
import socket, subprocess, sys
held = bytearray(40 << 20)
file = open(sys.argv[1]); file.read(3)
own = socket.create_server(("127.0.0.1", 0)); own_port = own.getsockname()[1]
user = socket.create_server(("127.0.0.1", 0))
outside = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
child = subprocess.Popen([sys.executable, "-c", "input()", "--password=hunter2"], stdin=subprocess.PIPE)
import json
json.dump({"shell_port": own_port}, open(sys.argv[3], "w"))
print(user.getsockname()[1], child.pid, flush=True)
input()
child.stdin.close(); child.wait()
"""


class Program:
    def __init__(self, tmp_path: Path, remote_port: int) -> None:
        self.file = tmp_path / "lines.txt"
        self.file.write_text("one\ntwo\n")
        self.remote_port = remote_port
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self.file), str(remote_port), str(tmp_path / "kernel-1.json")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.user_port, self.child = (int(word) for word in self.process.stdout.readline().split())


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        made = Program(tmp_path, server.getsockname()[1])
        connection, _ = server.accept()
        yield made
        made.process.communicate("\n", timeout=60)
        connection.close()


class FixedClock:
    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        return None


NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


async def build(tmp_path: Path, reply: dict[str, Any] | None, pid: int | None = None, **more: Any) -> Any:
    return await build_inventory(
        reply,
        kernel_id="k",
        pid=pid,
        root_dir=tmp_path,
        notebook_path="a.ipynb",
        checkpoint_dir=tmp_path / "checkpoints",
        clock=FixedClock(NOW),
        **more,
    )


async def test_processes_files_and_connections_of_a_real_process(tmp_path: Path, program: Program) -> None:
    found = await build(tmp_path, {"variables": [], "cwd": str(tmp_path)}, program.process.pid)
    kernel, child = found.processes
    assert kernel.bytes > 40 << 20
    assert (kernel.fate, kernel.details) == ("rebuilt", {"pid": program.process.pid})
    assert (child.fate, child.reason, child.details) == ("lost", "child_process", {"pid": program.child})
    assert {(c.kind, c.name, c.fate) for c in found.connections} == {
        ("listening socket", f"127.0.0.1:{program.user_port}", "lost"),
        ("connection", f"127.0.0.1:{program.remote_port}", "lost"),
    }
    opened = [item for item in found.files if item.kind == "open file"]
    assert [(item.name, item.fate) for item in opened] == [(str(program.file), "unknown")]
    assert "hunter2" not in found.model_dump_json()


async def test_what_the_kernel_itself_lists_counts(tmp_path: Path, program: Program) -> None:
    def row(name: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "kind": "x", "bytes": None, "complete": True, "fate": "lost", "reason": "r", **more}

    reply = {
        "variables": [],
        "files": [row(str(program.file), fate="rebuilt", details={"variable": "lines"})],
        "connections": [row("10.0.0.1:443")],
        "processes": [row("python", details={"pid": program.child})],
        "threads": [row("worker")],
        "tasks": [row("Task-1 (poll)")],
    }
    found = await build(tmp_path, reply, program.process.pid)
    opened = [item for item in found.files if item.kind == "open file"]
    assert [(item.name, item.fate, item.details["variable"]) for item in opened] == [
        (str(program.file), "rebuilt", "lines")
    ]
    assert [item.name for item in found.connections] == ["10.0.0.1:443"]
    assert sorted(item.name for item in found.processes[1:]) == ["Task-1 (poll)", "python", "worker"]


def test_a_process_that_is_gone_is_not_an_error() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    facts = read_process(done.pid)
    assert facts.rss is None
    assert facts.children == []


SCAN = {
    "status": "ok",
    "taken_at": (NOW - timedelta(seconds=90)).isoformat(),
    "complete": False,
    "busy": True,
    "variables": [
        {"name": "df", "type": "DataFrame", "kind": "data", "bytes": 5000, "complete": False, "fate": "in checkpoint"},
        {"name": "np", "type": "module", "kind": "module", "bytes": 0, "fate": "rebuilt"},
        {"name": "g", "type": "generator", "kind": "data", "bytes": None, "fate": "lost", "reason": "no", "cell": 3},
        {"name": "odd", "fate": "teleported", "bytes": "many"},
        {"nameless": True},
        "nonsense",
    ],
    "losses": [
        {"name": "g", "path": "g", "type": "generator", "reason": "cannot be saved", "cell": 3},
        {"path": "x[0]"},
    ],
}


async def test_the_scan_becomes_items_losses_first(tmp_path: Path) -> None:
    found = await build(tmp_path, SCAN)
    assert [(item.name, item.fate) for item in found.ram] == [
        ("g", "lost"),
        ("odd", "unknown"),
        ("df", "in checkpoint"),
        ("np", "rebuilt"),
    ]
    frame = found.ram[2]
    assert (frame.bytes, frame.complete, frame.type) == (5000, False, "DataFrame")
    assert (found.age, found.busy, found.complete) == (90.0, True, False)
    assert [(loss.name, loss.path, loss.cell) for loss in found.losses] == [("g", "g", 3), ("x[0]", "x[0]", None)]
    assert found.estimate.bytes == 5000


@pytest.mark.parametrize("reply", [None, {"status": "error", "code": "not_available"}])
async def test_a_kernel_that_does_not_answer_is_unknown_not_empty(tmp_path: Path, reply: Any, program: Program) -> None:
    found = await build(tmp_path, reply, program.process.pid)
    assert not found.complete
    assert [(item.fate, item.reason) for item in found.ram] == [("unknown", "kernel_not_answering")]
    assert found.processes[0].bytes > 40 << 20
    assert found.estimate.bytes is None
    assert found.estimate.pause_seconds is None


async def test_a_scan_that_failed_is_unknown_not_empty(tmp_path: Path, program: Program) -> None:
    reply = {"variables": [], "complete": False, "problem": "RuntimeError: odd"}
    found = await build(tmp_path, reply, program.process.pid)
    assert [(item.fate, item.reason) for item in found.ram] == [("unknown", "RuntimeError: odd")]
    assert found.estimate.bytes is None


async def test_a_file_system_that_blocks_leaves_unknown_and_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()
    monkeypatch.setattr(package, "LIMIT", 0.2)
    monkeypatch.setattr(package.files, "read_mounts", lambda: stop.wait(60) and [])
    found = await build(tmp_path, SCAN)
    stop.set()
    assert {item.fate for item in found.files} == {"unknown"}
    assert found.checkpoint_place is None
    assert len(found.ram) == 4


async def test_estimates_say_whether_they_were_measured(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    found = await build(tmp_path, SCAN, journal=journal)
    assert found.estimate.basis == "assumed"
    journal.record("paused", bytes=10 * LARGE, seconds=10.0)
    journal.record("resumed", bytes=10 * LARGE, seconds=5.0)
    assert journal.flush()
    found = await build(tmp_path, SCAN | {"bytes": 20 * LARGE}, journal=journal)
    assert found.estimate.basis == "measured"
    assert (found.estimate.bytes, found.estimate.pause_seconds, found.estimate.resume_seconds) == (
        20 * LARGE,
        20.0,
        10.0,
    )
    journal.close()


def test_the_frontend_has_a_sentence_for_every_reason() -> None:
    source = (Path(__file__).parents[2] / "src" / "reasons.ts").read_text(encoding="utf-8")
    assert set(REASONS) <= set(re.findall(r"case '(\w+)':", source))


def test_assumed_estimates_grow_with_the_size() -> None:
    small, large = estimate(0, None, None), estimate(3_000_000_000, None, None)
    assert (small.pause_seconds, small.resume_seconds) == (1.0, 1.5)
    assert (large.pause_seconds, large.resume_seconds) == (11.0, 3.5)
    assert {small.basis, large.basis} == {"assumed"}


async def test_it_is_json(tmp_path: Path) -> None:
    assert json.loads((await build(tmp_path, SCAN)).model_dump_json())["kernel"] == "k"
