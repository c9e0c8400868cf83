# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The part of the drill for machines with a GPU (`--gpu`): arrays on the device go to disk, its memory is free, they
come back. Untested on a GPU so far: tests run it with a stand-in for CuPy and for the driver.
"""

from __future__ import annotations

import ast
import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import psutil

from jupyter_pause.cli.output import size as in_words
from jupyter_pause.inventory.gpu import used_memory

from . import gpu_cells
from .channel import CellError, KernelChannel
from .report import Check
from .server import DrillServer

#: Seconds until the driver must show memory as free after its process has ended, and seconds between two looks.
FREED_LIMIT, LOOK = 15.0, 0.5
#: Of the arrays' bytes, what must be seen to come and go: others use the device meanwhile.
SEEN = 0.9

PROMISES = {
    "gpu.found": "a GPU is here and its driver tells how much memory is in use",
    "gpu.library": "the kernel has a library that computes on it",
    "gpu.build": "arrays are made on the device, and the driver shows their memory in use",
    "gpu.pause": "nothing of them would be lost, so nobody is asked",
    "gpu.freed": "the driver shows their memory as free",
    "gpu.resume": "the kernel comes back by its checkpoint, as restored",
    **{f"gpu.{name}": promise for name, promise in gpu_cells.PROMISES.items()},
}
EXACT = {"gpu.exact": "with an exact snapshot the same process comes back with the same arrays on the device"}
_NOT_FOUND = (
    "no GPU that NVIDIA's driver tells about: `nvidia-smi` must work here. Run it on the machine that has the GPU, or "
    "without --gpu, which needs none"
)
_NO_LIBRARY = (
    "neither PyTorch nor CuPy finds a GPU in the kernel `{kernel}`: install one of them with CUDA in that kernel's "
    "environment, or choose another kernel with --kernel"
)


class GpuRound:
    """`check` is the drill's own; `nvml` replaces the driver (tests); `size` is that of the arrays, in bytes."""

    def __init__(
        self,
        server: DrillServer,
        kernel: str,
        check: Callable[[str, str], AbstractContextManager[Check]],
        size: int,
        nvml: Any = None,
    ) -> None:
        self._server = server
        self._kernel = kernel
        self._check = check
        self._size = size
        self._nvml = nvml
        self._before_build = 0

    def look(self) -> None:
        """The first promise, before anything is started: without a GPU nothing here would prove anything."""
        with self._check("gpu.found", PROMISES["gpu.found"]) as check:
            used = self._devices()
            _require(bool(used), _NOT_FOUND)
            check.measured = dict(used)
            check.detail = ", ".join(f"{name}, {in_words(held)} in use" for name, held in used.items())

    def run(self) -> str:
        """By the checkpoint; returns the library that was used. Raises what a broken check raises."""
        kernel, channel = self._open()
        try:
            library = self._build(channel, "gpu.library", "gpu.build")
            pid, noted = self._probe(channel)
            self._pause(kernel, pid)
            self._freed(pid)
            self._resume(kernel)
            _, found = self._probe(channel)
            for name, promise in gpu_cells.PROMISES.items():
                with self._check(f"gpu.{name}", promise) as check:
                    old, new = noted[name], found.get(name, {})
                    _require("value" in old, f"it could not be noted before: {old.get('error')}")
                    _require(old == new, f"was {_short(old)}, is {_short(new)}")
                    check.detail = _short(new)
            return library
        finally:
            self._close(kernel, channel)

    def run_exactly(self) -> str:
        """The same by a snapshot, on a server that takes them; returns what is to be said about that here."""
        kernel, channel = self._open()
        try:
            channel.run(gpu_cells.build(self._library(channel), self._size))
            pid, noted = self._probe(channel)
            outlook = self._server.api.get("inventory", kernel=kernel)["snapshot"]
            if not outlook["usable"]:
                return "not tried: " + "; ".join(reason["message"] for reason in outlook["reasons"])
            with self._check("gpu.exact", EXACT["gpu.exact"]) as check:
                self._ended(self._server.api.post("pause", body={"kernels": [kernel]})["operation"])
                report = self._row(kernel)["last_pause"]
                _require(report["snapshot"] is not None, str([one["message"] for one in report["snapshot_reasons"]]))
                self._ended(self._server.api.post("resume", body={"kernel": kernel})["operation"])
                report = self._row(kernel)["last_resume"]
                _require(report["via"] == "snapshot" and report["proof"]["mark"], str(report.get("fallback")))
                again, found = self._probe(channel)
                _require(again == pid, f"process {pid} before, {again} now")
                _require(found == noted, "the arrays are not the same")
                check.detail = f"pid {pid}"
            return "tried"
        finally:
            self._close(kernel, channel)

    # --- steps --------------------------------------------------------------------------------------------------

    def _open(self) -> tuple[str, KernelChannel]:
        kernel = self._server.jupyter("POST", "api/kernels", {"name": self._kernel})["id"]
        return kernel, KernelChannel(self._server.url, self._server.token, kernel)

    def _close(self, kernel: str, channel: KernelChannel) -> None:
        channel.close()
        self._server.jupyter("DELETE", f"api/kernels/{kernel}")

    def _library(self, channel: KernelChannel) -> str:
        name = ast.literal_eval(str(channel.run(gpu_cells.LIBRARY, expression=gpu_cells.LIBRARY_EXPRESSION)))
        _require(name is not None, _NO_LIBRARY.format(kernel=self._kernel))
        return str(name)

    def _build(self, channel: KernelChannel, library_check: str, build_check: str) -> str:
        with self._check(library_check, PROMISES[library_check]) as check:
            library = check.detail = self._library(channel)
        with self._check(build_check, PROMISES[build_check]) as check:
            self._before_build = self._in_use()
            channel.run(gpu_cells.build(library, self._size))
            held = self._in_use() - self._before_build
            check.measured = {"device_bytes": held}
            _require(held >= SEEN * self._size, f"{in_words(max(held, 0))} more in use, for {in_words(self._size)}")
            check.detail = f"{in_words(held)} more in use"
        return library

    def _probe(self, channel: KernelChannel) -> tuple[int, dict[str, Any]]:
        """The process, and what is to be compared."""
        text = channel.run(gpu_cells.PROBE, expression=gpu_cells.PROBE_EXPRESSION, history=False)
        found: dict[str, Any] = json.loads(ast.literal_eval(str(text)))
        pid = int(found.pop("pid")["value"])
        self._server.remember_tree(pid)
        return pid, found

    def _pause(self, kernel: str, pid: int) -> None:
        with self._check("gpu.pause", PROMISES["gpu.pause"]) as check:
            tree = self._server.remember_tree(pid)
            ended = self._ended(self._server.api.post("pause", body={"kernels": [kernel]})["operation"])
            psutil.wait_procs(tree, timeout=FREED_LIMIT)
            written = self._row(kernel)["last_pause"]["bytes"]
            check.measured = {"seconds": ended["elapsed"], "bytes": written}
            check.detail = f"{in_words(written)} written in {ended['elapsed']:.1f} s"

    def _freed(self, pid: int) -> None:
        """Measured, not assumed: what came with the arrays must have gone again."""
        with self._check("gpu.freed", PROMISES["gpu.freed"]) as check:
            end = time.monotonic() + FREED_LIMIT
            while (left := self._in_use() - self._before_build) > (1 - SEEN) * self._size and time.monotonic() < end:
                time.sleep(LOOK)
            check.measured = {"left": left}
            check.detail = f"{in_words(max(left, 0))} more in use than before the arrays were made; process {pid} ended"
            _require(left <= (1 - SEEN) * self._size, check.detail)

    def _resume(self, kernel: str) -> None:
        with self._check("gpu.resume", PROMISES["gpu.resume"]) as check:
            ended = self._ended(self._server.api.post("resume", body={"kernel": kernel})["operation"])
            report = self._row(kernel)["last_resume"]
            lost = [loss["path"] for loss in report["losses"]]
            _require(report["outcome"] == "restored", f"it says {report['outcome']}: {', '.join(lost)}")
            check.measured = {"seconds": ended["elapsed"]}

    # --- looking ------------------------------------------------------------------------------------------------

    def _devices(self) -> dict[str, int]:
        return asyncio.run(used_memory(nvml=self._nvml))

    def _in_use(self) -> int:
        """Bytes on all devices, of all processes."""
        return sum(self._devices().values())

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


def _short(answer: dict[str, Any]) -> str:
    """Digests in eight digits; they are only good for comparing."""
    value = answer.get("value", answer.get("error", "nothing"))
    parts = value if isinstance(value, list) else [value]
    return ", ".join(part[:8] if isinstance(part, str) and len(part) == 64 else str(part) for part in parts)
