# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A question at the terminal that the server was started from. Blocks: call it in a thread."""

from __future__ import annotations

import select
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds that an answer may take, and between two looks whether it is still wanted.
PATIENCE, LOOK = 20.0, 0.2


def ask(question: str, give_up: Callable[[], bool], patience: float = PATIENCE) -> bool | None:
    """True for yes (or just Enter), False for no, None when nobody answers, or nobody can."""
    if sys.platform == "win32" or sys.stdin is None or not sys.stdin.isatty():
        return None
    sys.stdout.write(f"{question} ([y]/n, {patience:.0f} s)? ")
    sys.stdout.flush()
    for _ in range(max(1, round(patience / LOOK))):
        if give_up():
            break
        ready, _, _ = select.select([sys.stdin], [], [], LOOK)
        if ready:
            return not sys.stdin.readline().strip().lower().startswith("n")
    sys.stdout.write("\n")
    return None
