# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A full disk, a server that stops for lack of activity, and what a reboot takes away."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import ServerProcess, until


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "none", str(folder)], check=False)
    if done.returncode != 0:
        if os.environ.get("CI") == "true":
            pytest.fail("a small file system could not be mounted")
        pytest.skip("needs the right to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@contextlib.contextmanager
def serving(base: Path, *options: str) -> Iterator[ServerProcess]:
    server = ServerProcess(base, options=list(options))
    try:
        yield server.start()
    finally:
        server.clean_up()


def test_a_full_disk_leaves_the_kernel_running_and_nothing_behind(tmp_path: Path, small_disk: Path) -> None:
    store = small_disk / "store"
    with serving(tmp_path / "base", f"--PauseApp.checkpoint_dir={store}") as server:
        kernel = server.notebook("a.ipynb")["kernel"]["id"]
        server.run(kernel, "import os; small = os.urandom(1000); big = bytearray(os.urandom(1 << 20) * 80)")
        ended = server.pause(kernel)
        assert ended["state"] == "failed" and ended["error"]["code"] == "no_space", ended
        row = server.row(kernel)
        assert row is not None and row["state"] == "running"
        assert server.run(kernel, "x = 1", "len(small), len(big)") == repr((1000, 80 << 20))
        assert not list((store / "checkpoints").glob("*")) and not list((store / "staging").glob("*"))
        # With less to save it works: the failure left no hold and took no room.
        assert server.run(kernel, "del big", "len(small)") == "1000"
        assert server.pause(kernel)["state"] == "done"
        assert server.resume(kernel=kernel)["outcome"] == "restored"
        assert server.run(kernel, "pass", "len(small)") == "1000"


def test_a_server_with_only_paused_kernels_may_stop_itself_and_loses_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, "--ServerApp.shutdown_no_activity_timeout=2") as server:
        kernel = server.notebook("a.ipynb")["kernel"]["id"]
        server.run(kernel, "x = 41")
        assert server.pause(kernel)["state"] == "done"
        process = server.process
        assert process is not None
        until(lambda: process.poll() is not None, "the server stops for lack of activity")
        server.process = None
    # A reboot takes the runtime folder with it (connection files, sockets): the session must not need it.
    shutil.rmtree(tmp_path / "runtime")
    with serving(tmp_path) as server:
        row = server.row(kernel)
        assert row is not None and row["state"] == "paused" and row["path"] == "a.ipynb"
        sessions = server.get("api/sessions")
        assert [session["kernel"]["id"] for session in sessions] == [kernel]
        assert server.resume(kernel=kernel)["outcome"] == "restored"
        assert server.run(kernel, "x += 1", "x") == "42"
