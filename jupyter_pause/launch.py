# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What a kernel is launched with: which command lines are ours, the files beside its connection file, the settings.

Imported by the provisioner, also in programs that have nothing to do with our server extension: keep it light.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .provisioner import PauseProvisioner

#: What runs in place of `-m ipykernel_launcher`.
BOOTSTRAP = Path(__file__).resolve().parent / "kernel" / "bootstrap.py"
#: Environment variable naming inherited listening sockets: "port:fd,port:fd" (see kernel/held_ports.py).
LISTEN_FDS_ENV = "JUPYTER_PAUSE_LISTEN_FDS"

_KERNEL_ID = re.compile(r"[A-Za-z0-9_]+(-[A-Za-z0-9_]+)*")
_PYTHON = re.compile(r"python(\d+(\.\d+)*t?)?(\.exe)?", re.IGNORECASE)
_LAUNCHERS = frozenset({"ipykernel_launcher", "ipykernel"})
#: Letters of Python's options that take no value (a cluster of them may end in `m`).
_FLAGS = frozenset("bBdEhiIOPqRsSuvVx?")

EventKind = Literal["launched", "adopted", "restarted", "paused", "resuming", "resumed", "resume_failed", "ended"]


@dataclass(frozen=True)
class KernelEvent:
    """Something that happened to a kernel's process. `was_paused`: it was paused just before."""

    kind: EventKind
    kernel_id: str
    provisioner: PauseProvisioner
    was_paused: bool = False


@dataclass(frozen=True)
class Adoption:
    """How the next start of one kernel takes over what an earlier server left.

    `pid` None: the session is paused. `connection_info` is as in a connection file (the key is text).
    """

    connection_info: Mapping[str, Any]
    pid: int | None = None
    pid_start_time: float | None = None
    connection_file: str | None = None
    path: str | None = None


@dataclass
class LaunchSettings:
    """What the server extension tells the provisioner; filled by app.py, see `set_launch_settings`.

    Files and directories are absolute; `orphan_timeout` is in seconds.
    """

    server_pid: int
    server_start_time: float
    socket: str | None
    cloudpickle_dir: str
    checkpoint_dir: str
    secret_file: str
    orphan_timeout: float = 300.0
    skip_env: Sequence[str] = ()
    #: Called on the event loop, must not block; an exception is logged and goes no further.
    listeners: list[Callable[[KernelEvent], None]] = field(default_factory=list)
    #: Kernels whose next start is an adoption (see `Adoption`), by kernel id.
    adoptions: dict[str, Adoption] = field(default_factory=dict)
    #: Asked in a thread when a process is found dead: did it save itself before it went (the kernel's watchdog)?
    saved_itself: Callable[[str, int], bool] | None = None
    #: Asked in a thread before a process is launched for a paused session: is it still this server's?
    may_resume: Callable[[str], bool] | None = None
    #: Whether exact snapshots can be had here, as far as is known: then kernels without our code can be kept too.
    exact: Callable[[], bool] | None = None


_settings: LaunchSettings | None = None


def set_launch_settings(settings: LaunchSettings | None) -> None:
    """Switch pausing on for kernels launched by this process (None: off, kernels are launched as usual)."""
    global _settings
    _settings = settings


def launch_settings() -> LaunchSettings | None:
    """The settings in force; None where our server extension is not loaded."""
    return _settings


def valid_kernel_id(kernel_id: str) -> bool:
    """Whether an id may become part of a file name. Clients choose kernel ids: an id is never a path."""
    return len(kernel_id) <= 128 and _KERNEL_ID.fullmatch(kernel_id) is not None


@dataclass(frozen=True)
class LaunchPlan:
    """`command` to run; `code` says why it is not ours to pause (None: it is)."""

    command: list[str]
    code: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


def plan_launch(command: Sequence[str], language: str, bootstrap: Path = BOOTSTRAP) -> LaunchPlan:
    """Put our bootstrap in the place of `-m ipykernel_launcher`; any other command line stays untouched."""
    untouched = list(command)
    if language and not language.lower().startswith("python"):
        return LaunchPlan(untouched, "not_python", {"language": language})
    program = re.split(r"[/\\]", untouched[0])[-1] if untouched else ""
    if not _PYTHON.fullmatch(program):
        return LaunchPlan(untouched, "wrapped_command", {"command": program})
    found = _find_module(untouched)
    if found is None:
        return LaunchPlan(untouched, "wrapped_command", {"command": program})
    module, options, rest = found
    if module not in _LAUNCHERS:
        return LaunchPlan(untouched, "not_ipykernel", {"module": module})
    return LaunchPlan([untouched[0], *options, str(bootstrap), *rest])


def _find_module(command: list[str]) -> tuple[str, list[str], list[str]] | None:
    """`(module, Python's own options, the module's arguments)`; None if Python runs no module with -m."""
    options: list[str] = []
    position = 1
    while position < len(command):
        argument = command[position]
        if argument in ("-X", "-W", "--check-hash-based-pycs"):
            options += command[position : position + 2]
            position += 2
            continue
        if argument.startswith(("-X", "-W")):
            options.append(argument)
            position += 1
            continue
        cluster = re.fullmatch(r"-([A-Za-z?]*?)m(.*)", argument, re.DOTALL)
        if cluster is not None and set(cluster[1]) <= _FLAGS:
            if cluster[1]:
                options.append("-" + cluster[1])
            if cluster[2]:
                return cluster[2], options, command[position + 1 :]
            if position + 1 < len(command):
                return command[position + 1], options, command[position + 2 :]
            return None
        if re.fullmatch(r"-[A-Za-z?]+", argument) is None or not set(argument[1:]) <= _FLAGS:
            return None  # a script, -c, -, or an option that we do not know
        options.append(argument)
        position += 1
    return None


def kernel_file(connection_file: str, kernel_id: str) -> Path:
    """The kernel file's path (see docs/developers/architecture.md)."""
    return Path(connection_file).with_name(f"jupyter-pause-{kernel_id}.json")


def load_file(connection_file: str, kernel_id: str) -> Path:
    """The load file's path (see docs/developers/architecture.md)."""
    return Path(connection_file).with_name(f"jupyter-pause-load-{kernel_id}.json")


def output_file(connection_file: str, kernel_id: str) -> Path:
    """Where the kernel's own standard output and error go."""
    return Path(connection_file).with_name(f"jupyter-pause-{kernel_id}.out")


def kernel_file_content(settings: LaunchSettings, kernel_id: str, session: Mapping[str, Any]) -> dict[str, Any]:
    """What the kernel is told about its server."""
    return {
        "version": 1,
        "kernel_id": kernel_id,
        "server": {
            "pid": settings.server_pid,
            "start_time": settings.server_start_time,
            "socket": settings.socket,
        },
        "cloudpickle": settings.cloudpickle_dir,
        "checkpoint_dir": settings.checkpoint_dir,
        "secret_file": settings.secret_file,
        "orphan_timeout": settings.orphan_timeout,
        "session": dict(session),
        "skip_env": list(settings.skip_env),
    }


def write_private_json(path: Path, content: Mapping[str, Any], *, sync: bool = False) -> None:
    """Replace `path` atomically by a 0600 JSON file; `sync`: it survives a power cut. Blocks; raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)  # 0600 from creation
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False, indent=1)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        remove_file(Path(temporary))
        raise
    if sync:
        _sync_directory(path.parent)


def read_private_json(path: Path) -> dict[str, Any] | None:
    """The object in `path`; None if it is missing, not a regular file of ours, or not a JSON object."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    with os.fdopen(descriptor, encoding="utf-8") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or (hasattr(os, "getuid") and status.st_uid != os.getuid()):
            return None
        try:
            content = json.load(file)
        except (ValueError, OSError):
            return None
    return content if isinstance(content, dict) else None


def remove_file(path: Path) -> None:
    """Delete `path` if it is there."""
    with contextlib.suppress(OSError):
        path.unlink()


def _sync_directory(directory: Path) -> None:
    """Make a rename durable; file systems that cannot sync a directory are left alone."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
