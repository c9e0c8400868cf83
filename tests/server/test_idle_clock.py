# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S10: what came back is not idle since before its pause. Cullers believe `GET /api/status`; looking moves nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jupyter_pause.states import ResumeRequest
from jupyter_pause.workspace.intent import IntentFile
from jupyter_pause.workspace.pauser import WorkspacePauser, WorkspaceSettings
from jupyter_pause.workspace.thaw import PodIdentity

from .conftest import Driver

THREE_DAYS = timedelta(days=3)
HOUR = timedelta(hours=1)


def make_old(serverapp: Any, age: timedelta = THREE_DAYS) -> datetime:
    """As if nobody had used the server for so long; returns the moment of the last use."""
    at = datetime.now(UTC) - age
    settings, kernels = serverapp.web_app.settings, serverapp.kernel_manager
    for name in [key for key in settings if key.endswith("_last_activity")]:
        settings[name] = at
    settings["started"] = kernels.last_kernel_activity = at
    settings["last_activity_times"].clear()
    for kernel_id in kernels.list_kernel_ids():
        kernels.get_kernel(kernel_id).last_activity = at
    return at


async def at_rest(driver: Driver, *kernels: str) -> None:
    """The last cell's `idle` has come too: it counts as activity."""
    manager = driver.serverapp.kernel_manager

    async def idle() -> bool:
        return all(manager.get_kernel(kernel).execution_state == "idle" for kernel in kernels)

    await driver.until(idle, "the kernels are idle")


async def last_activity(jp_fetch: Any) -> datetime:
    """What a culler reads."""
    body = json.loads((await jp_fetch("api", "status")).body)
    return datetime.fromisoformat(body["last_activity"].replace("Z", "+00:00"))


async def test_s10_a_resume_starts_the_idle_clock_anew(driver: Driver, jp_fetch: Any) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "x = 1")
    await driver.pause(kernel)
    old = make_old(driver.serverapp)
    assert abs(await last_activity(jp_fetch) - old) < timedelta(seconds=1), "the case is set up"

    # As the server itself resumes (`apply_checkpoints`): no request of a person that would count as activity.
    pauser = driver.serverapp.web_app.settings["jupyter_pause_pauser"]
    before = datetime.now(UTC)
    operation = await pauser.resume(ResumeRequest(kernel=kernel))
    ended = await pauser.operations.ended(operation.id)
    assert (ended.state, ended.outcome) == ("done", "restored"), ended
    assert driver.serverapp.web_app.settings["jupyter_pause_last_activity"] >= before
    assert await last_activity(jp_fetch) >= before
    model = json.loads((await jp_fetch("api", "kernels", kernel)).body)
    assert datetime.fromisoformat(model["last_activity"].replace("Z", "+00:00")) >= before


async def test_s09_s10_looking_never_moves_the_idle_clock(driver: Driver, jp_fetch: Any) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "x = 1")
    await driver.pause(kernel)
    operation = await driver.resume(kernel=kernel)
    other = await driver.notebook("b.ipynb")
    await driver.pause(other)
    await driver.run(kernel, "x += 1")
    await at_rest(driver, kernel)
    old = make_old(driver.serverapp)
    for _ in range(3):
        await driver.get("state")
        await driver.get("checkpoints")
        await driver.get("operations", operation["id"])
        await driver.get("inventory", kernel=kernel)
        await driver.get("inventory", kernel=other)
        await driver.serverapp.web_app.settings["jupyter_pause_pauser"].tick()
    assert await last_activity(jp_fetch) == old


async def test_s10_the_idle_culler_is_no_danger_to_kernels_that_wake_up_days_later(
    driver: Driver, tmp_path: Path
) -> None:
    manager = driver.serverapp.kernel_manager
    manager.cull_idle_timeout, manager.cull_connected = int(HOUR.total_seconds()), True
    kept, forgotten = await driver.notebook("a.ipynb"), await driver.notebook("b.ipynb")
    workspace = WorkspacePauser(
        pauser=driver.serverapp.web_app.settings["jupyter_pause_pauser"],
        owner=None,  # type: ignore[arg-type]  # nobody is asked here
        intents=IntentFile(tmp_path),
        identity=PodIdentity(None),
        settings=WorkspaceSettings(),
    )
    for kernel in (kept, forgotten):
        await driver.run(kernel, "x = 1")
    await at_rest(driver, kept, forgotten)
    workspace.keep_from_culler([kept])
    make_old(driver.serverapp)
    await manager.cull_kernels()  # the first thing that happens after a thaw may be this
    assert manager.list_kernel_ids() == [kept]

    await workspace.unhold([kept])
    assert "cull_idle_timeout" not in manager.get_kernel(kept).kernel_spec.metadata
    await manager.cull_kernels()
    assert manager.list_kernel_ids() == [kept], "its idle clock began anew"
    manager.get_kernel(kept).last_activity -= 2 * HOUR
    await manager.cull_kernels()
    assert manager.list_kernel_ids() == [], "and it is culled as ever"
