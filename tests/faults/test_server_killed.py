# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""kill -9 of the server at any moment of a pause or a resume: the next server has the kernel or its checkpoint.

The delay only chooses the moment; what must hold afterwards is the same for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import ServerProcess, until

#: About 80 MB, and 0.6 s inside the capture and inside the load, so that every phase lasts long enough to be hit.
STATE = """
import time, os
class Slow:
    def __init__(self): self.value = 42
    def __getstate__(self): time.sleep(0.6); return self.__dict__
    def __setstate__(self, state): time.sleep(0.6); self.__dict__.update(state)
slow = Slow(); token = os.urandom(16).hex(); big = bytearray(os.urandom(1 << 20) * 80)
"""
DELAYS = [0.0, 0.3, 0.6, 0.9, 1.2, 1.6]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path).start()
    yield made
    made.clean_up()


def _whole_again(server: ServerProcess, kernel: str, token: str) -> None:
    """The promise: the running kernel or a complete checkpoint, never neither; nothing sticks; no half file counts."""
    server.start()

    def settled() -> dict[str, Any] | None:
        row = server.row(kernel)
        return row if row is not None and row["state"] != "unknown" else None

    row = until(settled, "the kernel is known again")
    assert row["state"] in ("running", "paused"), row
    if row["state"] == "paused":
        resumed = server.resume(kernel=kernel)
        assert resumed["state"] == "done" and resumed["outcome"] == "restored", resumed
    assert server.run(kernel, "", "token, slow.value, len(big)") == repr((token, 42, 80 << 20))
    assert all(entry["damaged"] is None for entry in server.api("GET", "checkpoints")["checkpoints"])
    until(lambda: not list((server.checkpoints / "staging").glob("*")), "nothing half written is left")


@pytest.mark.parametrize("delay", DELAYS)
def test_killed_while_pausing(server: ServerProcess, delay: float) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    token = server.run(kernel, STATE, "token").strip("'")
    server.api("POST", "pause", {"kernels": [kernel]})
    time.sleep(delay)
    server.kill()
    _whole_again(server, kernel, token)


@pytest.mark.parametrize("delay", DELAYS[::2])
def test_killed_while_resuming(server: ServerProcess, delay: float) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    token = server.run(kernel, STATE, "token").strip("'")
    assert server.pause(kernel)["state"] == "done"
    server.api("POST", "resume", {"kernel": kernel})
    time.sleep(delay)
    server.kill()
    _whole_again(server, kernel, token)
