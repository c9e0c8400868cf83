# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A notebook server as Kubeflow's images start it, and a client of it that comes through the gateway."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

import httpx
import websocket

LIMIT = 60.0


def command(*options: str, application: str = "jupyterlab", pause: bool = True) -> list[str]:
    """The image's command: no token of its own, everybody behind the gateway has logged in there.

    Args:
        options: more options for the server.
        application: the module that is run.
        pause: whether jupyter-pause's server extension is on.
    """
    return [
        "python",
        "-m",
        application,
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=$(POD_IP)",
        "--ServerApp.port=8888",
        "--ServerApp.port_retries=0",
        "--ServerApp.base_url=$(NB_PREFIX)",
        "--ServerApp.root_dir=/home/jovyan",
        "--IdentityProvider.token=",
        "--ServerApp.allow_remote_access=True",
        f"--ServerApp.jpserver_extensions=jupyter_pause={pause}",
        *options,
    ]


class NotebookClient:
    """Talks to a server as a tab does.

    Args:
        url: of its base path, with a slash at the end.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=LIMIT)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def request(self, method: str, path: str, body: object = None) -> Any:
        """One call of the server's REST API, with the cross-site token where one is needed."""
        headers = {}
        if method != "GET":
            if "_xsrf" not in self._http.cookies:
                self._http.get("tree", follow_redirects=True)
            headers["X-XSRFToken"] = self._http.cookies.get("_xsrf") or ""
        answer = self._http.request(method, path, json=body, headers=headers)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def channels(self, kernel: str) -> websocket.WebSocket:
        """A WebSocket to a kernel."""
        address = self.url.replace("http://", "ws://") + f"api/kernels/{kernel}/channels"
        return websocket.create_connection(address, timeout=LIMIT)

    def execute(self, kernel: str, code: str) -> str:
        """Run code, return what it printed.

        Raises:
            RuntimeError: it raised.
        """
        channels = self.channels(kernel)
        try:
            return execute(channels, code)
        finally:
            channels.close()


def execute(channels: websocket.WebSocket, code: str) -> str:
    """Run code over an open WebSocket, return what it printed.

    Raises:
        RuntimeError: it raised.
    """
    number = uuid.uuid4().hex
    header = {"msg_id": number, "msg_type": "execute_request", "username": "", "session": "tab", "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "buffers": []}
    channels.send(json.dumps({**message, "channel": "shell"}))
    printed: list[str] = []
    replied = idle = False
    while not (replied and idle):
        found = json.loads(channels.recv())
        if found["parent_header"].get("msg_id") != number:
            continue
        kind, told = found["msg_type"], found["content"]
        if kind == "stream":
            printed.append(told["text"])
        elif kind == "execute_reply":
            replied = True
            if told["status"] != "ok":
                raise RuntimeError(f"{told.get('ename')}: {told.get('evalue')}")
        elif kind == "status":
            idle = told["execution_state"] == "idle"
    return "".join(printed)


def kernel_names(client: NotebookClient) -> Sequence[str]:
    """Ids of the kernels that run."""
    return [kernel["id"] for kernel in client.request("GET", "api/kernels")]
