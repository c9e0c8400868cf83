# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""CRIU takes a process away and brings it back; the self-test that says so is not fooled by one that does nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import until

from .binaries import checks_module

#: State that only a living process has: a random token, a generator half-way, a thread, a file with a position.
PROGRAM = """
import hashlib, json, os, threading, time
token = os.urandom(32)
def count():
    yield from range(1000)
numbers = count()
while next(numbers) < 41:
    pass
ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
file = open("notes", "w+")
file.write("first")
file.flush()
def say(name, value):
    with open(name + ".new", "w") as out:
        json.dump(value, out)
    os.rename(name + ".new", name)
say("mark", hashlib.sha256(token).hexdigest())
while not os.path.exists("ask"):
    time.sleep(0.02)
seen = ticks
while ticks == seen:
    time.sleep(0.01)
file.write(", second")
file.flush()
say("answer", {"token": token.hex(), "next": next(numbers), "ticks": ticks, "pid": os.getpid()})
while True:
    time.sleep(1)
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program above, running; ended afterwards, restored or not."""
    started = start(tmp_path)
    try:
        yield started
    finally:
        end(started)


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Start the program in a folder and wait for its mark."""
    devnull = subprocess.DEVNULL
    command = [sys.executable, "-I", "-S", "-c", PROGRAM]
    started = subprocess.Popen(
        command, cwd=folder, stdin=devnull, stdout=devnull, stderr=devnull, start_new_session=True
    )
    until((folder / "mark").exists, "the program runs")
    return started


def end(process: subprocess.Popen[bytes]) -> None:
    """End our child: the one we started, or the one that was restored under its pid after that had ended."""
    if process.poll() is None:
        process.kill()
        process.wait()
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(process.pid, os.WNOHANG) == (0, 0):
            os.kill(process.pid, signal.SIGKILL)
            os.waitpid(process.pid, 0)


def run_criu(program: Path, action: str, images: Path, *options: str) -> None:
    """One action of CRIU; the test fails with its log."""
    command = [str(program), action, "-D", str(images), "-o", f"{action}.log", "-v4", *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    log = images / f"{action}.log"
    assert done.returncode == 0, log.read_text(errors="replace")[-3000:] if log.exists() else done.stderr


def ask(folder: Path) -> dict[str, Any]:
    """What the program says when it is asked."""
    (folder / "ask").touch()
    until((folder / "answer").exists, "the program answers")
    answer: dict[str, Any] = json.loads((folder / "answer").read_text())
    return answer


def test_a_process_goes_and_comes_back_with_its_memory(
    criu: Path, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    images = tmp_path / "images"
    images.mkdir(mode=0o700)
    mark = json.loads((tmp_path / "mark").read_text())

    run_criu(criu, "dump", images, "--tree", str(process.pid))
    assert process.wait(60) == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)

    run_criu(criu, "restore", images, "--restore-detached", "--restore-sibling")
    answer = ask(tmp_path)
    assert hashlib.sha256(bytes.fromhex(answer["token"])).hexdigest() == mark
    assert answer["next"] == 42
    assert answer["pid"] == process.pid
    assert (tmp_path / "notes").read_text() == "first, second"


def test_a_new_start_is_told_from_a_restore(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    mark = json.loads((tmp_path / "mark").read_text())
    end(process)
    (tmp_path / "mark").unlink()
    again = start(tmp_path)
    try:
        assert hashlib.sha256(bytes.fromhex(ask(tmp_path)["token"])).hexdigest() != mark
    finally:
        end(again)


def test_the_self_test_passes_with_a_real_criu(criu: Path) -> None:
    checks_module("criu_selftest").self_test(criu)
    assert checks_module("criu_selftest").version(criu) >= (4, 2)


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("exit 0", "did not end"),
        ("case $1 in dump) kill -KILL $3 ;; esac; exit 0", "does not answer"),
        ("echo no >&2; exit 1", "cannot dump"),
        ("case $1 in dump) kill -KILL $3 ;; *) exit 1 ;; esac", "cannot restore"),
        ("exec sleep 60", "hangs"),
    ],
    ids=["does nothing", "only kills", "refuses to dump", "refuses to restore", "hangs"],
)
def test_the_self_test_sees_a_criu_that_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, complaint: str
) -> None:
    selftest = checks_module("criu_selftest")
    monkeypatch.setattr(selftest, "LIMIT", 3.0)
    fake = tmp_path / "criu"
    # It is called as `criu dump --tree PID ...` and `criu restore ...`.
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o700)
    with pytest.raises(selftest.NotWorking, match=complaint):
        selftest.self_test(fake)
