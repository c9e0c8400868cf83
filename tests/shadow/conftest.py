# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The server and the driver of `tests/server`, with words for what a shadow load found."""

from __future__ import annotations

from typing import Any

from tests.server.conftest import Driver, driver, jp_server_config

__all__ = ["driver", "jp_server_config", "lost"]


async def lost(driver: Driver, kernel: str) -> dict[str, str]:
    """Begin a pause that may not lose anything, and refuse what it asks: path -> reason of each loss; {}: it paused."""
    operation = (await driver.post("pause", kernels=[kernel]))["operation"]

    async def asked() -> Any:
        now = await driver.get("operations", operation["id"])
        return now if now["state"] != "running" else None

    now = await driver.until(asked, "it asks or ends")
    if now["state"] == "done":
        return {}
    assert now["state"] == "needs_decision", now
    assert (await driver.row(kernel))["state"] == "pausing"
    await driver.post("operations", operation["id"], decision="refuse")
    assert (await driver.ended(now))["error"]["code"] == "would_lose"
    assert (await driver.row(kernel))["state"] == "running"
    return {loss["path"]: loss["reason"] for loss in now["question"]["losses"]}
