# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A real server with the extension, and a few words to drive its kernels."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client import BlockingKernelClient
from tornado.httpclient import HTTPClientError

LIMIT = 60.0


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_pause": True}, "allow_unauthenticated_access": False},
        "PauseApp": {"checkpoint_dir": str(tmp_path / "checkpoints"), "save_timeout": 0.5},
    }


class Driver:
    """What a person's frontend does, over REST and ZMQ."""

    def __init__(self, fetch: Callable[..., Awaitable[Any]], serverapp: Any) -> None:
        self._fetch = fetch
        self.serverapp = serverapp
        self.clients: dict[str, BlockingKernelClient] = {}

    @property
    def store(self) -> Path:
        return Path(self.serverapp.config["PauseApp"]["checkpoint_dir"])

    async def get(self, *path: str, **params: str) -> Any:
        response = await self._fetch("jupyter-pause", "api", *path, params=params)
        return json.loads(response.body)

    async def post(self, *path: str, **body: Any) -> Any:
        response = await self._fetch("jupyter-pause", "api", *path, method="POST", body=json.dumps(body))
        return json.loads(response.body) if response.body else None

    async def delete(self, *path: str, **params: str) -> Any:
        response = await self._fetch("jupyter-pause", "api", *path, method="DELETE", params=params)
        return json.loads(response.body) if response.body else None

    async def error(self, call: Awaitable[Any]) -> tuple[int, dict[str, Any]]:
        with pytest.raises(HTTPClientError) as caught:
            await call
        assert caught.value.response is not None
        return caught.value.code, json.loads(caught.value.response.body)

    async def notebook(self, path: str = "a.ipynb", kernel_name: str = "python3") -> str:
        body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": kernel_name}}
        response = await self._fetch("api", "sessions", method="POST", body=json.dumps(body))
        kernel_id: str = json.loads(response.body)["kernel"]["id"]
        return kernel_id

    def client(self, kernel_id: str) -> BlockingKernelClient:
        """A client with sockets of its own: what another process would use."""
        if kernel_id not in self.clients:
            client = BlockingKernelClient()
            client.load_connection_file(self.serverapp.kernel_manager.get_kernel(kernel_id).connection_file)
            client.start_channels(hb=False)
            self.clients[kernel_id] = client
        return self.clients[kernel_id]

    def send(self, kernel_id: str, code: str) -> str:
        message: str = self.client(kernel_id).execute(code)
        return message

    async def reply(self, kernel_id: str, message: str) -> dict[str, Any]:
        client = self.client(kernel_id)
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            # Not asyncio.to_thread: it hands this loop's context to the thread, and the client would use it.
            loop = asyncio.get_running_loop()
            got = await loop.run_in_executor(None, lambda: client.get_shell_msg(timeout=LIMIT))
            if got["parent_header"].get("msg_id") == message:
                content: dict[str, Any] = got["content"]
                return content
        raise AssertionError("no reply")

    async def run(self, kernel_id: str, code: str, expression: str = "None") -> str:
        message = self.client(kernel_id).execute(code, user_expressions={"value": expression})
        content = await self.reply(kernel_id, message)
        assert content["status"] == "ok", content
        value = content["user_expressions"]["value"]
        assert value["status"] == "ok", value
        text: str = value["data"]["text/plain"]
        return text

    async def row(self, kernel_id: str) -> dict[str, Any]:
        rows = (await self.get("state"))["kernels"]
        return next(row for row in rows if row["id"] == kernel_id)

    async def until(self, check: Callable[[], Awaitable[Any]], what: str) -> Any:
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            value = await check()
            if value:
                return value
            await asyncio.sleep(0.05)
        raise AssertionError(f"never happened: {what}")

    async def ended(self, operation: dict[str, Any]) -> dict[str, Any]:
        async def look() -> Any:
            now = await self.get("operations", operation["id"])
            return now if now["state"] not in ("running", "needs_decision") else None

        record: dict[str, Any] = await self.until(look, "the operation ends")
        return record

    async def pause(self, kernel_id: str, **options: Any) -> dict[str, Any]:
        answer = await self.post("pause", kernels=[kernel_id], **options)
        return await self.ended(answer["operation"])

    async def resume(self, **body: Any) -> dict[str, Any]:
        answer = await self.post("resume", **body)
        return await self.ended(answer["operation"])

    def pid(self, kernel_id: str) -> int:
        pid: int = self.serverapp.kernel_manager.get_kernel(kernel_id).provisioner.kernel_pid
        return pid


@pytest.fixture
def driver(jp_fetch: Any, jp_serverapp: Any, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Driver]:
    # The real server runs the start hook once HTTP is up; pytest-jupyter does not.
    jp_asyncio_loop.run_until_complete(jp_serverapp.extension_manager.start_all_extensions())
    made = Driver(jp_fetch, jp_serverapp)
    yield made
    for client in made.clients.values():
        client.stop_channels()

    async def stop() -> None:
        await jp_serverapp.extension_manager.stop_all_extensions()
        await jp_serverapp.kernel_manager.shutdown_all(now=True)

    jp_asyncio_loop.run_until_complete(stop())
