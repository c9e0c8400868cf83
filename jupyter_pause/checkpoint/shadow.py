# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The process that tries a checkpoint out before the one that made it ends: started, watched, and ended by us.

What runs in it is `jupyter_pause/kernel/shadow.py`. It uses the kernel's interpreter and environment, has a folder of
its own inside the staging folder, and ends by itself when this server dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from jupyter_pause.kernel import layout

from .headroom import free_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from jupyter_pause.clock import Clock

SCRIPT = Path(__file__).parent.parent / "kernel" / "shadow.py"
#: The process's folder inside the staging folder, and the files in it (see kernel/shadow.py).
FOLDER, ANSWER, CURRENT = "shadow", "answer.json", "current"
#: Seconds between two looks at the process.
POLL = 0.05
#: Part of the free memory that it may take where no limit is set, and the least that is worth beginning with (bytes).
SHARE, LEAST_MEMORY = 0.5, 192 << 20
#: Bytes that the objects of a checkpoint take in memory, for each byte of their pickle: a list of small integers.
GROWTH = 4
#: The server's own variables that the process has no use for.
_NOT_HANDED_ON = ("JPY_PARENT_PID", "JUPYTER_PAUSE_LISTEN_FDS")


@dataclass(frozen=True)
class Limits:
    """`seconds` from the moment when everything is on disk; `memory` in bytes, 0: half of what is free."""

    seconds: float
    memory: int = 0


class NotTried(Exception):
    """It was not tried out, or not to its end: `code` says why, `params` more. The pause goes on.

    Codes: off, stopping, fallback, time, memory, no_interpreter, failed.
    """

    def __init__(self, code: str, **params: Any) -> None:
        super().__init__(code)
        self.code = code
        self.params = params


class ShadowProcess:
    """One such process. `start` before the kernel has written everything, `load` afterwards, `stop` in any case."""

    def __init__(self, argv: list[str], kernel_pid: int, staging: Path, limits: Limits, clock: Clock) -> None:
        """`argv`: the kernel's interpreter with its options."""
        self._argv = argv
        self._kernel_pid = kernel_pid
        self._staging = staging
        self._limits = limits
        self._clock = clock
        self._folder = staging / FOLDER
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def start(self) -> None:
        """Start it; it begins to import what the kernel has imported. Raises NotTried."""
        if not self._argv:
            raise NotTried("no_interpreter")
        memory = await asyncio.to_thread(self._memory)
        if memory < LEAST_MEMORY:
            raise NotTried("memory", limit=memory)
        environment = await asyncio.to_thread(self._environment)
        try:
            await asyncio.to_thread(layout.make_private_dir, str(self._folder))
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                str(SCRIPT),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment,
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            raise NotTried("no_interpreter", detail=error.strerror or type(error).__name__) from error
        await self._order(
            op="prepare",
            folder=str(self._folder),
            staging=str(self._staging),
            cloudpickle=_cloudpickle(),
            parent=os.getpid(),
        )

    async def load(self, manifest: dict[str, Any], hurried: Callable[[], bool]) -> dict[str, Any]:
        """Have it load what was read back, and wait; returns its answer (see kernel/tryout.py).

        `hurried` is looked at all the time: when it says so, no more is waited for. Raises NotTried.
        """
        memory = await asyncio.to_thread(self._memory)
        expected = GROWTH * sum(int(frame["bytes"]) for frame in manifest["frames"])
        if expected > memory:
            raise NotTried("memory", limit=memory, expected=expected)
        digest = hashlib.sha256(await asyncio.to_thread(layout.canonical_json, manifest)).hexdigest()
        await self._order(op="load", manifest=digest, memory=memory)
        await self._wait(memory, hurried)
        found = await asyncio.to_thread(_read_json, self._folder / ANSWER)
        if found is None:
            return await self._died()
        if found.get("status") != "ok":
            raise NotTried(*_reason(found))
        return found

    async def stop(self) -> None:
        """End it, whatever it is doing, and remove its folder. May be called at any time, and again."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if process is not None and process.stdin is not None:
            process.stdin.close()
        await asyncio.to_thread(shutil.rmtree, self._folder, True)

    # --- inside -------------------------------------------------------------------------------------------------

    def _environment(self) -> dict[str, str]:
        """What the kernel was started with; where the system does not tell, what this server has."""
        try:
            found = dict(psutil.Process(self._kernel_pid).environ()) or dict(os.environ)
        except (psutil.Error, OSError):
            found = dict(os.environ)
        return {name: value for name, value in found.items() if name not in _NOT_HANDED_ON}

    def _memory(self) -> int:
        free = free_memory()
        return min(self._limits.memory, free) if self._limits.memory > 0 else int(free * SHARE)

    async def _order(self, **order: Any) -> None:
        assert self._process is not None
        source = self._process.stdin
        assert source is not None
        with contextlib.suppress(ConnectionError):  # it has ended already: `_wait` finds out
            source.write(json.dumps(order).encode() + b"\n")
            await source.drain()

    async def _wait(self, memory: int, hurried: Callable[[], bool]) -> None:
        """Until it has ended by itself. Raises NotTried when it goes over a limit or nobody wants to wait."""
        assert self._process is not None
        began = self._clock.monotonic()
        ended = asyncio.ensure_future(self._process.wait())
        try:
            while not (await asyncio.wait({ended}, timeout=POLL))[0]:
                if hurried():
                    raise NotTried("stopping")
                if self._clock.monotonic() - began > self._limits.seconds:
                    variable = await asyncio.to_thread(self._current)
                    raise NotTried("time", seconds=self._limits.seconds, variable=variable)
                if await asyncio.to_thread(_own_memory, self._process.pid) > memory:
                    raise NotTried("memory", limit=memory, variable=await asyncio.to_thread(self._current))
        finally:
            ended.cancel()

    async def _died(self) -> dict[str, Any]:
        """It ended without an answer: loading one variable ends the process that does it, unless others ended it."""
        assert self._process is not None
        code = self._process.returncode or 0
        variable = await asyncio.to_thread(self._current)
        crashes = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGILL, -signal.SIGFPE}
        if variable is None or code not in crashes:
            raise NotTried("memory" if code == -signal.SIGKILL else "failed", detail=f"exit code {code}")
        reason = f"loading it ends the process that does it ({signal.Signals(-code).name})"
        loss = {"name": variable, "path": variable, "type": "", "reason": reason, "cell": None}
        return {"status": "ok", "losses": [loss], "unchecked": [], "compared": 0, "objects": 0, "unseen": 0}

    def _current(self) -> str | None:
        """The variable that it was loading last."""
        try:
            data = (self._folder / CURRENT).read_bytes()
        except OSError:
            return None
        length = int.from_bytes(data[:4], "little")
        return data[4 : 4 + length].decode("utf-8", "replace") if data[4:] else None


def _reason(found: dict[str, Any]) -> tuple[str]:
    return ("memory",) if found.get("code") == "memory" else ("failed",)


def _own_memory(pid: int) -> int:
    """Bytes that a process has for itself: mapped files are not counted."""
    try:
        info = psutil.Process(pid).memory_info()
    except psutil.Error:
        return 0
    return int(info.rss - getattr(info, "shared", 0))


def _cloudpickle() -> str:
    import cloudpickle

    return str(Path(cloudpickle.__file__).parent)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(layout.read_file(str(path), 1 << 28))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
