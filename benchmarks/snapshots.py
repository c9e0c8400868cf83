# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Process snapshots beside the raw disk, in one run: how many times as long as writing or reading the same bytes?

    python benchmarks/snapshots.py [--criu PROGRAM] [--mib 256 1024] [--rounds 3] [--folder FOLDER] [--json FILE]

A process holds random bytes and has a thread. Each round takes its snapshot (dump, sync, digests, signature), writes
and syncs as many raw bytes, reads those, verifies the snapshot, restores it, and asks the process for an answer.
Medians over the rounds; ratios are taken within a round, since disks of shared machines change their pace.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from jupyter_pause.clock import SystemClock
from jupyter_pause.processes import KernelProcesses, RestoredProcess, start_time
from jupyter_pause.snapshot.availability import Availability
from jupyter_pause.snapshot.engine import SnapshotEngine, Subject, wake

PROGRAM = """
import os, sys, threading, time
data = os.urandom(1 << 20) * int(sys.argv[1])
def work():
    while True:
        time.sleep(0.01)
threading.Thread(target=work, daemon=True).start()
open("ready", "w").close()
while not os.path.exists("ask"):
    time.sleep(0.001)
open("answer", "w").write(str(len(data)))
while True:
    time.sleep(1)
"""
BLOCK = 1 << 22


async def timed(work: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    """Seconds, and what it returned."""
    began = time.monotonic()
    result = await work()
    return time.monotonic() - began, result


def write_raw(path: Path, size: int) -> None:
    """Write and sync bytes that no file system can compress."""
    block = os.urandom(BLOCK)
    with path.open("wb") as file:
        for _ in range(size // BLOCK):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())


def read_raw(path: Path) -> None:
    """Read them; they are in the system's cache, as the snapshot is."""
    with path.open("rb", buffering=0) as file:
        while file.read(BLOCK):
            pass


def wait_for(path: Path) -> None:
    """Wait for a file."""
    while not path.exists():
        time.sleep(0.001)


def start(work: Path, mib: int) -> subprocess.Popen[bytes]:
    """The process, once it has its bytes."""
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(mib)],
        cwd=work,
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
        start_new_session=True,
    )
    wait_for(work / "ready")
    return process


async def one_round(engine: SnapshotEngine, folder: Path, mib: int) -> dict[str, float]:
    """Seconds of each step."""
    work = Path(tempfile.mkdtemp(dir=folder))
    process = await asyncio.to_thread(start, work, mib)

    async def stopped() -> None:
        return

    subject = Subject(process.pid, "benchmark", "", None, "tcp", [], None, None, None, stopped, lambda: None)
    found: dict[str, float] = {}
    found["take"], frozen = await timed(lambda: engine.take(subject, lambda done, total: None))
    manifest = frozen.manifest
    process.kill()
    process.wait()
    raw = folder / "raw"
    found["raw_write"], _ = await timed(lambda: asyncio.to_thread(write_raw, raw, manifest.bytes))
    found["raw_read"], _ = await timed(lambda: asyncio.to_thread(read_raw, raw))
    raw.unlink()
    _, criu = await engine.check(manifest.id)
    found["verify"], _ = await timed(lambda: engine.verify(manifest, lambda done, total: None))

    async def restore_and_ask() -> None:
        await engine.restore(manifest, criu)
        wake(manifest.running)
        (work / "ask").touch()
        await asyncio.to_thread(wait_for, work / "answer")

    found["restore"], _ = await timed(restore_and_ask)
    started = start_time(manifest.pid)
    assert started is not None
    restored = RestoredProcess(manifest.pid, started)
    KernelProcesses.find(manifest.pid, manifest.pid, started).kill()
    while restored.poll() is None:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    engine.store.delete(manifest.id)
    found["bytes"] = manifest.bytes
    return found


async def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row per size."""
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        (folder / "secret").write_text("ab" * 64)
        availability = Availability(
            mode="auto", configured=options.criu, cache=folder / "criu.json", now=time.time, log=logging.getLogger()
        )
        engine = SnapshotEngine(folder, folder / "secret", availability, SystemClock(), logging.getLogger())
        verdict = await availability.wait()
        if verdict.reason is not None:
            sys.exit(verdict.reason.message)
        for mib in options.mib:
            rounds = [await one_round(engine, folder, mib) for _ in range(options.rounds)]
            row = {key: round(statistics.median(one[key] for one in rounds), 3) for key in rounds[0]}
            ratios = {
                "take_to_raw_write": [one["take"] / one["raw_write"] for one in rounds],
                "verify_and_restore_to_raw_read": [
                    (one["verify"] + one["restore"]) / one["raw_read"] for one in rounds
                ],
            }
            row.update({key: round(statistics.median(values), 2) for key, values in ratios.items()})
            rows.append({"mib": mib, **row})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> int:
    """Print a line of JSON per size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--criu", default="", help="the program (default: the one on PATH)")
    parser.add_argument("--mib", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=None, help="on the disk to measure (default: the temporary folder)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = asyncio.run(measure(options))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
