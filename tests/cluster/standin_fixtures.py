# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The stand-in controller as a fixture. conftest.py of this folder makes it known."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .apiserver import ApiServer
from .standin.cluster import StandIn

#: Seconds between closing the gate and the snapshot: shorter than the add-on's own 3, long enough for closed sockets.
SETTLE = 0.5


@pytest.fixture
def standin(api_server: ApiServer, criu: Path, tmp_path: Path) -> Iterator[StandIn]:
    """Kubeflow, the add-on, GKE and a node, for a namespace of this test. Needs root and CRIU."""
    if os.geteuid() != 0:
        pytest.skip("containers are made by root")
    with StandIn(api_server, tmp_path / "standin", criu=criu, settle=SETTLE) as running:
        yield running
