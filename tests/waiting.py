# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Waiting for something to become true. The limit only ends a test that hangs; it decides nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: Seconds: generous, because the machine may be busy.
LIMIT = 90.0


def until(check: Callable[[], Any], what: str, limit: float = LIMIT) -> Any:
    """The first true value of `check`; fails the test when it stays false."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.03)
    raise AssertionError(f"never happened: {what}")
