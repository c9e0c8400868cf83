# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S23: a connection that a kernel kept is named before the pause, and fails at once when it is used afterwards."""

from __future__ import annotations

from tests.keepalive import KeepAliveServer

from .conftest import Driver


async def test_s23_a_kept_connection_is_named_before_and_fails_at_once_afterwards(driver: Driver) -> None:
    kernel = await driver.notebook()
    first = KeepAliveServer()
    await driver.run(kernel, f"import http.client\nconnection = http.client.HTTPConnection('127.0.0.1', {first.port})")
    ask = "connection.request('GET', '/')\nanswer = connection.getresponse().read().decode()"
    assert await driver.run(kernel, f"before = 41\n{ask}", "answer") == "'alive'"

    inventory = await driver.get("inventory", kernel=kernel, wait="30")
    lost = {item["name"]: item for item in inventory["connections"]}
    assert lost[f"127.0.0.1:{first.port}"]["fate"] == "lost", inventory["connections"]
    status, refused = await driver.error(driver.post("pause", kernels=[kernel]))
    assert (status, refused["code"]) == (422, "would_lose")
    assert "connection" in {loss["name"] for loss in refused["losses"]}, refused

    paused = await driver.pause(kernel, on_loss="accept")
    assert paused["state"] == "done", paused
    first.close()
    with KeepAliveServer(first.port):
        # Nobody but the program itself knows what that connection was for: it is not opened again by guess.
        resumed = await driver.resume(kernel=kernel)
        assert (resumed["state"], resumed["outcome"]) == ("done", "partial"), resumed
        content = await driver.reply(kernel, driver.send(kernel, ask))
        assert content["status"] == "error" and content["ename"] == "LostObjectError", content
        assert "connection" in content["evalue"]
        again = f"connection = http.client.HTTPConnection('127.0.0.1', {first.port})\n{ask}"
        assert await driver.run(kernel, again, "answer, before") == "('alive', 41)"


async def test_s23_a_resume_never_waits_for_a_server_that_is_gone(driver: Driver) -> None:
    kernel = await driver.notebook()
    with KeepAliveServer() as server:
        opened = f"import socket\nplain = socket.create_connection(('127.0.0.1', {server.port}))\nbefore = 41"
        await driver.run(kernel, opened)
        assert (await driver.pause(kernel, on_loss="accept"))["state"] == "done"
    resumed = await driver.resume(kernel=kernel)
    assert (resumed["state"], resumed["outcome"]) == ("done", "partial"), resumed
    content = await driver.reply(kernel, driver.send(kernel, "plain.recv(1)"))
    assert content["status"] == "error" and content["ename"] == "LostObjectError", content
    assert await driver.run(kernel, "", "before") == "41"
