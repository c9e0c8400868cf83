# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Processes that save and load."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .engine import Process


@pytest.fixture
def secret() -> str:
    """The key of the test's store, as hex."""
    return secrets.token_hex(64)


@pytest.fixture
def start(tmp_path: Path, secret: str) -> Iterator[Callable[..., Process]]:
    """Starts processes that share one store."""
    made: list[Process] = []

    def make(python: str = sys.executable) -> Process:
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        made.append(Process(python, tmp_path / "store", secret, work))
        return made[-1]

    yield make
    for process in made:
        process.end()


@pytest.fixture
def again(start: Callable[..., Process]) -> Callable[..., Process]:
    """Saves a process, ends it, loads into a new one; returns that, with the load result in ``loaded``."""

    def bring_back(process: Process, python: str = sys.executable) -> Process:
        folder = process.save()
        process.end()
        new = start(python)
        result = new.load(folder)
        assert result["status"] == "ok", result
        new.loaded, new.folder = result, folder  # type: ignore[attr-defined]
        return new

    return bring_back
