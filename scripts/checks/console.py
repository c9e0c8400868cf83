# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Runs commands, keeps what they print, and keeps count of what passed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parents[2]
CI = os.environ.get("CI", "").lower() not in ("", "0", "false")

Command = Sequence[str | Path]

_print_lock = threading.Lock()
_running: set[subprocess.Popen[str]] = set()


class Failed(Exception):
    """A step failed; what it printed says why."""


class Missing(Exception):
    """Something this part needs is not on this machine. Outside CI the part is left out and says so."""


def say(text: str) -> None:
    """Print a line of our own, at once."""
    with _print_lock:
        print(text, flush=True)


@dataclass
class Part:
    """One part of the run: its output goes to a log, which is printed whole when the part ends.

    In a run of several parts, some of them work at the same time; printing them line by line would mix them up.
    """

    name: str
    log: Path
    live: bool = False
    passed: int = 0
    failed: int = 0
    left_out: list[str] = field(default_factory=list)
    started: float = 0.0
    seconds: float = 0.0
    error: str = ""
    _file: TextIO | None = None

    def __enter__(self) -> Part:
        self.started = time.monotonic()
        self._file = self.log.open("w", encoding="utf-8", errors="replace")
        say(f"==> {self.name}: started")
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self.started
        assert self._file is not None
        self._file.close()
        state = "ok" if self.ok else "FAILED"
        with _print_lock:
            print(f"\n{'=' * 100}\n== {self.name}: {state} in {self.seconds:.0f} s\n{'=' * 100}")
            if not self.live:
                sys.stdout.write(self.log.read_text(encoding="utf-8", errors="replace"))
            print(f"== end of {self.name}", flush=True)

    @property
    def ok(self) -> bool:
        return not self.failed

    def note(self, text: str) -> None:
        """Write one line to this part's log."""
        self._write(text + "\n")

    def left_out_because(self, reason: str) -> None:
        """Something cannot be tried on this machine: a failure in CI, a line in the summary elsewhere."""
        self.note(reason)
        if CI:
            self.failed += 1
            self.error = self.error or reason
        else:
            self.left_out.append(reason)

    def step(
        self,
        title: str,
        command: Command,
        *,
        env: Mapping[str, str],
        cwd: Path = ROOT,
        limit: float = 1800,
        counts: bool = True,
        quiet_ok: bool = False,
    ) -> bool:
        """Run a command to its end; count it as one check unless `counts` is off (its own tests are counted instead).

        Args:
            limit: seconds after which the command and all it started are ended.
            quiet_ok: print only the last lines when the command succeeds (installers talk a lot).

        Returns:
            Whether it ended with 0.
        """
        begin = time.monotonic()
        self.note(f"\n--- {title}: {' '.join(str(word) for word in command)}")
        code, output = self._run([str(word) for word in command], env, cwd, limit, echo=not quiet_ok)
        if quiet_ok:
            lines = output.splitlines()
            self._write("\n".join(lines[-3:] if code == 0 else lines[-200:]) + "\n")
        self.note(
            f"--- {title}: {'ok' if code == 0 else f'FAILED (exit code {code})'} in {time.monotonic() - begin:.0f} s"
        )
        if counts or code != 0:
            self.passed += code == 0
            self.failed += code != 0
        if code != 0:
            self.error = self.error or title
        return code == 0

    def must(self, title: str, command: Command, **options: object) -> None:
        """Like `step`, for a step without which the rest of the part makes no sense.

        Raises:
            Failed: it did not end with 0.
        """
        if not self.step(title, command, **options):  # type: ignore[arg-type]
            raise Failed(title)

    def _run(
        self, command: list[str], env: Mapping[str, str], cwd: Path, limit: float, *, echo: bool
    ) -> tuple[int, str]:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        _running.add(process)
        timer = threading.Timer(limit, _end_group, [process])
        timer.start()
        lines: list[str] = []
        try:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if echo:
                    self._write(line)
            return process.wait(), "".join(lines)
        finally:
            timer.cancel()
            if process.poll() is None:
                _end_group(process)
            _running.discard(process)

    def _write(self, text: str) -> None:
        assert self._file is not None
        self._file.write(text)
        self._file.flush()
        if self.live:
            with _print_lock:
                sys.stdout.write(text)
                sys.stdout.flush()


def end_everything() -> None:
    """End all commands that run now, and what they started: this run was told to stop."""
    for process in list(_running):
        _end_group(process)


def _end_group(process: subprocess.Popen[str]) -> None:
    """End a command that we started, and what it started in its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(10)
            return
        except subprocess.TimeoutExpired:
            continue
