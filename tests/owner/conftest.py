# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A real Jupyter Server with our provisioner alone (no state machine), its kernels, and WebSockets to them."""

from __future__ import annotations

import asyncio
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from tornado.websocket import WebSocketClientConnection

from jupyter_pause.launch import KernelEvent, LaunchSettings, set_launch_settings
from jupyter_pause.provisioner import PROVISIONER_NAME, PauseProvisioner

LIMIT = 60.0


@pytest.fixture
def jp_server_config() -> dict[str, Any]:
    return {"KernelProvisionerFactory": {"default_provisioner_name": PROVISIONER_NAME}}


async def until(check: Callable[[], Any], what: str) -> Any:
    """The first true value of `check`; fails the test when it stays false."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        await asyncio.sleep(0.02)
    raise AssertionError(f"never happened: {what}")


class Socket:
    """A frontend's WebSocket to one kernel."""

    def __init__(self, connection: WebSocketClientConnection) -> None:
        self.connection = connection
        self.closed = False

    def send(self, code: str) -> str:
        """Send a cell; returns the message id."""
        message_id = uuid.uuid4().hex
        header = {"msg_id": message_id, "msg_type": "execute_request", "session": "s", "username": "", "version": "5.4"}
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        self.connection.write_message(json.dumps(message))
        return message_id

    async def reply(self, message_id: str) -> tuple[dict[str, Any], str]:
        """The reply's content, and what the cell printed until it was idle."""
        printed, content = "", None
        idle = False
        while content is None or not idle:
            raw = await asyncio.wait_for(self.connection.read_message(), LIMIT)
            if raw is None:
                self.closed = True
                raise AssertionError("the WebSocket was closed")
            message = json.loads(raw)
            if message["parent_header"].get("msg_id") != message_id:
                continue
            if message["msg_type"] == "execute_reply":
                content = message["content"]
            elif message["msg_type"] == "stream":
                printed += message["content"]["text"]
            elif message["msg_type"] == "status":
                idle = message["content"]["execution_state"] == "idle"
        return content, printed

    async def run(self, code: str) -> str:
        """Run a cell; returns what it printed."""
        content, printed = await self.reply(self.send(code))
        assert content["status"] == "ok", content
        return printed.strip()


class Bench:
    """Kernels of the server under test, with what happened to them."""

    def __init__(self, serverapp: Any, fetch: Any, ws_fetch: Any, events: list[KernelEvent]) -> None:
        self.serverapp = serverapp
        self.fetch = fetch
        self._ws_fetch = ws_fetch
        self.events = events
        self._sockets: list[Socket] = []

    async def notebook(self, path: str = "a.ipynb") -> str:
        body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        response = await self.fetch("api", "sessions", method="POST", body=json.dumps(body))
        kernel_id: str = json.loads(response.body)["kernel"]["id"]
        return kernel_id

    async def socket(self, kernel_id: str) -> Socket:
        made = Socket(await self._ws_fetch("api", "kernels", kernel_id, "channels"))
        self._sockets.append(made)
        return made

    async def close(self) -> None:
        """Close the WebSockets and end the kernels."""
        for made in self._sockets:
            made.connection.close()
        await self.serverapp.kernel_manager.shutdown_all(now=True)

    def manager(self, kernel_id: str) -> Any:
        return self.serverapp.kernel_manager.get_kernel(kernel_id)

    def provisioner(self, kernel_id: str) -> PauseProvisioner:
        found = self.manager(kernel_id).provisioner
        assert isinstance(found, PauseProvisioner)
        return found

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


@pytest.fixture
def launch_settings(tmp_path: Path) -> Any:
    import cloudpickle

    (tmp_path / "secret").write_text("00" * 64)
    settings = LaunchSettings(
        server_pid=os.getpid(),
        server_start_time=psutil.Process().create_time(),
        socket=None,
        cloudpickle_dir=str(Path(cloudpickle.__file__).parent),
        checkpoint_dir=str(tmp_path),
        secret_file=str(tmp_path / "secret"),
    )
    set_launch_settings(settings)
    yield settings
    set_launch_settings(None)


@pytest.fixture
def bench(
    launch_settings: LaunchSettings, jp_serverapp: Any, jp_fetch: Any, jp_ws_fetch: Any, jp_asyncio_loop: Any
) -> Iterator[Bench]:
    KernelProvisionerFactory.clear_instance()
    events: list[KernelEvent] = []
    launch_settings.listeners.append(events.append)
    made = Bench(jp_serverapp, jp_fetch, jp_ws_fetch, events)
    yield made
    jp_asyncio_loop.run_until_complete(made.close())
    KernelProvisionerFactory.clear_instance()
