# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The command line as a person runs it: a program of its own, against real servers."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.harness import LIMIT, ServerProcess, take_ctrl_c


@dataclass
class Done:
    """How a run of the program ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout must be exactly one JSON object."""
        return json.loads(self.out)


class CommandLine:
    """`jupyter pause` with the folders of one server (or of none)."""

    def __init__(self, env: dict[str, str], cwd: Path) -> None:
        self.env = env
        self.cwd = cwd

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "jupyter_pause.cli", *words]

    def __call__(self, *words: str, cwd: Path | None = None, **env: str) -> Done:
        done = subprocess.run(
            self.command(*words),
            env={**self.env, **env},
            cwd=cwd or self.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT * 2,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """The program while it runs, in a process group of its own."""
        return subprocess.Popen(
            self.command(*words),
            env=self.env,
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=take_ctrl_c,
        )


class Terminal:
    """The program on a terminal: what it writes is collected, what a person types is sent."""

    def __init__(self, line: CommandLine, *words: str) -> None:
        self.seen = ""
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            line.command(*words),
            env={**line.env, "TERM": "xterm", "COLUMNS": "100"},
            cwd=line.cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def wait_for(self, text: str) -> None:
        """Read until `text` was written."""
        end = time.monotonic() + LIMIT
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            assert self._read(), f"{text!r} never came: {self.seen}"

    def _read(self) -> bool:
        try:
            piece = os.read(self._master, 4096)
        except OSError:  # Linux: the other side is closed
            return False
        self.seen += piece.decode("utf-8", "replace")
        return bool(piece)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Read to the end; returns the exit code."""
        while self._read():
            pass
        os.close(self._master)
        return self._process.wait(LIMIT)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait(LIMIT)


@pytest.fixture
def nobody(tmp_path: Path) -> CommandLine:
    """The command line where no server runs."""
    return CommandLine(ServerProcess(tmp_path).env, tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A real server with the extension."""
    made = ServerProcess(tmp_path)
    try:
        yield made.start()
    finally:
        made.clean_up()


@pytest.fixture
def line(server: ServerProcess) -> CommandLine:
    """The command line of the server's user, in the server's root folder."""
    return CommandLine(server.env, server.root)
