# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Saves the kernel when its server is gone for good, and ends the process: nobody is left who could do it.

A server that restarts adopts the kernel and rewrites the kernel file; then all is well again. Whatever fails leaves the
kernel running, to be tried again later.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import threading
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from . import files, layout, processes

if TYPE_CHECKING:
    from .agent import Agent

#: Seconds between two looks at the kernel file.
INTERVAL = 3.0
DEFAULT_TIMEOUT = 300.0
#: Seconds until the next try after one that failed: doubled each time, up to the second number.
FIRST_RETRY, LAST_RETRY = 30.0, 1800.0


def start(agent: Agent) -> Watchdog | None:
    """Begin to watch, on a daemon thread. Without a kernel file there is no server to watch."""
    if not agent.files.server():
        return None
    watchdog = Watchdog(agent)
    threading.Thread(target=watchdog.run, name="jupyter_pause watchdog", daemon=True).start()
    return watchdog


class Watchdog:
    """Its clock is the monotonic one: a laptop that slept for a night has not lost its server for a night."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._server = _identity(agent.files.server())
        self._ticks: int | None = None
        self._missing_since: float | None = None
        self._retry = FIRST_RETRY
        self._not_before = 0.0

    def run(self) -> None:
        """Look every few seconds until the process ends."""
        while True:
            facts = self._agent.files.server()
            timeout = _seconds(facts.get("orphan_timeout"), DEFAULT_TIMEOUT)
            time.sleep(min(INTERVAL, max(timeout / 4, 0.05)))
            try:
                self.look(time.monotonic())
            except Exception as error:
                problem = "watchdog: {}: {}".format(type(error).__name__, error)
                if problem not in self._agent.problems:
                    self._agent.problems.append(problem)
                self._put_off()

    def is_alone(self) -> bool:
        """Whether there is no server now. Never raises."""
        try:
            facts = self._agent.files.server()
            return bool(facts) and not self._is_alive(facts)
        except Exception:
            return False

    def look(self, now: float) -> None:
        """One look at monotonic second `now`; saves the kernel and ends the process when it is an orphan."""
        facts = self._agent.files.server()
        if not facts:
            return  # the session was shut down or handed over: its files are gone, and so is our job
        self._notice_adoption(facts)
        if self._is_alive(facts):
            self._missing_since = None
            self._retry, self._not_before = FIRST_RETRY, 0.0
            return
        if self._missing_since is None:
            self._missing_since = now
        if now - self._missing_since < _seconds(facts.get("orphan_timeout"), DEFAULT_TIMEOUT):
            return
        if now < self._not_before or self._agent.gate.running or self._agent.saver.active:
            return
        if not self._save(facts):
            self._put_off()

    def _notice_adoption(self, facts: dict[str, Any]) -> None:
        """A hold that a dead server asked for ends when another one takes over."""
        identity = _identity(facts)
        if identity != self._server:
            self._server, self._ticks = identity, None
            if self._agent.gate.held:
                self._agent.saver.unhold()

    def _is_alive(self, facts: dict[str, Any]) -> bool:
        """Whether the server that the kernel file names still lives.

        Once it was seen alive it is known by its ticks since boot: times since the epoch move when the clock is set.
        The ticks themselves move when this process was restored from a snapshot, into a time namespace of its own.
        """
        pid, started = _identity(facts)
        if self._ticks is not None and processes.alive(pid) and processes.start_ticks(pid) == self._ticks:
            return True
        alive = processes.alive(pid, started)
        if alive:
            self._ticks = processes.start_ticks(pid)
        return alive

    def _put_off(self) -> None:
        self._not_before = time.monotonic() + self._retry
        self._retry = min(self._retry * 2, LAST_RETRY)

    def _save(self, facts: dict[str, Any]) -> bool:
        """Capture, commit, note it in session.json, exit. False when it did not work."""
        root = facts["checkpoint_dir"]
        checkpoint = secrets.token_hex(16)
        staging = os.path.join(root, "staging", checkpoint)
        layout.make_private_dir(staging)
        files.write_private(os.path.join(staging, "request.json"), self._request(facts, checkpoint))
        result = self._capture(staging)
        if result.get("status") != "ok":
            _remove(staging)
            return False
        if self._came_back():
            _remove(staging)
            self._agent.saver.unhold()
            return True
        final = os.path.join(root, "checkpoints", checkpoint)
        try:
            layout.make_private_dir(os.path.dirname(final))
            layout.commit(staging, final, layout.read_secret(facts["secret_file"]))
            if not self._came_back():
                record_orphan(root, str(self._agent.files.kernel_id), checkpoint)
                _exit()
        except BaseException:
            self._undo(staging, final)
            raise
        self._undo(staging, final)
        return True

    def _undo(self, staging: str, final: str) -> None:
        """The kernel runs on: a checkpoint of it that nobody knows of would only fill the disk."""
        _remove(staging)
        _remove(final)
        self._agent.saver.unhold()

    def _came_back(self) -> bool:
        """Whether a server has taken over meanwhile."""
        facts = self._agent.files.server()
        self._notice_adoption(facts)
        return self._is_alive(facts)

    def _request(self, facts: dict[str, Any], checkpoint: str) -> dict[str, Any]:
        session = facts.get("session") or {}
        return {
            "version": 1,
            "checkpoint_id": checkpoint,
            "kernel_id": self._agent.files.kernel_id,
            "operation_id": checkpoint,
            "kernel_name": session.get("kernel_name") or "",
            "path": session.get("path") or "",
            "cause": "orphaned",
            "created": _now(),
            "skip_env": facts.get("skip_env"),
        }

    def _capture(self, staging: str) -> dict[str, Any]:
        """Run the capture on the main thread and wait for it; losses do not stop it: better than losing all."""
        ended = threading.Event()
        self._agent.saver.begin(staging, ended=ended.set)
        while not ended.wait(1.0):
            continue
        return files.read_private(os.path.join(staging, "result.json"))


def record_orphan(root: str, kernel_id: str, checkpoint: str) -> None:
    """Set the session's record to paused with this checkpoint; fields that we do not know are kept."""
    path = os.path.join(root, "sessions", kernel_id, "session.json")
    record = files.read_private(path)
    record.update(state="paused", checkpoint=checkpoint, cause="orphaned", since=_now(), pid=None, pid_start_time=None)
    files.write_private(path, record)


def _identity(facts: dict[str, Any]) -> tuple[Any, Any]:
    server = facts.get("server") or {}
    return server.get("pid"), server.get("start_time")


def _seconds(value: Any, default: float) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else default


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _exit() -> None:
    """End this process and its children, which were named as lost."""
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except Exception:
            continue
    if os.name == "posix" and os.getpgrp() == os.getpid():
        try:  # this process gets the signal as well, and ends by it or by the next line
            os.killpg(os.getpid(), signal.SIGTERM)
        except OSError:
            pass
    os._exit(0)
