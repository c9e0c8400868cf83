# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""IPython's banner must not draw from the person's random numbers.

IPython 9 picks a tip for its banner with `random.choice`, each time a client asks who the kernel is: a browser that
reconnects after a resume would move the state of `random` that was just put back. One tip per process is enough.
"""

from __future__ import annotations

import random
import sys


def keep_one_tip() -> None:
    """Pick a tip now without touching the state of `random`, and show that one from now on."""
    module = sys.modules.get("IPython.core.interactiveshell")
    pick = getattr(module, "pick_tip", None)
    if module is None or pick is None:
        return
    state = random.getstate()
    try:
        tip = pick()
    finally:
        random.setstate(state)
    module.pick_tip = lambda: tip  # type: ignore[attr-defined]
