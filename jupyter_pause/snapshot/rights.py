# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which capabilities CRIU will have when this process runs it, and which of those that it needs are missing.

Sources: capabilities(7) for the layout of the attribute `security.capability` and what an exec makes of it.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: Numbers of linux/capability.h.
CAPABILITIES = {"cap_setpcap": 8, "cap_sys_ptrace": 19, "cap_checkpoint_restore": 40}
_SYS_ADMIN = 21
#: What a file-capable criu is given: `setcap <this> criu`.
SETCAP = "cap_checkpoint_restore,cap_sys_ptrace,cap_setpcap+ep"


@dataclass(frozen=True)
class Rights:
    """`missing`: names of capabilities; `no_new_privileges`: this process may gain none, whatever the file says."""

    missing: tuple[str, ...] = ()
    no_new_privileges: bool = False


def rights_of(program: Path) -> Rights:
    """What running `program` lacks. Blocks; raises OSError where the system does not tell."""
    status = _status()
    bounding = int(status["CapBnd"], 16)
    effective = int(status["CapEff"], 16)
    if os.geteuid() == 0:
        return Rights(tuple(_missing(effective & bounding, bounding)))
    permitted = _file_capabilities(program) & bounding
    missing = tuple(_missing(permitted | effective, bounding))
    return Rights(missing, bool(missing or permitted) and status.get("NoNewPrivs") == "1")


def _missing(have: int, bounding: int) -> list[str]:
    """CAP_SYS_ADMIN may stand for CAP_CHECKPOINT_RESTORE. Dropping rights needs CAP_SETPCAP where not all are there."""
    missing = []
    for name, number in CAPABILITIES.items():
        if have & (1 << number):
            continue
        if name == "cap_checkpoint_restore" and have & (1 << _SYS_ADMIN):
            continue
        if name == "cap_setpcap" and not _is_cut(bounding):
            continue
        missing.append(name)
    return missing


def _is_cut(bounding: int) -> bool:
    """Whether the bounding set lacks a capability that this kernel knows."""
    try:
        with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
            last = int(file.read())
    except (OSError, ValueError):
        return True
    return bounding != (1 << (last + 1)) - 1


def _status() -> dict[str, str]:
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}


def _file_capabilities(program: Path) -> int:
    """The permitted set of a file with its effective flag on; 0 for a file without."""
    try:
        data = os.getxattr(program, "security.capability")
    except OSError:
        return 0
    magic, low = struct.unpack_from("<II", data)
    if not magic & 1 or len(data) < 20:  # not effective at exec, or an old layout with 32 bits only
        return 0
    (high,) = struct.unpack_from("<I", data, 12)
    return int(low | high << 32)
