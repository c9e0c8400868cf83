# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The last part of the drill, where CRIU works: the same process comes back, with what no checkpoint can hold."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import psutil

from .channel import CellError, KernelChannel
from .report import Check
from .server import DrillServer, is_alive

#: Seconds until a process that was ended must be gone.
GONE_LIMIT = 10.0

PROMISES = {
    "exact.pause": "with an exact snapshot nothing is lost, so nobody is asked",
    "exact.gone": "the process has ended",
    "exact.resume": "the same process comes back and proves it",
    "exact.goes_on": "a generator and a thread go on where they were",
}
_BUILD = """
import os, threading, time
numbers = iter(range(1000))
while next(numbers) < 41:
    pass
ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.01)
thread = threading.Thread(target=tick, daemon=True)
thread.start()
"""


class ExactRound:
    """Runs on a server that takes snapshots. `check` is the drill's own."""

    def __init__(
        self, server: DrillServer, kernel: str, check: Callable[[str, str], AbstractContextManager[Check]]
    ) -> None:
        self._server = server
        self._kernel = kernel
        self._check = check

    def run(self) -> str:
        """Do it; returns what is to be said about snapshots here. Raises what a broken check raises."""
        self._server.stop()
        self._server.snapshots = "auto"
        self._server.start()
        kernel = self._server.jupyter("POST", "api/kernels", {"name": self._kernel})["id"]
        channel = KernelChannel(self._server.url, self._server.token, kernel)
        try:
            channel.run(_BUILD)
            outlook = self._server.api.get("inventory", kernel=kernel)["snapshot"]
            if not outlook["usable"]:
                return "not tried: " + "; ".join(reason["message"] for reason in outlook["reasons"])
            self._there_and_back(kernel, channel)
            return "tried"
        finally:
            channel.close()
            self._server.jupyter("DELETE", f"api/kernels/{kernel}")

    def _there_and_back(self, kernel: str, channel: KernelChannel) -> None:
        pid = int(str(channel.run("", expression="os.getpid()")))
        tree = self._server.remember_tree(pid)
        with self._check("exact.pause", PROMISES["exact.pause"]) as check:
            ended = self._ended(self._server.api.post("pause", body={"kernels": [kernel]})["operation"])
            report = self._row(kernel)["last_pause"]
            _require(report["snapshot"] is not None, str([one["message"] for one in report["snapshot_reasons"]]))
            check.measured = {"seconds": ended["elapsed"], "bytes": report["snapshot_bytes"]}
        with self._check("exact.gone", PROMISES["exact.gone"]) as check:
            psutil.wait_procs(tree, timeout=GONE_LIMIT)
            _require(not any(is_alive(process) for process in tree), "it is still there")
            check.detail = f"pid {pid}"
        with self._check("exact.resume", PROMISES["exact.resume"]) as check:
            ended = self._ended(self._server.api.post("resume", body={"kernel": kernel})["operation"])
            report = self._row(kernel)["last_resume"]
            _require(report["via"] == "snapshot" and report["proof"]["mark"], str(report.get("fallback")))
            _require(int(str(channel.run("", expression="os.getpid()"))) == pid, "it is another process")
            self._server.remember_tree(pid)
            check.measured = {"seconds": ended["elapsed"]}
        with self._check("exact.goes_on", PROMISES["exact.goes_on"]) as check:
            number = channel.run("before = ticks; time.sleep(0.3)", expression="(next(numbers), ticks > before)")
            _require(number == "(42, True)", f"it says {number}")
            check.detail = "42 comes after 41"

    def _ended(self, operation: dict[str, Any]) -> dict[str, Any]:
        ended = self._server.ended(operation)
        _require(ended["state"] == "done", f"the {ended['kind']} is {ended['state']}: {ended.get('error')}")
        return ended

    def _row(self, kernel: str) -> dict[str, Any]:
        rows = [row for row in self._server.api.get("state")["kernels"] if row["id"] == kernel]
        _require(bool(rows), "the kernel is not listed any more")
        row: dict[str, Any] = rows[0]
        return row


def _require(held: bool, seen: str) -> None:
    if not held:
        raise CellError(seen)
