# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A kernel without a watchdog of ours ends with its server, as any kernel of Jupyter does (Linux)."""

from __future__ import annotations

import ctypes
import signal
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: linux/prctl.h
_PR_SET_PDEATHSIG = 1


def end_with_parent() -> Callable[[], object]:
    """For `preexec_fn`: the system sends SIGTERM when the process that started it is gone. Loaded before the fork."""
    return partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, int(signal.SIGTERM))
