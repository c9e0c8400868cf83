# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""How much memory another process may take here before the machine, or this container, runs short of it."""

from __future__ import annotations

from pathlib import Path

import psutil

#: Where Linux shows the limits of control groups; version 1 has a folder for each resource.
CGROUPS = Path("/sys/fs/cgroup")


def free_memory(cgroups: Path = CGROUPS) -> int:
    """Bytes that can still be used: what the machine has available, or what is left of the container's limit."""
    return min([int(psutil.virtual_memory().available), *_left_in(cgroups)])


def _left_in(cgroups: Path) -> list[int]:
    """Of each limit that holds for this process; file pages that can be dropped count as free."""
    found = []
    for folder, limit, current in (
        (cgroups, "memory.max", "memory.current"),
        (cgroups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            left = int((folder / limit).read_text()) - int((folder / current).read_text())
            statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            found.append(max(left + int(statistics.get("inactive_file", 0)), 0))
        except (OSError, ValueError):  # no such version here, or no limit ("max")
            continue
    return found
