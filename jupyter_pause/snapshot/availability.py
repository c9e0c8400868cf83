# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Whether process snapshots can be had here: asked for once, tested in the background, remembered on disk.

Nothing is looked for before somebody asks, so that a server starts as fast as without. What was found holds as long
as program, Linux kernel, user and rights are the same.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from jupyter_pause.launch import read_private_json, write_private_json
from jupyter_pause.states import Reason

from . import criu as programs
from .criu import Criu
from .selftest import self_test
from .sentences import reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

Mode = Literal["auto", "on", "off"]

#: Seconds for which a failure is believed before it is tried again: rights and limits outside our key may change.
_RETRY_FAILURE = 24 * 3600.0
_VERSION = 1


@dataclass(frozen=True)
class Verdict:
    """`criu` is there when it works. Else `reason` says why not; `known` False: it is still being found out."""

    criu: Criu | None
    reason: Reason | None
    known: bool = True


class Availability:
    """Finds CRIU and tests it, at most once at a time."""

    def __init__(
        self,
        *,
        mode: Mode,
        configured: str,
        cache: Path,
        now: Callable[[], float],
        log: Any,
        test: Callable[[Criu], Awaitable[Reason | None]] = self_test,
    ) -> None:
        """`cache`: file for the last verdict. `now`: seconds since the epoch. Makes nothing and looks for nothing."""
        self.mode = mode
        self._configured = configured
        self._cache = cache
        self._now = now
        self._log = log
        self._test = test
        self._verdict: Verdict | None = None
        self._task: asyncio.Task[Verdict] | None = None

    def known(self) -> Verdict | None:
        """What is known now, without looking for anything; None when nobody asked yet."""
        return self._verdict or self._without_looking()

    def promising(self) -> bool:
        """Whether it works, or may turn out to: there is a program, and it is being tested. On the event loop only."""
        known = self.known()
        if known is not None:
            return known.criu is not None
        if programs.find(self._configured) is None:
            return False
        self._begin()
        return True

    def verdict(self) -> Verdict:
        """What is known now; never waits. Where nothing is known yet the test begins in the background."""
        if self._verdict is not None:
            return self._verdict
        certain = self._without_looking()
        if certain is not None:
            return certain
        self._begin()
        return Verdict(None, reason("snapshots_testing"), known=False)

    async def wait(self) -> Verdict:
        """The verdict, once it is there (about a second when it has to be tested)."""
        if self._verdict is not None:
            return self._verdict
        certain = self._without_looking()
        return certain if certain is not None else await asyncio.shield(self._begin())

    async def stop(self) -> None:
        """End a test that is under way."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _without_looking(self) -> Verdict | None:
        if self.mode == "off":
            return Verdict(None, reason("snapshots_off"))
        if not sys.platform.startswith("linux"):
            return Verdict(None, reason("snapshots_not_linux"))
        return None

    def _begin(self) -> asyncio.Task[Verdict]:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._find_out())
        return self._task

    async def _find_out(self) -> Verdict:
        try:
            self._verdict = await self._look()
        except Exception as error:
            self._log.exception("jupyter-pause: the self-test of criu could not be run")
            self._verdict = Verdict(None, reason("criu_test_failed", detail=type(error).__name__))
        return self._verdict

    async def _look(self) -> Verdict:
        program = await asyncio.to_thread(programs.find, self._configured)
        if program is None:
            return Verdict(None, reason("criu_not_there" if self._configured else "criu_absent"))
        criu = Criu(program)
        key = await asyncio.to_thread(_key, program)
        remembered = await asyncio.to_thread(self._remembered, key)
        if remembered is not None:
            return Verdict(criu if remembered.reason is None else None, remembered.reason)
        why = await self._test(criu)
        self._log.info("jupyter-pause: process snapshots: %s", why.code if why is not None else "criu works here")
        content = {"version": _VERSION, "key": key, "at": self._now(), "reason": why and why.model_dump(mode="json")}
        try:
            await asyncio.to_thread(write_private_json, self._cache, content)
        except OSError as error:
            self._log.info("jupyter-pause: the verdict on criu is not remembered: %s", error.strerror)
        return Verdict(criu if why is None else None, why)

    def _remembered(self, key: dict[str, Any]) -> Verdict | None:
        content = read_private_json(self._cache)
        if content is None or content.get("version") != _VERSION or content.get("key") != key:
            return None
        if content.get("reason") is None:
            return Verdict(None, None)
        if not isinstance(content.get("at"), (int, float)) or self._now() - content["at"] > _RETRY_FAILURE:
            return None
        return Verdict(None, Reason.model_validate(content["reason"]))


def _key(program: Path) -> dict[str, Any]:
    """What the verdict depends on: a changed program, Linux kernel, user or set of rights is tested anew."""
    status = program.stat()
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        lines = [line.split() for line in file if line.startswith(("CapEff", "CapBnd", "NoNewPrivs", "Seccomp:"))]
    try:
        capabilities = os.getxattr(program, "security.capability").hex()
    except OSError:
        capabilities = ""
    return {
        "program": str(program),
        "size": status.st_size,
        "changed": status.st_mtime_ns,
        "capabilities": capabilities,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "user": os.geteuid(),
        "rights": [" ".join(words) for words in lines],
    }
