# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A shadow load has limits, can be cancelled and has no effect outside; what was not checked is said."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from jupyter_pause.clock import SystemClock
from tests.server.conftest import Driver

from .processes import ENDLESS, trying

GROWS = (
    "class Grows:\n    def __init__(self): self.a = 1\n"
    "    def __setstate__(self, state):\n        self.parts = []\n"
    "        while True: self.parts.append(b'x' * (1 << 22))\ngrows = Grows()"
)
#: Refused in the shadow load, done on a resume.
ASKS = """
import socket, pathlib, subprocess
class Asks:
    def __init__(self, how): self.how = how
    def __setstate__(self, state):
        self.__dict__.update(state)
        how, where = self.how
        if how == "connects": socket.create_connection(("127.0.0.1", where)).close()
        elif how == "writes": pathlib.Path(where).write_text("written")
        elif how == "starts": subprocess.run(["touch", where], check=True)
        elif how == "reads": self.text = open(where).read()
        elif how == "swallows":
            try: pathlib.Path(where).unlink()
            except OSError: pass
"""


@pytest.fixture
def options() -> dict[str, Any]:
    """What the server is started with; a test's `parametrize` may say otherwise."""
    return {}


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    return {**jp_server_config, "PauseApp": {**jp_server_config["PauseApp"], **options}}


async def paused_unchecked(driver: Driver, kernel: str) -> dict[str, Any]:
    """Pause; see `unchecked`."""
    return await unchecked(driver, kernel, (await driver.post("pause", kernels=[kernel]))["operation"])


async def unchecked(driver: Driver, kernel: str, operation: dict[str, Any]) -> dict[str, Any]:
    """The report of a pause whose checkpoint was not checked, which is the same everywhere."""
    ended = await driver.ended(operation)
    assert ended["state"] == "done", ended
    report: dict[str, Any] = (await driver.row(kernel))["last_pause"]["shadow"]
    assert report == ended["shadow"]
    folder = driver.store / "checkpoints" / ended["checkpoint"]
    assert not (folder / "shadow").exists()
    assert trying(driver.store) == []
    manifest = await driver.get("checkpoints", ended["checkpoint"])
    assert manifest["shadow"]["code"] == report["code"]
    assert report["state"] == "not_checked"
    return report


class Later(SystemClock):
    """The system's clock, which a test can put forward."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


async def test_loading_that_never_ends_is_given_up_and_said(driver: Driver) -> None:
    clock = Later()
    driver.serverapp.web_app.settings["jupyter_pause_pauser"].clock = clock
    kernel = await driver.notebook()
    await driver.run(kernel, ENDLESS)
    operation = (await driver.post("pause", kernels=[kernel]))["operation"]

    async def loading() -> bool:
        read_back = (await driver.get("operations", operation["id"]))["phase"] == "rehearsing"
        current = list((driver.store / "staging").glob("*/shadow/current"))
        return bool(read_back and current and current[0].read_bytes()[4:].startswith(b"endless"))

    await driver.until(loading, "it is at the variable that never ends")
    clock.ahead = 61.0
    report = await unchecked(driver, kernel, operation)
    assert report["code"] == "time"
    assert report["params"] == {"seconds": 60.0, "variable": "endless"}


@pytest.mark.parametrize("options", [{"shadow_load_memory": 256 << 20}])
async def test_loading_that_takes_too_much_memory_is_given_up_and_said(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, GROWS)
    report = await paused_unchecked(driver, kernel)
    assert report["code"] == "memory"


@pytest.mark.parametrize("options", [{"shadow_load_memory": 1 << 20}])
async def test_too_little_memory_to_begin_with_is_said(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "a = 1")
    assert (await paused_unchecked(driver, kernel))["code"] == "memory"


@pytest.mark.parametrize("options", [{"shadow_load": False}])
async def test_switched_off_is_said(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "a = 1")
    assert (await paused_unchecked(driver, kernel))["code"] == "off"


async def test_cancelled_while_it_is_tried_out(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, ENDLESS)
    operation = (await driver.post("pause", kernels=[kernel]))["operation"]

    async def rehearsing() -> bool:
        now = await driver.get("operations", operation["id"])
        assert now["state"] == "running"
        return bool(now["phase"] == "rehearsing" and trying(driver.store))

    await driver.until(rehearsing, "the checkpoint is tried out")
    assert (await driver.row(kernel))["phase"] == "rehearsing"
    await driver.delete("operations", operation["id"])
    assert (await driver.ended(operation))["state"] == "cancelled"
    assert trying(driver.store) == []
    assert list((driver.store / "staging").iterdir()) == []
    assert (await driver.row(kernel))["state"] == "running"
    assert await driver.run(kernel, "", "len(endless)") == "1"


async def test_nothing_outside_is_touched_and_what_wants_to_is_not_called_lost(driver: Driver, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("there")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        kernel = await driver.notebook()
        await driver.run(kernel, ASKS)
        port = listening.getsockname()[1]
        await driver.run(
            kernel,
            f"connects = [Asks(('connects', {port}))]; writes = Asks(('writes', {str(tmp_path / 'new')!r}))\n"
            f"starts = Asks(('starts', {str(tmp_path / 'new')!r})); swallows = Asks(('swallows', {str(kept)!r}))\n"
            f"import os; os.chdir({str(tmp_path)!r}); reads = Asks(('reads', 'kept'))",
        )
        paused = await driver.pause(kernel)
        assert paused["state"] == "done", paused
        assert paused["shadow"]["state"] == "checked"
        told = {loss["name"]: loss["reason"] for loss in paused["shadow"]["unchecked"]}
        assert sorted(told) == ["connects", "reads", "starts", "writes"]
        assert "network" in told["connects"]
        assert "process" in told["starts"]
        assert not (tmp_path / "new").exists()
        assert kept.read_text() == "there"
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()
