# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A CRIU that works here: without one these tests are skipped with the reason; in CI they fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import binaries
from tests.harness import ServerProcess


@pytest.fixture(scope="session")
def criu() -> Path:
    """The program, once it has restored a process here."""
    return binaries.criu()


@pytest.fixture
def server(tmp_path: Path, criu: Path) -> Iterator[ServerProcess]:
    """A server that takes snapshots."""
    process = ServerProcess(tmp_path, options=[f"--PauseApp.criu={criu}"])
    try:
        yield process.start()
    finally:
        process.clean_up()
