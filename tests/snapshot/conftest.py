# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A CRIU that works here: without one these tests are skipped with the reason; in CI they fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import binaries


@pytest.fixture(scope="session")
def criu() -> Path:
    """The program, once it has restored a process here."""
    return binaries.criu()
