# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Each thing that keeps a process from being dumped is found in a real process that has it, before CRIU is asked."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pty
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from jupyter_pause.snapshot.criu import GHOST_LIMIT
from jupyter_pause.snapshot.obstacles import obstacles
from jupyter_pause.snapshot.sentences import SNAPSHOT_SENTENCES

USER = 65534
_PTRACE_SEIZE = 0x4206

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="making another user, a device or a small disk needs root")


@contextlib.contextmanager
def process(code: str = "", stdin: int = subprocess.DEVNULL) -> Iterator[int]:
    """The pid of a Python process that has run `code` and waits."""
    command = [sys.executable, "-c", f"{code}\nprint('ready', flush=True)\nimport time\ntime.sleep(600)"]
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, start_new_session=True) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == b"ready\n"
            yield started.pid
        finally:
            started.kill()


def found(pid: int, folder: Path, transport: str = "tcp") -> dict[str, str]:
    """Code and sentence of everything that stands in the way."""
    reasons = obstacles(pid, transport=transport, criu=folder / "criu", folder=folder)
    assert all(one.code in SNAPSHOT_SENTENCES for one in reasons)
    return {one.code: one.message for one in reasons}


def test_nothing_stands_in_the_way_of_an_ordinary_process(tmp_path: Path) -> None:
    with process() as pid:
        assert found(pid, tmp_path) == {}


def test_ipc_with_a_client(tmp_path: Path) -> None:
    manager = KernelManager(transport="ipc", ip=str(tmp_path / "k"), connection_file=str(tmp_path / "k.json"))
    manager.start_kernel()
    try:
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        assert manager.provisioner is not None
        pid = manager.provisioner.process.pid  # type: ignore[attr-defined]
        assert found(pid, tmp_path, "ipc") == {"ipc_transport": SNAPSHOT_SENTENCES["ipc_transport"]}
        client.stop_channels()
    finally:
        manager.shutdown_kernel(now=True)


def test_asking_us_by_our_own_socket_is_none() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        folder, link = Path(name), Path(name) / "s"
        door.bind(str(link))
        door.listen()
        asking = f"import socket; line = socket.socket(socket.AF_UNIX); line.connect({str(link)!r})"
        with process(asking) as pid, door.accept()[0]:
            criu = folder / "criu"
            assert obstacles(pid, transport="tcp", criu=criu, folder=folder, link=link) == []
            (found_without,) = obstacles(pid, transport="tcp", criu=criu, folder=folder, link=folder / "other")
            assert found_without.code == "unix_socket_outside"


def test_another_programs_terminal(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    try:
        with process(stdin=slave) as pid:
            name = os.ttyname(slave)
            sentence = SNAPSHOT_SENTENCES["terminal_outside"].format(name=name)
            assert found(pid, tmp_path) == {"terminal_outside": sentence}
    finally:
        os.close(master)
        os.close(slave)


def test_a_terminal_of_its_own_is_none(tmp_path: Path) -> None:
    with process("import pty; ends = pty.openpty()") as pid:
        assert found(pid, tmp_path) == {}


@ROOT
def test_a_gpu_without_the_plugin(tmp_path: Path) -> None:
    device = Path("/dev") / f"nvidia-test-{secrets.token_hex(4)}"  # a stand-in: the name is all that is looked at
    device.touch(0o600)
    try:
        with process(f"device = open({str(device)!r})") as pid:
            assert found(pid, tmp_path) == {"gpu_without_plugin": SNAPSHOT_SENTENCES["gpu_without_plugin"]}
    finally:
        device.unlink()


@ROOT
def test_a_child_of_another_user(tmp_path: Path) -> None:
    child = "import subprocess; child = subprocess.Popen(['sleep', '600'], user=0)"
    look = f"""
import json, os, pathlib, sys
from jupyter_pause.snapshot.obstacles import obstacles
os.setgroups([]); os.setresgid({USER}, {USER}, {USER}); os.setresuid({USER}, {USER}, {USER})
folder = pathlib.Path("/")
found = obstacles(int(sys.argv[1]), transport="tcp", criu=folder / "criu", folder=folder)
print(json.dumps([one.model_dump(mode="json") for one in found]))
"""
    # The process is the plain user's, and may be looked at (PR_SET_DUMPABLE); the child, as below sudo, is root's.
    become = f"{child}\nimport ctypes, os\nos.setresuid({USER}, {USER}, {USER})\nctypes.CDLL(None).prctl(4, 1, 0, 0, 0)"
    with process(become) as pid:
        done = subprocess.run([sys.executable, "-c", look, str(pid)], capture_output=True, text=True, check=True)
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        (reason,) = json.loads(done.stdout)
        assert reason["code"] == "other_users_process"
        assert reason["message"] == SNAPSHOT_SENTENCES["other_users_process"]
        assert reason["params"] == {"pid": int(children[0])}


def test_a_debugger(tmp_path: Path) -> None:
    with process() as pid:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.ptrace(_PTRACE_SEIZE, pid, None, None) == 0, os.strerror(ctypes.get_errno())
        assert found(pid, tmp_path) == {"being_traced": SNAPSHOT_SENTENCES["being_traced"]}


@ROOT
def test_a_disk_that_is_too_small(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], check=True)
    try:
        with process("data = bytearray(b'x') * (8 << 20)") as pid:
            reasons = obstacles(pid, transport="tcp", criu=tmp_path / "criu", folder=tmp_path)
        (reason,) = reasons
        assert (reason.code, reason.message) == ("no_room_for_snapshot", SNAPSHOT_SENTENCES["no_room_for_snapshot"])
        assert reason.params["free"] <= 1 << 20
        assert reason.params["needed"] > 8 << 20
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize(("size", "named"), [(GHOST_LIMIT + 1, True), (GHOST_LIMIT, False)])
def test_a_large_file_that_was_deleted(tmp_path: Path, size: int, named: bool) -> None:
    path = str(tmp_path / "deleted")  # with a hole: it takes no room
    with process(f"import os; file = open({path!r}, 'w'); file.truncate({size}); os.unlink({path!r})") as pid:
        sentence = SNAPSHOT_SENTENCES["deleted_file_too_large"]
        assert found(pid, tmp_path) == ({"deleted_file_too_large": sentence} if named else {})
