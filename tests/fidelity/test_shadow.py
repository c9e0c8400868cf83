# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What the table calls equal or rebuilt is never called a loss by the load that a pause makes for trying."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.conftest import Driver
from tests.shadow.conftest import driver, jp_server_config, lost

from .objects import FAMILIES
from .test_table import HERE

__all__ = ["driver", "jp_server_config"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("family", HERE)
async def test_no_false_alarm(driver: Driver, family: str, tmp_path: Path) -> None:
    kernel = await driver.notebook()
    work = tmp_path / "work"
    work.mkdir()
    cells = [f"import os\nos.chdir({str(work)!r})"]
    cells += [
        case.own(f"_{number:03d}").setup + "\nNone"
        for number, case in enumerate(FAMILIES[family])
        if case.fate != "lost"
    ]
    for cell in cells:
        await driver.run(kernel, cell)
    assert await lost(driver, kernel) == {}
