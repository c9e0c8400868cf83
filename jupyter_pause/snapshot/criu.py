# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The program `criu`: where it is, which version, and how it is run so that nothing of it is ever left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The oldest version that dumps a kernel on a recent Linux. Older ones may pass `criu check` and then fail.
MINIMUM = (4, 2)
#: Largest deleted file that is kept inside a snapshot (bytes).
GHOST_LIMIT = 1 << 30
#: Connections come back closed (ZeroMQ connects again by itself); locks and deleted files are kept.
_COMMON = ("--tcp-close", "--file-locks", "--link-remap", "--ghost-limit", str(GHOST_LIMIT), "-v4")
#: Seconds that `criu --version` may take, and seconds that a killed program may take to go.
_QUICK = 10.0
#: How much of a log is looked at (bytes from its end).
_LOG_TAIL = 1 << 20


class CriuError(Exception):
    """CRIU did not do it. `hung`: it was ended because its time was over; `lines`: what its log says of errors."""

    def __init__(self, action: str, lines: Sequence[str], *, hung: bool = False) -> None:
        self.action = action
        self.lines = list(lines)
        self.hung = hung
        super().__init__(f"criu {action}: " + ("no end within its limit" if hung else "; ".join(lines) or "no reason"))


@dataclass(frozen=True)
class Finished:
    """How a program ended: its exit code, and what it printed (at most some KiB)."""

    code: int
    output: str


def find(configured: str) -> Path | None:
    """The program: the configured path, else the first `criu` on PATH (and in sbin, which users rarely have there)."""
    if configured:
        path = Path(configured).expanduser()
        return path.absolute() if path.is_file() else None
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"))
    found = shutil.which("criu", path=places)
    return Path(found) if found is not None else None


async def run(command: Sequence[str], limit: float, *, cwd: Path | None = None) -> Finished:
    """Run a program in a process group of its own; raises TimeoutError after `limit` seconds, OSError.

    Whatever happens, also when the caller is cancelled, its whole group is ended before this returns.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        umask=0o077,
    )
    try:
        async with asyncio.timeout(limit):
            output, _ = await process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_QUICK):
                await process.wait()
        raise
    assert process.returncode is not None
    return Finished(process.returncode, output[-4096:].decode(errors="replace"))


class Criu:
    """One installed `criu`. `unprivileged`: this process is not root, so CRIU has to do with its capabilities."""

    def __init__(self, program: Path) -> None:
        self.program = program
        self.unprivileged = os.geteuid() != 0

    async def version(self) -> tuple[int, ...]:
        """Its version; empty when it does not say one. Raises OSError, TimeoutError."""
        done = await run([str(self.program), "--version"], _QUICK)
        found = re.search(r"Version:\s*([\d.]+)", done.output)
        return tuple(int(number) for number in found[1].split(".") if number) if found else ()

    async def dump(self, pid: int, images: Path, *, limit: float, log: Path) -> None:
        """Write the tree below `pid`, which is stopped and stays so, to the folder `images`. Raises CriuError.

        A failed dump leaves the processes as they were, unless CRIU had to be killed in the middle of it.
        """
        await self._run("dump", ["--tree", str(pid), "--leave-stopped", *_COMMON], images, limit, log)

    async def restore(self, images: Path, *, limit: float, log: Path, options: Sequence[str] = ()) -> None:
        """Bring the tree back, stopped as it was, its root as a child of this process. Raises CriuError.

        After a failure processes may be left half made: whoever knows their pids ends them.
        """
        await self._run("restore", ["--restore-detached", "--restore-sibling", *_COMMON, *options], images, limit, log)

    async def _run(self, action: str, options: list[str], images: Path, limit: float, log: Path) -> None:
        rights = ["--unprivileged"] if self.unprivileged else []
        folders = ["--images-dir", str(images), "--work-dir", str(log.parent), "--log-file", log.name]
        try:
            done = await run([str(self.program), action, *options, *rights, *folders], limit)
        except TimeoutError:
            raise CriuError(action, await asyncio.to_thread(_error_lines, log, ""), hung=True) from None
        except OSError as error:
            raise CriuError(action, [error.strerror or type(error).__name__]) from error
        if done.code != 0:
            raise CriuError(action, await asyncio.to_thread(_error_lines, log, done.output))


def _error_lines(log: Path, output: str) -> list[str]:
    """What the log calls an error, without times and source lines; its last lines where it calls nothing so."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LOG_TAIL))
            text = file.read().decode(errors="replace")
    except OSError:
        text = output
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error (" in line and "RLIMIT_NOFILE for self" not in line]
    return [_plain(line) for line in (errors or lines[-3:])][-20:]


def _plain(line: str) -> str:
    line = re.sub(r"^\([\d.]+\)\s*", "", line)
    line = re.sub(r"^\s*\d+:\s*", "", line)
    return re.sub(r"^Error \([^)]*\):\s*", "", line)
