# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Is a process still the one we knew? By pid and start time, with the standard library only."""

from __future__ import annotations

import os
import sys
from typing import Any

#: Two readings of one start time differ by clock ticks and by rounding, never by this many seconds.
TOLERANCE = 2.0


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot, or None. Setting the clock does not change it."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        with open("/proc/{}/stat".format(pid), "rb") as stream:
            return int(stream.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def start_time(pid: int) -> float | None:
    """When a process started, in seconds since the epoch (UTC), or None where the system does not tell."""
    ticks = start_ticks(pid)
    if ticks is None:
        return None
    try:
        with open("/proc/stat", "rb") as stream:
            booted = next(int(line.split()[1]) for line in stream if line.startswith(b"btime "))
    except (OSError, ValueError, StopIteration):
        return None
    return booted + ticks / os.sysconf("SC_CLK_TCK")


def alive(pid: Any, started: float | None = None) -> bool:
    """True while process `pid` lives and, where both are known, began at `started` (seconds since the epoch)."""
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives under another account, so it is not our server any more
        return False
    if _zombie(pid):
        return False
    now = start_time(pid)
    return started is None or now is None or abs(now - float(started)) < TOLERANCE


def _zombie(pid: int) -> bool:
    try:
        with open("/proc/{}/stat".format(pid), "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return False
