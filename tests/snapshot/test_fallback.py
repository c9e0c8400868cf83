# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What keeps a snapshot from being taken or used is named, and the checkpoint does what it can in its place."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_pause.snapshot.store import SnapshotManifest
from tests.harness import HttpError, ServerProcess, until

from .driver import paused, resumed, row, snapshots

OPEN_FILE = "data = open('data.txt', 'w+'); data.write('0123456789'); data.flush(); x = [1, 2]"


def kernel_with(server: ServerProcess, code: str) -> str:
    """A notebook's kernel that has run `code`."""
    kernel: str = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, code)
    return kernel


def signed_anew(server: ServerProcess, **changes: Any) -> None:
    """Change the manifest of the only snapshot, with a right signature."""
    from jupyter_pause.kernel import layout

    (folder,) = snapshots(server)
    manifest = SnapshotManifest.model_validate_json((folder / "manifest.json").read_bytes()).model_copy(update=changes)
    data = layout.canonical_json(manifest.model_dump(mode="json"))
    (folder / "manifest.json").write_bytes(data)
    secret = bytes.fromhex((server.checkpoints / "secret").read_text())
    (folder / "manifest.sig").write_text(layout.sign(data, secret))


def spoil_files_changed(server: ServerProcess, kernel: str) -> None:
    """Another program writes to a file that the process has open."""
    (server.root / "data.txt").write_text("0123456789 and more")


def spoil_files_gone(server: ServerProcess, kernel: str) -> None:
    """The file is deleted."""
    (server.root / "data.txt").unlink()


def spoil_snapshot_damaged(server: ServerProcess, kernel: str) -> None:
    """A byte of the memory image flips."""
    (folder,) = snapshots(server)
    pages = next((folder / "images").glob("pages-*.img"))
    with pages.open("r+b") as file:
        file.seek(pages.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))


def spoil_snapshot_signature_mismatch(server: ServerProcess, kernel: str) -> None:
    """The manifest is changed by somebody without the key."""
    (folder,) = snapshots(server)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tasks"] = []
    (folder / "manifest.json").write_text(json.dumps(manifest))


def spoil_snapshot_missing(server: ServerProcess, kernel: str) -> None:
    """The folder is deleted."""
    (folder,) = snapshots(server)
    folder.rename(server.base / "elsewhere")


def spoil_kernel_changed(server: ServerProcess, kernel: str) -> None:
    """It was made under another Linux kernel."""
    (folder,) = snapshots(server)
    host = json.loads((folder / "manifest.json").read_text())["host"]
    signed_anew(server, host={**host, "kernel": "5.10.0-1"})


def spoil_libraries_changed(server: ServerProcess, kernel: str) -> None:
    """A library was upgraded: here, its time in the manifest is another one."""
    (folder,) = snapshots(server)
    manifest = SnapshotManifest.model_validate_json((folder / "manifest.json").read_bytes())
    for entry in manifest.files:
        if entry.why == "mapped" and "libzmq" in entry.path:
            entry.mtime_ns -= 1
    signed_anew(server, files=manifest.files)


def spoil_snapshot_restore_failed(server: ServerProcess, kernel: str) -> None:
    """CRIU meets an image that it cannot read, though every digest is right."""
    (folder,) = snapshots(server)
    image = folder / "images" / "pstree.img"
    image.write_bytes(image.read_bytes()[:-4] + b"\xff\xff\xff\xff")
    manifest = SnapshotManifest.model_validate_json((folder / "manifest.json").read_bytes())
    import hashlib

    digests = {**manifest.images, image.name: [hashlib.sha256(image.read_bytes()).hexdigest()]}
    signed_anew(server, images=digests)


SPOILERS = {name[6:]: spoil for name, spoil in globals().items() if name.startswith("spoil_")}


@pytest.mark.parametrize("code", sorted(SPOILERS))
def test_s17_a_snapshot_that_cannot_be_used_leaves_the_checkpoint(server: ServerProcess, code: str) -> None:
    kernel = kernel_with(server, OPEN_FILE)
    paused(server, kernel)
    SPOILERS[code](server, kernel)

    with pytest.raises(AssertionError) as refused:  # told to use the snapshot alone: it says why, nothing is lost
        resumed(server, kernel, **{"from": "snapshot"})
    error = refused.value.args[0]["error"] if isinstance(refused.value.args[0], dict) else None
    assert code in str(refused.value if error is None else error)
    assert row(server, kernel)["state"] == "paused"

    report = resumed(server, kernel)
    assert report["via"] == "checkpoint"
    assert report["fallback"]["code"] == code
    assert report["fallback"]["message"].endswith(".")
    assert server.run(kernel, "", "x") == "[1, 2]"
    assert server.kernels_alive()[0].status() != psutil.STATUS_STOPPED
    assert len(server.kernels_alive()) == 1


def test_s17_a_snapshot_is_tried_again_once_its_reason_is_gone(server: ServerProcess) -> None:
    kernel = kernel_with(server, OPEN_FILE + "\nhalf = iter(range(10)); next(half)")
    pid = server.run(kernel, "import os", "os.getpid()")
    paused(server, kernel)
    away = server.root / "away.txt"
    (server.root / "data.txt").rename(away)
    report = resumed(server, kernel)
    assert report["fallback"]["code"] == "files_gone"
    assert "data.txt" in report["fallback"]["message"]
    assert row(server, kernel)["state"] == "ready"

    (server.root / "data.txt").unlink(missing_ok=True)
    away.rename(server.root / "data.txt")
    report = resumed(server, kernel, **{"from": "snapshot"})
    assert report["via"] == "snapshot"
    assert server.run(kernel, "", "os.getpid()") == pid
    assert server.run(kernel, "", "next(half)") == "1"


@contextlib.contextmanager
def process_with_pid(pid: int) -> Iterator[None]:
    """Another process with this number, as after a while or a reboot (needs root, as ns_last_pid does)."""
    if os.geteuid() != 0:
        pytest.skip("choosing a process number needs root")
    for _ in range(200):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        other = subprocess.Popen(["sleep", "600"])
        if other.pid == pid:
            break
        other.kill()
        other.wait()
    try:
        assert other.pid == pid
        yield
    finally:
        other.kill()
        other.wait()


def test_a_process_number_in_use_is_named_and_waited_for(server: ServerProcess) -> None:
    kernel = kernel_with(server, "import os; half = iter(range(10)); next(half)")
    pid = int(server.run(kernel, "", "os.getpid()"))
    paused(server, kernel)
    with process_with_pid(pid):
        operation = server.resume(**{"kernel": kernel, "from": "snapshot"})
        assert operation["state"] == "failed"
        assert operation["error"]["code"] == "snapshot_not_usable"
        assert operation["error"]["params"]["why"] == "pid_taken"
        assert operation["error"]["params"]["pid"] == pid
        assert row(server, kernel)["state"] == "paused"
    assert resumed(server, kernel)["via"] == "snapshot"
    assert server.run(kernel, "", "next(half)") == "1"


def outside_socket(path: Path) -> socket.socket:
    """A Unix socket server of this test, outside of the kernel."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    return listener


def test_a_unix_socket_to_another_program_is_named_before_the_click(server: ServerProcess) -> None:
    with outside_socket(server.base / "s") as listener:
        kernel = kernel_with(
            server, f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(server.base / 's')!r}); x = 1"
        )
        connection, _ = listener.accept()
        outlook = server.api("GET", f"inventory?kernel={kernel}")["snapshot"]
        assert outlook["usable"] is False
        assert outlook["reasons"][0]["code"] == "unix_socket_outside"
        assert psutil.Process().name() in outlook["reasons"][0]["message"]
        with pytest.raises(HttpError) as refused:
            server.pause(kernel)
        assert refused.value.body["code"] == "would_lose"
        report = paused(server, kernel, on_loss="accept")["last_pause"]
        assert report["snapshot"] is None
        assert report["snapshot_reasons"][0]["code"] == "unix_socket_outside"
        connection.close()
    assert resumed(server, kernel)["via"] == "checkpoint"
    assert server.run(kernel, "", "x") == "1"


def test_s22_s26_children_pools_and_semaphores_come_back(server: ServerProcess) -> None:
    code = """
import multiprocessing, subprocess
from multiprocessing import shared_memory
context = multiprocessing.get_context("fork")
pool = context.Pool(2)
squares = pool.map(abs, [-1, -2])
lock = context.Semaphore(3)
lock.acquire()
memory = shared_memory.SharedMemory(create=True, size=1024)
memory.buf[0] = 7
child = subprocess.Popen(["sleep", "3600"])
"""
    kernel = kernel_with(server, code)
    items = server.api("GET", f"inventory?kernel={kernel}&wait=10")
    assert items["snapshot"] == {"usable": True, "reasons": []}
    assert {item["with_snapshot"] for item in items["processes"]} == {"in snapshot"}
    processes = {p.pid for p in psutil.process_iter() if any(p.pid == k.pid for k in server.kernels_alive())}
    paused(server, kernel)
    until(lambda: not any(psutil.pid_exists(pid) for pid in processes), "nothing is left behind")
    assert resumed(server, kernel)["via"] == "snapshot"
    assert server.run(kernel, "", "pool.map(abs, [-3, -4])") == "[3, 4]"
    assert server.run(kernel, "", "(lock.get_value(), memory.buf[0], child.poll())") == "(2, 7, None)"
    server.run(kernel, "child.kill(); child.wait(); pool.terminate(); memory.close(); memory.unlink()")


def test_s23_an_outside_connection_is_named_and_fails_fast(server: ServerProcess) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    answering = threading.Thread(target=_answer, args=(listener,), daemon=True)
    answering.start()
    kernel = kernel_with(
        server,
        f"import socket; c = socket.create_connection(('127.0.0.1', {listener.getsockname()[1]})); c.recv(2); x = 1",
    )
    items = server.api("GET", f"inventory?kernel={kernel}&wait=10")
    assert [item["with_snapshot"] for item in items["connections"]] == ["lost"]
    with pytest.raises(HttpError) as refused:
        server.pause(kernel)
    assert refused.value.body["code"] == "would_lose"
    paused(server, kernel, on_loss="accept")
    listener.close()
    assert resumed(server, kernel)["via"] == "snapshot"
    used = "\ntry:\n    c.sendall(b'x'); used = c.recv(1) or 'closed'\nexcept OSError as error:\n    used = 'closed'"
    assert server.run(kernel, used, "used") == "'closed'"
    assert server.run(kernel, "", "x") == "1"


def _answer(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection, _ = listener.accept()
        connection.sendall(b"hi")
        connection.recv(1)


def test_s24_the_steady_clock_stands_still_and_the_wall_clock_is_right(server: ServerProcess) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root's CRIU makes a time namespace")
    kernel = kernel_with(server, "import time, asyncio")
    steady = float(server.run(kernel, "", "time.monotonic()"))
    server.run(kernel, "task = asyncio.ensure_future(asyncio.wait_for(asyncio.sleep(3600), 3600))")
    paused(server, kernel)
    assert resumed(server, kernel)["via"] == "snapshot"
    assert float(server.run(kernel, "", "time.monotonic()")) - steady < 60
    assert server.run(kernel, "", "task.done()") == "False"
    import time

    assert abs(float(server.run(kernel, "", "time.time()")) - time.time()) < 60


@pytest.fixture
def broken_criu(tmp_path: Path, criu: Path) -> Path:
    """A criu that works in the self-test and does as the file `mode` says afterwards."""
    program = tmp_path / "broken-criu"
    program.write_text(
        f"#!/bin/sh\nmode=$(cat {tmp_path}/mode 2>/dev/null)\n"
        'case "$mode-$1" in no-dump-dump|no-restore-restore) echo "Error (here): it does not" >&2; exit 1 ;; esac\n'
        f'exec {criu} "$@"\n'
    )
    program.chmod(0o700)
    return program


def test_a_dump_that_fails_asks_about_the_losses_and_lets_the_kernel_go_on(tmp_path: Path, broken_criu: Path) -> None:
    server = ServerProcess(tmp_path, options=[f"--PauseApp.criu={broken_criu}"])
    try:
        server.start()
        kernel = kernel_with(server, "half = iter(range(10)); g = (i for i in half); next(g)")
        assert server.api("GET", f"inventory?kernel={kernel}")["snapshot"]["usable"] is True
        (tmp_path / "mode").write_text("no-dump")
        operation = server.api("POST", "pause", {"kernels": [kernel]})["operation"]
        asked = until(
            lambda: server.api("GET", f"operations/{operation['id']}")["state"] == "needs_decision", "it asks"
        )
        assert asked
        server.api("POST", f"operations/{operation['id']}", {"decision": "refuse"})
        assert server.ended(operation)["error"]["code"] == "would_lose"
        assert server.run(kernel, "", "next(g)") == "1"
        assert server.api("GET", "checkpoints")["checkpoints"] == []
        assert snapshots(server) == []
        assert (server.checkpoints / "logs").is_dir()

        report = paused(server, kernel, on_loss="accept")["last_pause"]
        assert report["snapshot_reasons"][0]["code"] == "snapshot_dump_failed"
        assert resumed(server, kernel)["via"] == "checkpoint"
    finally:
        server.clean_up()


def test_where_a_snapshot_is_required_a_pause_without_one_is_refused(tmp_path: Path, broken_criu: Path) -> None:
    server = ServerProcess(tmp_path, options=[f"--PauseApp.criu={broken_criu}", "--PauseApp.snapshots=on"])
    try:
        server.start()
        kernel = kernel_with(server, "x = 1")
        server.api("GET", f"inventory?kernel={kernel}")
        (tmp_path / "mode").write_text("no-dump")
        operation = server.pause(kernel)
        assert operation["state"] == "failed"
        assert operation["error"]["code"] == "snapshot_required"
        assert server.run(kernel, "", "x") == "1"
        (tmp_path / "mode").write_text("")
        paused(server, kernel)
        assert resumed(server, kernel)["via"] == "snapshot"
    finally:
        server.clean_up()


def test_without_criu_nothing_changes_but_one_sentence(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, options=[f"--PauseApp.criu={tmp_path / 'nothing'}"])
    try:
        server.start()
        assert server.api("GET", "state")["process_snapshots"] == {"mode": "auto", "usable": None, "reason": None}
        kernel = kernel_with(server, "x = 1")
        report = paused(server, kernel)["last_pause"]
        assert report["snapshot"] is None
        told = server.api("GET", "state")["process_snapshots"]
        assert told["usable"] is False
        assert told["reason"]["code"] == "criu_not_there"
        report = resumed(server, kernel)
        assert (report["via"], report["fallback"]) == ("checkpoint", None)
        done = subprocess.run(
            [sys.executable, "-m", "jupyter_pause.cli", "status"], env=server.env, capture_output=True, text=True
        )
        assert told["reason"]["message"] in done.stdout
    finally:
        server.clean_up()


def test_a_server_killed_in_the_middle_of_a_snapshot_leaves_a_running_kernel(tmp_path: Path, criu: Path) -> None:
    slow = tmp_path / "slow-criu"
    slow.write_text(
        f'#!/bin/sh\ncase "$1-$(cat {tmp_path}/mode 2>/dev/null)" in dump-slow) sleep 600 ;; esac\nexec {criu} "$@"\n'
    )
    slow.chmod(0o700)
    server = ServerProcess(tmp_path, options=[f"--PauseApp.criu={slow}"])
    try:
        server.start()
        kernel = kernel_with(server, "x = 1")
        server.api("GET", f"inventory?kernel={kernel}")
        (tmp_path / "mode").write_text("slow")
        server.api("POST", "pause", {"kernels": [kernel]})
        until(lambda: server.kernels_alive()[0].status() == psutil.STATUS_STOPPED, "the kernel is stopped")
        sleepers = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] and str(slow) in p.info["cmdline"]]
        server.kill()
        for process in sleepers:
            for one in [*process.children(recursive=True), process]:
                one.kill()
        server.start()
        assert row(server, kernel)["state"] == "running"
        assert server.run(kernel, "", "x") == "1"
        until(lambda: snapshots(server) == [], "what was begun is deleted")
    finally:
        server.clean_up()
