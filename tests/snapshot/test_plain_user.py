# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Without root: a plain user's server, and a criu that carries the three capabilities it needs in its file."""

from __future__ import annotations

import ast
import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import jupyter_pause
from jupyter_pause.snapshot.rights import CAPABILITIES
from tests.harness import ServerProcess, until

from .driver import paused, resumed, snapshots
from .test_exact import SAME, STATE

USER = 65534
SCRIPT = Path(__file__).with_name("as_plain_user.py")


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder of the plain user's own; pytest's are for the user who runs the tests."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user and giving capabilities to a file needs root")
    folder = Path(tempfile.mkdtemp(prefix="plain-user-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def capable(criu: Path, folder: Path, names: list[str]) -> Path:
    """A copy of criu that gives these capabilities to whoever runs it, as `setcap NAMES+ep` does."""
    program = folder / "criu"
    shutil.copyfile(criu, program)
    program.chmod(0o755)
    bits = sum(1 << CAPABILITIES[name] for name in names)
    # capabilities(7): VFS_CAP_REVISION_2 with the effective flag; permitted and inheritable, low and high words.
    data = struct.pack("<5I", 0x02000001, bits & 0xFFFFFFFF, 0, bits >> 32, 0)
    os.setxattr(program, "security.capability", data)
    return program


def start(base: Path, criu: Path, program: Path) -> ServerProcess:
    """A server of the plain user."""
    server = ServerProcess(base, options=[f"--PauseApp.criu={program}"])
    for path in [base, *base.rglob("*")]:
        if path != program:
            os.chown(path, USER, USER)
    needed = [sys.prefix, sys.base_prefix, criu.parents[1], Path(jupyter_pause.__file__).parents[1], base]
    server.through = [sys.executable, str(SCRIPT), str(USER), str(base), *map(str, needed), "--"]
    return server.start()


def test_a_plain_user_gets_everything_back(base: Path, criu: Path) -> None:
    program = capable(criu, base, list(CAPABILITIES))
    server = start(base, criu, program)
    try:
        kernel = server.notebook("a.ipynb")["kernel"]["id"]
        before = ast.literal_eval(server.run(kernel, STATE, SAME))
        pid = before[0]
        assert psutil.Process(pid).uids().real == USER
        report = paused(server, kernel)["last_pause"]
        assert report["snapshot_reasons"] == []
        until(lambda: not psutil.pid_exists(pid), "the process is gone")
        assert all(path.stat().st_uid == USER for path in snapshots(server)[0].rglob("*"))
        assert resumed(server, kernel)["fallback"] is None
        assert ast.literal_eval(server.run(kernel, "", SAME)) == before
        assert server.run(kernel, "", "next(half)") == "42"

        paused(server, kernel)
        server.kill()
        server.start()
        assert resumed(server, kernel)["fallback"] is None
        assert ast.literal_eval(server.run(kernel, "", SAME)) == before
        assert server.run(kernel, "", "next(half)") == "43"
    finally:
        server.clean_up()


def test_without_the_capabilities_it_is_said_which_are_missing(base: Path, criu: Path) -> None:
    program = capable(criu, base, ["cap_sys_ptrace"])
    server = start(base, criu, program)
    try:
        kernel = server.notebook("a.ipynb")["kernel"]["id"]
        server.run(kernel, "x = 1")
        outlook = server.api("GET", f"inventory?kernel={kernel}")["snapshot"]
        assert outlook["usable"] is False
        assert outlook["reasons"][0]["code"] == "criu_missing_capabilities"
        assert "cap_checkpoint_restore" in outlook["reasons"][0]["params"]["capabilities"]
        assert "cap_sys_ptrace" not in outlook["reasons"][0]["params"]["capabilities"]
        paused(server, kernel)
        assert resumed(server, kernel)["via"] == "checkpoint"
    finally:
        server.clean_up()
