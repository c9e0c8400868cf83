# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A notebook that is paused again, by a real server and the real command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import ServerProcess

SIZE = 40_000_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path).start()
    yield made
    made.clean_up()


def last_pause(server: ServerProcess, kernel: str) -> dict[str, Any]:
    row = server.row(kernel)
    assert row is not None
    report: dict[str, Any] = row["last_pause"]
    return report


def test_it_writes_little_and_the_older_checkpoint_may_be_deleted_while_its_pack_is_mapped(
    server: ServerProcess,
) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, f"import numpy as np; big = np.random.default_rng(1).integers(0, 255, {SIZE}, dtype='u1')")
    assert server.pause(kernel)["state"] == "done"
    first = last_pause(server, kernel)
    assert first["written"] > SIZE
    assert server.resume(kernel=kernel)["state"] == "done"
    server.run(kernel, "big[:1000] = 0; total = int(big.sum())")
    assert server.pause(kernel)["state"] == "done"
    second = last_pause(server, kernel)
    assert second["bytes"] > SIZE > 8 * second["written"] > 0
    assert server.resume(kernel=kernel)["state"] == "done"
    for identifier in (first["checkpoint"], second["checkpoint"]):
        command = [sys.executable, "-m", "jupyter_pause.cli", "delete", identifier]
        done = subprocess.run(command, env={**os.environ, **server.env}, capture_output=True, text=True, check=False)
        gone = not (server.checkpoints / "checkpoints" / identifier).exists()
        assert done.returncode == 0 or gone, done.stderr
    assert not list((server.checkpoints / "checkpoints").iterdir())
    assert server.run(kernel, "", "int(big.sum()) == total") == "True", "what is mapped needs no name"
    assert server.pause(kernel)["state"] == "done"
    assert last_pause(server, kernel)["written"] > SIZE, "there was nothing left to share with"
    assert server.resume(kernel=kernel)["state"] == "done"
    assert server.run(kernel, "", "int(big.sum()) == total") == "True"
