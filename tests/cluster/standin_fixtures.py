# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The stand-in controller as a fixture. conftest.py of this folder makes it known."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .apiserver import ApiServer
from .standin.cluster import StandIn

#: Seconds between closing the gate and the snapshot: shorter than the add-on's own 3, long enough for closed sockets.
SETTLE = 0.5


@pytest.fixture
def standin_folder() -> Iterator[Path]:
    """A folder with a short name, gone after the test: snapshots are large."""
    with tempfile.TemporaryDirectory(prefix="jupyter-pause-standin-") as folder:
        yield Path(folder)


@pytest.fixture
def standin(api_server: ApiServer, criu: Path, standin_folder: Path) -> Iterator[StandIn]:
    """Kubeflow, the add-on, GKE and a node, for a namespace of this test. Needs root and CRIU."""
    if os.geteuid() != 0:
        pytest.skip("containers are made by root")
    with StandIn(api_server, standin_folder, criu=criu, settle=SETTLE) as running:
        yield running
