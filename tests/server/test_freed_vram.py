# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S43: freed GPU memory is measured, not assumed. The stub plays the driver; the kernel and its end are real."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from jupyter_pause.cli.commands import _paused_sentence
from jupyter_pause.inventory import gpu
from tests.inventory.test_gpu import GIB, StubNvml, device

from .conftest import Driver


class Card(StubNvml):
    """One GPU with memory that the kernel's process holds, and some that somebody else does."""

    def __init__(self, pid: int, *, of_kernel: int, of_others: int) -> None:
        super().__init__(device())
        self.pid, self.of_kernel, self.of_others = pid, of_kernel, of_others

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any:
        used = self.of_others + (self.of_kernel if psutil.pid_exists(self.pid) else 0)
        return SimpleNamespace(used=used, total=140 * GIB)


@pytest.mark.parametrize(
    ("of_kernel", "of_others", "said"),
    [
        (20 * GIB, 3 * GIB, "GPU 0 (NVIDIA H200): 23.0 GiB in use before, 3.0 GiB after."),
        (0, 23 * GIB, "GPU 0 (NVIDIA H200): 23.0 GiB in use before, 23.0 GiB after, not less."),
    ],
)
async def test_s43_both_numbers_are_measured(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, of_kernel: int, of_others: int, said: str
) -> None:
    kernel = await driver.notebook()
    card = Card(driver.pid(kernel), of_kernel=of_kernel, of_others=of_others)
    monkeypatch.setattr(gpu, "_import_nvml", lambda: card)
    assert (await driver.pause(kernel))["state"] == "done"
    row = await driver.row(kernel)
    (measured,) = row["last_pause"]["vram"]
    assert (measured["before"], measured["after"]) == (of_kernel + of_others, of_others)
    assert said in _paused_sentence(row)
