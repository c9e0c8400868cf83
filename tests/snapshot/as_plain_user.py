# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Runs a command as a plain user: `as_plain_user.py UID HOME PATH... -- COMMAND...`, started by root.

Folders on the way to a PATH that are for root only (a home, a cache) look passable to the command, and hold nothing but
the paths: in a mount namespace of its own, nothing of the machine is changed. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_CLONE_NEWNS = 0x00020000


def main() -> None:
    """Never returns."""
    split = sys.argv.index("--")
    uid, home, paths, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:split], sys.argv[split + 1 :]
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    _mount("--make-rprivate", "/")
    _open_the_way([Path(path).resolve() for path in paths])
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.environ["HOME"] = home
    os.chdir(home)
    os.execvp(command[0], command)


def _open_the_way(paths: list[Path]) -> None:
    closed: dict[Path, list[Path]] = {}
    for path in paths:
        for folder in reversed(path.parents):
            if not folder.stat().st_mode & 0o001:
                closed.setdefault(folder, []).append(path)
                break
    for folder, inside in closed.items():
        held = tempfile.mkdtemp(prefix="held-")
        _mount("--bind", str(folder), held)
        _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(folder))
        for path in sorted(set(inside)):
            if not path.exists():
                path.mkdir(parents=True)
                _mount("--bind", held + "/" + str(path.relative_to(folder)), str(path))
        subprocess.run(["umount", "-l", held], check=True)
        os.rmdir(held)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


if __name__ == "__main__":
    main()
