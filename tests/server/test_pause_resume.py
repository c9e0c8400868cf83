# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Pause and resume over REST, with a real server and real kernels."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import psutil
from tornado.httpclient import HTTPClientError

from .conftest import Driver


async def test_S01_state_comes_back_in_place_and_the_process_was_gone(driver: Driver) -> None:
    kernel = await driver.notebook()
    token = await driver.run(kernel, "import uuid; token = uuid.uuid4().hex; data = list(range(10**6))", "token")
    counter = int(await driver.run(kernel, "ip = get_ipython()", "ip.execution_count"))  # S03: the shell in a variable
    pid = driver.pid(kernel)

    paused = await driver.pause(kernel)
    assert paused["state"] == "done", paused
    row = await driver.row(kernel)
    assert row["state"] == "paused"
    assert row["last_pause"]["process_gone"] and row["last_pause"]["rss_before"] > 10_000_000
    assert not psutil.pid_exists(pid)

    resumed = await driver.resume(kernel=kernel)
    assert resumed["state"] == "done" and resumed["outcome"] == "restored", resumed
    row = await driver.row(kernel)
    assert row["state"] == "ready"
    report = row["last_resume"]
    assert report["via"] == "checkpoint" and report["proof"]["signature"] and report["proof"]["compared"] >= 2
    assert driver.pid(kernel) != pid
    assert await driver.run(kernel, "", "token") == token
    assert await driver.run(kernel, "", "len(data), data[-1]") == "(1000000, 999999)"
    assert int(await driver.run(kernel, "pass", "ip.execution_count")) == counter + 1

    async def checked() -> bool:
        proof = (await driver.row(kernel))["last_resume"]["proof"]["buffers"]
        return bool(proof["state"] == "ok")

    await driver.until(checked, "raw buffers are checked")

    async def used() -> bool:
        return bool((await driver.row(kernel))["state"] == "running")

    await driver.until(used, "the first cell makes it running")


async def test_a_cell_sent_while_paused_runs_after_the_resume(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "value = 20")
    await driver.pause(kernel)
    message = driver.send(kernel, "value += 1")
    await driver.resume(kernel=kernel)
    assert (await driver.reply(kernel, message))["status"] == "ok"
    assert await driver.run(kernel, "", "value") == "21"


async def test_S04_what_would_be_lost_is_refused_then_named_after_the_resume(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "a = 1; f = lambda: a + 1; g = (i for i in range(3)); import socket; s = socket.socket()")
    status, error = await driver.error(driver.post("pause", kernels=[kernel]))
    assert status == 422 and error["code"] == "would_lose"
    assert {loss["name"] for loss in error["losses"]} == {"g", "s"}
    assert (await driver.row(kernel))["state"] == "running"
    assert await driver.run(kernel, "", "next(g)") == "0"

    assert (await driver.pause(kernel, on_loss="accept"))["state"] == "done"
    resumed = await driver.resume(kernel=kernel)
    assert resumed["outcome"] == "partial"
    report = (await driver.row(kernel))["last_resume"]
    assert {loss["name"] for loss in report["losses"]} == {"g", "s"} and all(
        loss["reason"] for loss in report["losses"]
    )
    assert await driver.run(kernel, "", "(a, f())") == "(1, 2)"
    message = driver.send(kernel, "next(g)")
    reply = await driver.reply(kernel, message)
    assert reply["status"] == "error" and "generator" in reply["evalue"]


async def test_two_who_ask_at_once_are_both_told_what_would_be_lost(driver: Driver) -> None:
    """The second was told of an operation that was refused a moment later: it looked for it, and it was not there."""
    kernel = await driver.notebook()
    await driver.run(kernel, "g = (i for i in range(3))")
    both = await asyncio.gather(*(driver.error(driver.post("pause", kernels=[kernel])) for _ in range(2)))
    assert [(status, error["code"]) for status, error in both] == [(422, "would_lose")] * 2
    assert [[loss["name"] for loss in error["losses"]] for _, error in both] == [["g"]] * 2


async def test_two_who_ask_at_once_get_one_operation(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "a = 1")
    asked = (driver.post("pause", kernels=[kernel]) for _ in range(2))
    both = await asyncio.gather(*asked, return_exceptions=True)
    [begun] = [answer["operation"] for answer in both if not isinstance(answer, BaseException)]
    [refused] = [answer for answer in both if isinstance(answer, HTTPClientError)]
    assert refused.response is not None
    error = json.loads(refused.response.body)
    assert (refused.code, error["code"], error["operation"]) == (409, "operation_in_progress", begun["id"])
    assert (await driver.ended(begun))["state"] == "done"


async def test_S04_without_its_checkpoint_a_kernel_is_never_called_restored(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "a = 1")
    paused = await driver.pause(kernel)
    await driver.delete("checkpoints", paused["checkpoint"], force="true")
    status, error = await driver.error(driver.post("resume", kernel=kernel))
    assert status == 409 and error["code"] == "checkpoint_missing"
    assert (await driver.row(kernel))["state"] == "paused"


async def test_losses_found_after_a_busy_kernel_went_idle_are_asked(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "import time, os")
    flag, begun = driver.store.parent / "go", driver.store.parent / "begun"
    code = f"open({str(begun)!r}, 'w').close()\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.02)\n"
    message = driver.send(kernel, code + "gen = (i for i in 'ab')")

    async def busy() -> bool:
        return begun.exists()

    await driver.until(busy, "the cell runs")
    status, error = await driver.error(driver.post("pause", kernels=[kernel], when_busy="refuse"))
    assert (status, error["code"]) == (409, "kernel_busy")
    operation = (await driver.post("pause", kernels=[kernel]))["operation"]
    status, error = await driver.error(driver.post("pause", kernels=[kernel]))
    assert (status, error["code"], error["operation"]) == (409, "operation_in_progress", operation["id"])
    flag.touch()
    await driver.reply(kernel, message)

    async def asked() -> object:
        now = await driver.get("operations", operation["id"])
        return now if now["state"] == "needs_decision" else None

    now = await driver.until(asked, "the question is asked")
    assert [loss["path"] for loss in now["question"]["losses"]] == ["gen"]
    late = driver.send(kernel, "lost = 1")
    assert (await driver.reply(kernel, late))["status"] == "aborted"
    await driver.post("operations", operation["id"], decision="refuse")
    ended = await driver.ended(operation)
    assert ended["state"] == "failed" and ended["error"]["code"] == "would_lose"
    assert (await driver.row(kernel))["state"] == "running"
    assert await driver.run(kernel, "", "next(gen)") == "'a'"
    assert not list((driver.store / "checkpoints").glob("*")) and not list((driver.store / "staging").glob("*"))


async def test_cancel_puts_the_kernel_back_to_work(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "import time; kept = 7")
    message = driver.send(kernel, "time.sleep(2)")
    operation = (await driver.post("pause", kernels=[kernel]))["operation"]
    cancelled = await driver.delete("operations", operation["id"])
    assert cancelled["state"] == "cancelled"
    await driver.reply(kernel, message)
    assert await driver.run(kernel, "", "kept") == "7"
    assert (await driver.row(kernel))["state"] == "running"
    assert not list((driver.store / "checkpoints").glob("*"))
    status, error = await driver.error(driver.delete("operations", operation["id"]))
    assert (status, error["code"]) == (409, "too_late")
    assert (await driver.pause(kernel))["state"] == "done"


async def test_pausing_twice_and_resuming_twice_change_nothing(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "x = 1")
    first = await driver.pause(kernel)
    again = await driver.pause(kernel)
    assert again["state"] == "done" and again["checkpoint"] == first["checkpoint"]
    results = await asyncio.gather(
        driver.post("resume", kernel=kernel), driver.post("resume", kernel=kernel), return_exceptions=True
    )
    assert sum(1 for r in results if isinstance(r, dict)) >= 1
    operation = next(r for r in results if isinstance(r, dict))["operation"]
    assert (await driver.ended(operation))["outcome"] == "restored"
    assert await driver.run(kernel, "", "x") == "1"
    status, error = await driver.error(driver.post("resume", kernel=kernel))
    assert (status, error["code"]) == (409, "not_paused")


async def test_S17_a_failed_resume_can_be_repeated(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "x = 5")
    paused = await driver.pause(kernel)
    frames = driver.store / "checkpoints" / paused["checkpoint"] / "frames.bin"
    good = frames.read_bytes()
    frames.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    status, error = await driver.error(driver.post("resume", kernel=kernel))
    assert (status, error["code"]) == (409, "damaged")
    assert (await driver.row(kernel))["state"] == "paused"
    frames.write_bytes(good)
    assert (await driver.resume(kernel=kernel))["outcome"] == "restored"
    assert await driver.run(kernel, "", "x") == "5"


async def test_S17_a_killed_kernel_offers_its_last_checkpoint(driver: Driver) -> None:
    kernel = await driver.notebook("killed.ipynb")
    await driver.run(kernel, "x = 5")
    paused = await driver.pause(kernel)
    await driver.resume(kernel=kernel)
    await driver.run(kernel, "x = 6")
    os.kill(driver.pid(kernel), 9)
    rows = (await driver.get("checkpoints"))["checkpoints"]
    assert rows[0]["id"] == paused["checkpoint"] and rows[0]["created"] and rows[0]["signature_ok"]
    resumed = await driver.resume(checkpoint=paused["checkpoint"], path="copy.ipynb")
    assert resumed["outcome"] == "restored"
    assert await driver.run(resumed["kernels"][0], "", "x") == "5"


async def test_S29_an_older_checkpoint_is_offered_not_taken(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "x = 'old'")
    old = (await driver.pause(kernel))["checkpoint"]
    await driver.resume(kernel=kernel)
    await driver.run(kernel, "x = 'new'")
    new = (await driver.pause(kernel))["checkpoint"]
    frames = driver.store / "checkpoints" / new / "frames.bin"
    data = bytearray(frames.read_bytes())
    data[len(data) // 2] ^= 1
    frames.write_bytes(data)
    status, error = await driver.error(driver.post("resume", kernel=kernel))
    assert status == 409 and error["code"] == "damaged" and error["params"]["checkpoint"] == new
    assert [c["id"] for c in error["params"]["older"]] == [old] and error["params"]["older"][0]["created"]
    assert (await driver.row(kernel))["state"] == "paused"
    resumed = await driver.resume(kernel=kernel, checkpoint=old)
    assert resumed["outcome"] == "restored"
    assert await driver.run(kernel, "", "x") == "'old'"


async def test_S49_a_replaced_payload_is_never_loaded(driver: Driver, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    kernel = await driver.notebook()
    await driver.run(kernel, "x = 1")
    paused = await driver.pause(kernel)
    evil = f"cos\nsystem\n(S'touch {marker}'\ntR.".encode()
    (driver.store / "checkpoints" / paused["checkpoint"] / "frames.bin").write_bytes(evil)
    status, error = await driver.error(driver.post("resume", kernel=kernel))
    assert status == 409 and error["code"] in ("damaged", "incomplete")
    manifest = driver.store / "checkpoints" / paused["checkpoint"] / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"cause":"user"', b'"cause":"evil"'))
    status, error = await driver.error(driver.post("resume", kernel=kernel))
    assert (status, error["code"]) == (409, "signature_mismatch")
    assert not marker.exists()
    assert (await driver.row(kernel))["state"] == "paused"


async def test_kill_of_the_kernel_while_saving_leaves_no_half_checkpoint(driver: Driver) -> None:
    kernel = await driver.notebook()
    slow = "import time\nclass Slow:\n    def __getstate__(self):\n        time.sleep(30); return {}\nslow = Slow()\n"
    await driver.run(kernel, slow)
    operation = (await driver.post("pause", kernels=[kernel], on_loss="accept"))["operation"]

    async def writing() -> bool:
        return bool(list((driver.store / "staging").glob("*/progress.json")))

    await driver.until(writing, "the kernel began to save")
    os.kill(driver.pid(kernel), 9)
    ended = await driver.ended(operation)
    assert ended["state"] == "failed" and ended["error"]["code"] == "kernel_died"
    assert not list((driver.store / "checkpoints").glob("*")) and not list((driver.store / "staging").glob("*"))
    assert (await driver.row(kernel))["state"] == "running"


async def test_unwritable_folder_is_said_before_anything_happens(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "x = 1")
    driver.serverapp.web_app.settings["jupyter_pause_pauser"].settings.checkpoint_dir = Path("/proc/nowhere")
    status, error = await driver.error(driver.post("pause", kernels=[kernel]))
    assert (status, error["code"]) == (409, "unwritable")
    state = await driver.get("state")
    assert not state["can_pause"] and state["blocked_by"][0]["code"] == "unwritable"
    assert await driver.run(kernel, "", "x") == "1"
