# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Old checkpoints go, and never one that something still stands on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jupyter_pause.checkpoint.store import StoredCheckpoint
from jupyter_pause.retention import RetentionPolicy, expired

from .conftest import Driver

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Manifest:
    """The two fields that decide."""

    def __init__(self, kernel_id: str, days: float) -> None:
        self.kernel_id = kernel_id
        self.created = NOW - timedelta(days=days)


def entry(name: str, kernel: str, days: float, size: int = 10, **more: Any) -> StoredCheckpoint:
    fields = {"signature_ok": True, "damaged": None, **more}
    return StoredCheckpoint(name, Manifest(kernel, days), bytes_on_disk=size, **fields)  # type: ignore[arg-type]


STORE = [
    entry("a1", "a", 1),
    entry("a2", "a", 2),
    entry("a3", "a", 30),
    entry("b1", "b", 40),
    entry("b2", "b", 50, damaged="incomplete"),
    entry("b3", "b", 60, signature_ok=False),
    StoredCheckpoint("unreadable", None, False, "damaged", 10),
]


@pytest.mark.parametrize(
    ("policy", "used", "gone"),
    [
        (RetentionPolicy(), set(), {}),
        (RetentionPolicy(per_kernel=2), set(), {"a3": "replaced"}),
        (RetentionPolicy(per_kernel=1), {"a3"}, {"a2": "replaced"}),
        (RetentionPolicy(age=10 * 86400), set(), {"a3": "too_old", "b1": "too_old"}),
        (RetentionPolicy(age=10 * 86400), {"b1"}, {"a3": "too_old"}),
        (RetentionPolicy(room=70), set(), {}),
        (RetentionPolicy(room=60), set(), {"a3": "over_budget"}),
        (RetentionPolicy(room=60), {"a3"}, {"a2": "over_budget"}),
        (RetentionPolicy(room=1), set(), {"a2": "over_budget", "a3": "over_budget"}),
        (RetentionPolicy(per_kernel=2, room=60), set(), {"a3": "replaced"}),
    ],
)
def test_what_goes_and_why(policy: RetentionPolicy, used: set[str], gone: dict[str, str]) -> None:
    assert {one.id: one.why for one in expired(STORE, policy, used, NOW)} == gone


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any]) -> dict[str, Any]:
    jp_server_config["PauseApp"]["keep_checkpoints"] = 2
    return jp_server_config


async def test_replaced_checkpoints_are_deleted_and_what_a_paused_kernel_stands_on_stays(driver: Driver) -> None:
    other = await driver.notebook("other.ipynb")
    await driver.run(other, "kept = 7")
    await driver.pause(other)
    kernel = await driver.notebook("a.ipynb")
    made: list[str] = []
    for number in range(4):
        await driver.run(kernel, f"value = {number}")
        assert (paused := await driver.pause(kernel))["state"] == "done", paused
        made.append((await driver.row(kernel))["checkpoint"]["id"])
        if number < 3:
            await driver.resume(kernel=kernel)

    async def cleaned() -> bool:
        return {row["id"] for row in await ids()} == set(made[-2:])

    async def ids() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = (await driver.get("checkpoints"))["checkpoints"]
        return [row for row in rows if row["path"] == "a.ipynb"]

    await driver.until(cleaned, "only the two newest are left")
    folders = {folder.name for folder in (driver.store / "checkpoints").iterdir()}
    assert not folders & set(made[:-2])
    for one, code, value in ((kernel, "value", "3"), (other, "kept", "7")):
        assert (await driver.resume(kernel=one))["outcome"] == "restored"
        assert await driver.run(one, "", code) == value
