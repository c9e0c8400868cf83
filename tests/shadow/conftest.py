# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The server and the driver of `tests/server`, with words for what a shadow load found."""

from __future__ import annotations

import json
from typing import Any

from tornado.httpclient import HTTPClientError

from tests.server.conftest import Driver, driver, jp_server_config

__all__ = ["driver", "jp_server_config", "lost"]


async def lost(driver: Driver, kernel: str) -> dict[str, str]:
    """Begin a pause that may not lose anything, and refuse what it asks: path -> reason of each loss; {}: it paused.

    What a look at the namespace shows is refused before the pause begins; that is named in time too.
    """
    try:
        operation = (await driver.post("pause", kernels=[kernel]))["operation"]
    except HTTPClientError as refused:
        answer = json.loads(refused.response.body if refused.response is not None else b"{}")
        return {loss["path"]: loss["reason"] for loss in answer["losses"]}

    async def asked() -> Any:
        now = await driver.get("operations", operation["id"])
        return now if now["state"] != "running" else None

    now = await driver.until(asked, "it asks or ends")
    if now["state"] == "done":
        return {}
    assert now["state"] == "needs_decision", now["error"]
    assert (await driver.row(kernel))["state"] == "pausing"
    await driver.post("operations", operation["id"], decision="refuse")
    assert (await driver.ended(now))["error"]["code"] == "would_lose"
    assert (await driver.row(kernel))["state"] == "running"
    return {loss["path"]: loss["reason"] for loss in now["question"]["losses"]}
