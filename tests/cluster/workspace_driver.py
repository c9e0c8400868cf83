# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A workspace with jupyter-pause in the stand-in's pod, and what a person's tab does with it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import websocket

from .standin.cluster import StandIn
from .standin.notebook import NotebookClient, command

#: A cell whose values live in memory only.
SECRET_CELL = "import os, secrets; token = secrets.token_hex(8); data = list(range(10**5)); print(token, os.getpid())"
API = "jupyter-pause/api/"


class Workspace:
    """One workspace `w`: its tab and its owner."""

    def __init__(self, standin: StandIn, name: str = "w") -> None:
        self.standin = standin
        self.name = name
        self.tab = NotebookClient(standin.url(name))

    @classmethod
    def start(cls, standin: StandIn, *options: str, name: str = "w", **more: Any) -> Workspace:
        """A new one, Running, whose server knows its owner and has made its checks."""
        program = command(*options, "--PauseApp.save_timeout=0.5", application="jupyter_server")
        standin.create_workspace(name, program, **more)
        standin.wait_for_state(name, "Running", limit=120)
        made = cls(standin, name)
        made.wait_for(lambda state: state["mode"] == "cluster" and not made.is_looking(state), "the owner is known")
        return made

    @staticmethod
    def is_looking(state: dict[str, Any]) -> bool:
        """Whether the checks before the click are still being made."""
        return any(reason["code"] == "not_looked_yet" for reason in state["blocked_by"])

    def close(self) -> None:
        """Close the tab."""
        self.tab.close()

    def state(self) -> dict[str, Any]:
        """`GET state`."""
        found: dict[str, Any] = self.tab.request("GET", API + "state")
        return found

    def wait_for(self, check: Any, what: str, limit: float = 120.0) -> dict[str, Any]:
        """The first state of which `check` is true; a server that is away is waited for too."""

        def look() -> dict[str, Any] | None:
            with contextlib.suppress(httpx.HTTPError):
                found = self.state()
                return found if check(found) else None
            return None

        try:
            found = self.standin.wait_for(look, what, limit)
        except AssertionError as error:
            last: object = None
            with contextlib.suppress(httpx.HTTPError):
                last = self.state()
            log = self.standin.log(self.name)[-4000:]
            raise AssertionError(f"{error}\n{json.dumps(last, indent=1)}\n{log}") from None
        assert found is not None
        return found

    def notebook(self, path: str = "a.ipynb") -> str:
        """A notebook's session; returns its kernel."""
        body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        kernel: str = self.tab.request("POST", "api/sessions", body)["kernel"]["id"]
        return kernel

    def ask(self, **options: Any) -> dict[str, Any]:
        """`POST pause` for the whole workspace; returns the operation, or the error's body with its `status`."""
        try:
            answer = self.tab.request("POST", API + "pause", {"scope": "workspace", **options})
        except httpx.HTTPStatusError as error:
            return {"status": error.response.status_code, **error.response.json()}
        operation: dict[str, Any] = answer["operation"]
        return operation

    def operation(self, operation_id: str) -> dict[str, Any]:
        """`GET operations/ID`."""
        found: dict[str, Any] = self.tab.request("GET", API + f"operations/{operation_id}")
        return found

    def paused(self, limit: float = 120.0) -> dict[str, Any]:
        """Wait until the owner says Paused."""
        return self.standin.wait_for_state(self.name, "Paused", limit)

    def resume(self) -> None:
        """As the paused screen asks for it: Kubeflow's backend on the same origin."""
        url = f"{self.standin.origin}/workspaces/api/v1/workspaces/{self.standin.namespace}/{self.name}/actions/pause"
        answer = httpx.post(url, json={"data": {"paused": False}}, trust_env=False)
        assert answer.status_code == 200, answer.text

    def command(self, *words: str) -> str:
        """What `jupyter pause ...` prints about this server."""
        program = [sys.executable, "-m", "jupyter_pause.cli", *words, "--url", self.tab.url, "--token", ""]
        done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    def report(self, limit: float = 120.0) -> dict[str, Any]:
        """How the last resume ended, once that is known."""
        found = self.wait_for(lambda state: (state["workspace"] or {}).get("last_resume"), "a resume is told", limit)
        told: dict[str, Any] = found["workspace"]["last_resume"]
        return told


@contextlib.contextmanager
def workspace(standin: StandIn, *options: str, **more: Any) -> Iterator[Workspace]:
    """A workspace whose tab is closed at the end."""
    made = Workspace.start(standin, *options, **more)
    try:
        yield made
    finally:
        made.close()


def send(channels: websocket.WebSocket, code: str) -> None:
    """Send a cell and wait for nothing."""
    number = uuid.uuid4().hex
    header = {"msg_id": number, "msg_type": "execute_request", "username": "", "session": "tab", "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "buffers": []}
    channels.send(json.dumps({**message, "channel": "shell"}))


def resume_kernel(w: Workspace, kernel: str) -> None:
    """Bring one kernel back from the checkpoint that is offered."""
    operation = w.tab.request("POST", API + "resume", {"kernel": kernel})["operation"]

    def ended() -> dict[str, Any] | None:
        now = w.operation(operation["id"])
        return now if now["state"] not in ("running", "needs_decision") else None

    record = w.standin.wait_for(ended, "the kernel is resumed")
    assert record is not None and record["state"] == "done", record
