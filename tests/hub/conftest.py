# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Hubs of a test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .hub import Hub

StartHub = Callable[..., Hub]


@pytest.fixture
def start_hub(tmp_path: Path) -> Iterator[StartHub]:
    made: list[Hub] = []

    def start(scopes: list[str] | None = None) -> Hub:
        made.append(Hub(tmp_path / f"hub{len(made)}", scopes))
        return made[-1].start()

    yield start
    for hub in made:
        hub.clean_up()
