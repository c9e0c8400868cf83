# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Dumps and restores one small process: `criu check` also says yes where CRIU then cannot dump."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

#: Seconds for each step; a restore without the capabilities it needs hangs for ever.
LIMIT = 60.0

#: Holds a random token in its memory only and tells it when it is asked for it. The server's own self-test uses it too.
KEEPER = Path(__file__).resolve().parents[2] / "jupyter_pause" / "snapshot" / "keeper.py"


class NotWorking(Exception):
    """CRIU cannot dump or restore a process on this machine; says why."""


def version(program: Path) -> tuple[int, ...]:
    """CRIU's version; empty when it cannot be read."""
    done = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    found = re.search(r"Version:\s*([\d.]+)", done.stdout)
    return tuple(int(number) for number in found[1].split(".") if number) if found else ()


def self_test(program: Path) -> None:
    """Dump a process that holds a secret, see that it is gone, restore it, and have it tell the secret.

    Raises:
        NotWorking: any of this failed.
    """
    with tempfile.TemporaryDirectory(prefix="criu-selftest-") as name:
        folder = Path(name)
        keeper = _start(folder)
        try:
            _criu(program, "dump", "--tree", str(keeper.pid), folder=folder)
            keeper.wait(LIMIT)
            # As its sibling: the process comes back as our child, and we can end it.
            _criu(program, "restore", "--restore-detached", "--restore-sibling", folder=folder)
            (folder / "ask").touch()
            _until(lambda: (folder / "answer").exists(), "the restored process does not answer")
        except subprocess.TimeoutExpired:
            raise NotWorking("CRIU dumped the process and it did not end") from None
        finally:
            _end(keeper)
        told = hashlib.sha256((folder / "answer").read_bytes()).hexdigest()
        if told != (folder / "mark").read_text():
            raise NotWorking("the restored process has another memory than the one that was dumped")


def _start(folder: Path) -> subprocess.Popen[bytes]:
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", str(KEEPER)],
        cwd=folder,
        env={"PATH": os.defpath},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _until(lambda: (folder / "mark").exists(), "the process to dump does not start")
    except NotWorking:
        _end(keeper)
        raise
    return keeper


def _criu(program: Path, action: str, *options: str, folder: Path) -> None:
    images = folder / "images"
    images.mkdir(mode=0o700, exist_ok=True)
    unprivileged = [] if os.geteuid() == 0 else ["--unprivileged"]
    command = [str(program), action, *options, *unprivileged, "-D", str(images), "-o", f"{action}.log", "-v4"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        raise NotWorking(f"CRIU cannot {action} a process here: it hangs") from None
    if done.returncode:
        log = images / f"{action}.log"
        text = log.read_text(errors="replace") if log.exists() else done.stdout + done.stderr
        errors = [line for line in text.splitlines() if "Error" in line] or text.splitlines()[-5:]
        raise NotWorking(f"CRIU cannot {action} a process here: " + "; ".join(line.strip() for line in errors[:3]))


def _until(check: Callable[[], bool], failure: str) -> None:
    end = time.monotonic() + LIMIT
    while not check():
        if time.monotonic() > end:
            raise NotWorking(failure)
        time.sleep(0.02)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End our child: the one we started, or the one that was restored under its pid after that had ended."""
    if process.poll() is None:
        process.kill()
        process.wait()
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(process.pid, os.WNOHANG) == (0, 0):
            os.kill(process.pid, signal.SIGKILL)
            os.waitpid(process.pid, 0)
