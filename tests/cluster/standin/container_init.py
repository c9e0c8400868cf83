# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What runs between the kubelet part and a container's own program: namespaces, mounts, then `exec`.

Run as a script: `python container_init.py start SPEC.json` or `python container_init.py restore SPEC.json`. Standard
library only. Linux, root.

* `start`: new pid, mount and uts namespaces. The program becomes process 1, as in a container. This script stays as its
  parent, writes its pid (as the machine sees it) to the spec's `pid_file`, and ends with its exit status.
* `restore`: a private mount namespace in which the machine's root is a mount of its own, as CRIU wants it, then CRIU.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWPID = 0x20000, 0x4000000, 0x20000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1

#: Mounts of the machine that a container keeps; all others go, so that a dump holds no more than it must.
KEPT = ("/", "/proc", "/sys", "/dev")
#: Emptied for the container: nothing written there touches the machine.
OWN = ("/tmp", "/home", "/run", "/dev/shm")

libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _mount(source: str | None, target: str, kind: str | None, flags: int = 0, options: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _check(libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]))


def _bind(source: str, target: str) -> None:
    path = Path(target)
    if Path(source).is_dir():
        path.mkdir(parents=True, exist_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    _mount(source, target, None, MS_BIND)


def _die_with_parent() -> None:
    _check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def _mounted() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [line.split()[4] for line in lines]


def _is_kept(path: str, image: list[str]) -> bool:
    if any(path == keep or path.startswith(keep.rstrip("/") + "/") for keep in KEPT[1:]):
        return True
    return path == "/" or any(needed == path or needed.startswith(path + "/") for needed in image)


def _mounts(spec: dict[str, Any]) -> None:
    """The container's view of the disk: the machine's, read as the image, with its own folders in front of it."""
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    image: list[str] = spec["image_paths"]
    # A folder of ours on the machine may be hidden by the container's own /tmp: it is held open until it is bound.
    held = {target: os.open(source, os.O_PATH) for source, target in spec["binds"]}
    hidden = {path: os.open(path, os.O_PATH) for path in image if path.startswith(tuple(own + "/" for own in OWN))}
    for path in reversed(_mounted()):
        if not _is_kept(path, image):
            libc.umount2(os.fsencode(path), MNT_DETACH)
    _mount("proc", "/proc", "proc")
    for own in OWN:
        _mount("tmpfs", own, "tmpfs", 0, "mode=1777" if own in ("/tmp", "/dev/shm") else "mode=755")
    for target, descriptor in {**hidden, **held}.items():
        _bind(f"/proc/self/fd/{descriptor}", target)
        os.close(descriptor)
    for path in spec["memory"]:
        os.makedirs(path, exist_ok=True)
        _mount("tmpfs", path, "tmpfs")


def _standard_streams(log: str) -> None:
    os.closerange(0, 256)
    os.open("/dev/null", os.O_RDONLY)
    os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (0, 1):
        os.set_inheritable(number, True)
    os.dup2(1, 2)


def _become_program(spec: dict[str, Any]) -> None:
    _die_with_parent()
    os.setsid()
    # Here, not before the fork: this script's own view of the disk stays the machine's.
    _check(libc.unshare(CLONE_NEWNS | CLONE_NEWUTS))
    _mounts(spec)
    hostname = os.fsencode(spec["hostname"])
    _check(libc.sethostname(hostname, len(hostname)))
    folder = spec["working_dir"]
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    os.umask(0o022)
    _standard_streams(spec["log"])
    os.execvpe(spec["argv"][0], spec["argv"], spec["env"])


def start(spec: dict[str, Any]) -> int:
    """Run the program; returns its exit status as a shell would give it."""
    _die_with_parent()
    _check(libc.unshare(CLONE_NEWPID))
    child = os.fork()
    if child == 0:
        try:
            _become_program(spec)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(127)
    Path(spec["pid_file"]).write_text(str(child), encoding="utf-8")
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def restore(spec: dict[str, Any]) -> int:
    """Become CRIU."""
    _check(libc.unshare(CLONE_NEWNS))
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    _mount("/", spec["root"], None, MS_BIND)
    os.execv(spec["argv"][0], spec["argv"])


if __name__ == "__main__":
    document = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    sys.exit(start(document) if sys.argv[1] == "start" else restore(document))
