# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A real API server for the session, a namespace for each test, and CRIU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from . import binaries, resources
from .apiserver import ApiServer
from .standin_fixtures import standin, standin_folder  # noqa: F401  fixtures


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """kube-apiserver over etcd with RBAC on, serving the CRDs of crds/. It is everybody's: do not kill or pause it."""
    server = ApiServer(binaries.api_server())
    try:
        server.start()
        resources.install(server)
        yield server
    finally:
        server.stop()


@pytest.fixture
def own_api_server() -> Iterator[ApiServer]:
    """An API server without CRDs that this test may kill, pause and start again. Starting it takes some seconds."""
    server = ApiServer(binaries.api_server())
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture
def namespace(api_server: ApiServer) -> str:
    """A new namespace."""
    return api_server.namespace()


@pytest.fixture(scope="session")
def criu() -> Path:
    """CRIU 4.2 or newer that has dumped and restored a process on this machine."""
    return binaries.criu()
