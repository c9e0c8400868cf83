# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Kernel processes by pid: who they are, what they hold, how they end. A pid alone never names a process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from dataclasses import dataclass, field

import psutil

from .clock import SYSTEM_CLOCK, Clock

#: Two start times closer than this (seconds) are the same: they are computed from the boot time, which the system
#: corrects a little when its clock is set. No system gives a pid away again that quickly.
START_TIME_TOLERANCE = 2.0

_BOOTSTRAP = os.path.join("jupyter_pause", "kernel", "bootstrap.py")
_CONNECTION_FILE = re.compile(r"(?:^|[/\\])kernel-([A-Za-z0-9_-]+)\.json$")


def start_time(pid: int) -> float | None:
    """When the process started (seconds since the epoch, whole clock ticks); None if there is none."""
    try:
        return float(psutil.Process(pid).create_time())
    except (psutil.Error, OSError):
        return None


def is_same_process(pid: int | None, started: float | None) -> bool:
    """Is the process that had `pid` and started at `started` still there (and not a zombie)?

    An unknown start time never matches: signalling a stranger is worse than calling a process gone.
    """
    if pid is None or pid <= 0 or started is None:
        return False
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - started) <= START_TIME_TOLERANCE
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):
        return False


def kernels_alive() -> dict[str, int]:
    """Kernels of this user that run under our bootstrap now: kernel id to pid. Slow: call through a thread."""
    found: dict[str, int] = {}
    uid = os.getuid() if hasattr(os, "getuid") else None
    for process in psutil.process_iter():
        try:
            if uid is not None and process.uids().real != uid:
                continue
            command = process.cmdline()
            if process.status() == psutil.STATUS_ZOMBIE or not any(a.endswith(_BOOTSTRAP) for a in command[:16]):
                continue
        except (psutil.Error, OSError):
            continue
        for argument in command:
            name = _CONNECTION_FILE.search(argument)
            if name is not None:
                found[name[1]] = process.pid
    return found


@dataclass
class KernelProcesses:
    """A kernel's process, its group and everything it started, as found before it is ended."""

    pgid: int | None = None
    members: list[psutil.Process] = field(default_factory=list)

    @classmethod
    def find(cls, pid: int, pgid: int | None, started: float | None) -> KernelProcesses:
        """Collect the kernel process and all its descendants. Blocks: call through a thread.

        A stranger who got the pid meanwhile is not collected; a group whose leader died still is.
        """
        found = cls(pgid)
        try:
            kernel = psutil.Process(pid)
            if started is not None and abs(kernel.create_time() - started) > START_TIME_TOLERANCE:
                return cls()
            found.members = [kernel, *kernel.children(recursive=True)]
        except (psutil.Error, OSError):
            pass
        return found

    def rss(self) -> int:
        """Resident memory of all members together, in bytes."""
        total = 0
        for process in self.members:
            try:
                total += process.memory_info().rss
            except (psutil.Error, OSError):
                continue
        return total

    def kill(self) -> None:
        """SIGKILL to the group and to descendants that made a group of their own. Never raises for the dead."""
        if self.pgid is not None and self.pgid > 1 and hasattr(os, "killpg"):
            with contextlib.suppress(OSError):
                os.killpg(self.pgid, signal.SIGKILL)
        for process in self.members:
            try:
                process.kill()  # psutil checks that the pid is still the same process
            except (psutil.Error, OSError):
                continue

    def wake(self) -> None:
        """Let members go on that are stopped: a pause was cut short between a process snapshot and the end."""
        for process in self.members:
            try:
                if process.status() == psutil.STATUS_STOPPED:
                    process.resume()
            except (psutil.Error, OSError):
                continue

    def alive(self) -> list[int]:
        """Pids of the members that still hold something.

        A zombie holds neither memory nor ports, unless it has threads left that are still on their way out.
        """
        pids = []
        for process in self.members:
            try:
                if process.is_running() and not (
                    process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
                ):
                    pids.append(process.pid)
            except (psutil.Error, OSError):
                continue
        return pids

    async def wait_gone(self, seconds: float, clock: Clock = SYSTEM_CLOCK) -> bool:
        """Wait until no member is left; False if some still are after `seconds`."""
        limit = clock.monotonic() + seconds
        pause = 0.002
        while self.alive():
            if clock.monotonic() > limit:
                return False
            await clock.sleep(pause)
            pause = min(pause * 2, 0.1)
        return True


class AttachedProcess:
    """A process that another server started, with the part of `subprocess.Popen` that LocalProvisioner uses.

    It is not our child: its exit code cannot be known, an ended one reports 1.
    """

    stdin = stdout = stderr = None

    def __init__(self, pid: int, started: float) -> None:
        """Raises ProcessLookupError if that process is gone."""
        if not is_same_process(pid, started):
            raise ProcessLookupError(f"process {pid} is gone")
        self.pid = pid
        self.returncode: int | None = None
        self._started = started

    def recognise(self) -> None:
        """After a restore from a snapshot the system may say another start time for the same process."""
        started = start_time(self.pid)
        if started is not None:
            self._started = started

    def poll(self) -> int | None:
        """None while it lives."""
        if self.returncode is None and not is_same_process(self.pid, self._started):
            self.returncode = 1
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The return code; the caller has seen poll() end before, so there is nothing to wait for."""
        code = self.poll()
        return 1 if code is None else code

    def send_signal(self, signum: int) -> None:
        """Signal the process; does nothing if it has ended, as Popen's."""
        if self.poll() is None:
            os.kill(self.pid, signum)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)


class RestoredProcess(AttachedProcess):
    """A process that was restored from a snapshot: our child, but not of Popen's making, so it is reaped here."""

    def poll(self) -> int | None:
        """None while it lives; then its exit code."""
        if self.returncode is not None:
            return self.returncode
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # not our child: CRIU was not run by this process, or somebody else reaped it
            return super().poll()
        if pid:
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


async def processes_of(pid: int, pgid: int | None, started: float | None) -> tuple[KernelProcesses, int]:
    """The kernel's processes and the memory they hold (bytes), read in a thread."""

    def read() -> tuple[KernelProcesses, int]:
        found = KernelProcesses.find(pid, pgid, started)
        return found, found.rss()

    return await asyncio.to_thread(read)
