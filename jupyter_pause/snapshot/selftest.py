# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Whether CRIU works here, found out by doing it: a small process is dumped and restored, and shows its token.

`criu check` is no answer: versions that pass it have failed to dump, or hung in the restore.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pause.clock import SYSTEM_CLOCK

from .criu import MINIMUM, Criu, CriuError
from .rights import SETCAP, rights_of
from .sentences import reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from jupyter_pause.states import Reason

KEEPER = Path(__file__).with_name("keeper.py")
#: Seconds for each step. A restore without the capabilities that it needs hangs for good.
LIMIT = 30.0
_LOOK = 0.02


async def self_test(criu: Criu, *, limit: float = LIMIT) -> Reason | None:
    """None when a process was dumped and came back with its memory; else why not. Leaves nothing behind."""
    try:
        version = await criu.version()
    except (OSError, TimeoutError) as error:
        return reason("criu_not_runnable", detail=getattr(error, "strerror", None) or type(error).__name__)
    lacking = await asyncio.to_thread(_rights, criu)
    if lacking is not None:
        return lacking
    failed = await _try(criu, limit)
    if failed is not None and version < MINIMUM:
        return reason("criu_too_old", version=".".join(map(str, version)) or "?")
    return failed


def _rights(criu: Criu) -> Reason | None:
    try:
        rights = rights_of(criu.program)
    except (OSError, KeyError, ValueError):
        return None  # the test itself will tell
    if rights.no_new_privileges:
        return reason("criu_no_new_privileges")
    if rights.missing:
        names = list(rights.missing)
        return reason("criu_missing_capabilities", capabilities=names, setcap=SETCAP, program=str(criu.program))
    return None


async def _try(criu: Criu, limit: float) -> Reason | None:
    with tempfile.TemporaryDirectory(prefix="jupyter-pause-criu-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "images").mkdir(mode=0o700)
        try:
            keeper = await asyncio.to_thread(_start, folder)
        except OSError as error:
            return reason("criu_test_failed", detail=error.strerror or type(error).__name__)
        try:
            return await _there_and_back(criu, keeper, folder, limit)
        except CriuError as error:
            what = f"criu_{error.action}_{'hung' if error.hung else 'failed'}"
            return reason(what, detail="; ".join(error.lines[-2:]), seconds=round(limit))
        except TimeoutError:
            return reason("criu_test_failed", detail="the small process does not answer")
        finally:
            await asyncio.to_thread(_end, keeper)


async def _there_and_back(criu: Criu, keeper: subprocess.Popen[bytes], folder: Path, limit: float) -> Reason | None:
    images = folder / "images"
    await _until((folder / "mark").exists, limit)
    await criu.dump(keeper.pid, images, limit=limit, log=folder / "dump.log")
    keeper.kill()
    await asyncio.to_thread(keeper.wait)
    await criu.restore(images, limit=limit, log=folder / "restore.log")
    (folder / "ask").touch()
    await _until((folder / "answer").exists, limit)
    token = hashlib.sha256((folder / "answer").read_bytes()).hexdigest()
    return None if token == (folder / "mark").read_text() else reason("criu_wrong_memory")


def _start(folder: Path) -> subprocess.Popen[bytes]:
    nothing = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(KEEPER)],
        cwd=folder,
        env={"PATH": os.defpath},
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
        start_new_session=True,
    )


async def _until(check: Callable[[], bool], limit: float) -> None:
    end = SYSTEM_CLOCK.monotonic() + limit
    while not check():
        if SYSTEM_CLOCK.monotonic() > end:
            raise TimeoutError
        await asyncio.sleep(_LOOK)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End our child: the one we started, or the one that was restored under its pid after that had ended."""
    if process.poll() is None:
        process.kill()
        process.wait()
    with contextlib.suppress(ChildProcessError, ProcessLookupError):
        if os.waitpid(process.pid, os.WNOHANG) == (0, 0):
            os.kill(process.pid, signal.SIGKILL)
            os.waitpid(process.pid, 0)
