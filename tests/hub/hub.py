# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A real JupyterHub in its own process and folders, whose servers have the extension."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.harness import LIMIT, HttpError, call, free_port, until

#: The fewest that a server needs to stop itself and to see how it stands.
SCOPES = ["users:activity!user", "access:servers!server", "delete:servers!server", "read:servers!server"]


class Hub:
    """One Hub.

    `scopes`: those of the servers' tokens, None for the Hub's default. `proxy`: the command of its proxy; None: there
    is none, and Hub and servers are asked at their own ports. `options`: more of them for the servers.
    """

    def __init__(
        self,
        base: Path,
        scopes: list[str] | None,
        *,
        proxy: Sequence[str] | None = None,
        options: Sequence[str] = (),
        extensions: Sequence[str] = ("jupyter_pause",),
    ) -> None:
        self.base = base
        self.token = secrets.token_hex(16)
        self.port = free_port()
        (base / "homes").mkdir(parents=True)
        self.facts = {
            "base": str(base),
            "port": self.port,
            "public_port": free_port(),
            "token": self.token,
            "scopes": scopes,
            "interrupt_timeout": 30,
            "proxy": proxy,
            "proxy_api_port": free_port(),
            "args": ["--allow-root", f"--ServerApp.jpserver_extensions={dict.fromkeys(extensions, True)}", *options],
            "environment": {
                name: str(base / name.lower()) for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
            },
        }
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def origin(self) -> str:
        """Where a browser finds everything, if there is a proxy."""
        return f"http://127.0.0.1:{self.facts['public_port']}"

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hub/api"

    def start(self) -> Hub:
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "JPY_"))}
        environ["JUPYTER_CONFIG_DIR"] = str(self.base / "config")
        with (self.base / "hub.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "-f", str(Path(__file__).with_name("hub_config.py"))],
                env={**environ, "TEST_HUB": json.dumps(self.facts)},
                cwd=self.base,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._answers, "the Hub answers")
        return self

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log()[-3000:]
        with contextlib.suppress(OSError, HttpError):
            self.get("")
            return True
        return False

    def log(self) -> str:
        return (self.base / "hub.log").read_text()

    def call(self, method: str, url: str, body: Any = None) -> Any:
        return call(method, url, self.token, body)

    def get(self, path: str) -> Any:
        return self.call("GET", f"{self.api_url}/{path}")

    def post(self, path: str, body: Any = None) -> Any:
        return self.call("POST", f"{self.api_url}/{path}", {} if body is None else body)

    # --- one user's server ---------------------------------------------------------------------------------------

    def user(self, name: str) -> None:
        self.post(f"users/{name}")

    def server(self, user: str, name: str = "") -> dict[str, Any] | None:
        model = self.get(f"users/{user}?include_stopped_servers=1")
        found: dict[str, Any] | None = model["servers"].get(name)
        return found

    def start_server(self, user: str, name: str = "") -> None:
        self.post(f"users/{user}/servers/{name}" if name else f"users/{user}/server")
        self.wait_ready(user, name)

    def wait_ready(self, user: str, name: str = "") -> None:
        def ready() -> bool:
            model = self.server(user, name)
            assert model is not None and (model["ready"] or model["pending"]), self.log()[-3000:]
            return bool(model["ready"])

        until(ready, "the server is ready")

    def wait_stopped(self, user: str, name: str = "") -> None:
        def stopped() -> bool:
            model = self.server(user, name)
            return model is None or (model["stopped"] and not model["pending"])

        until(stopped, "the server has stopped")

    def of_server(self, user: str, method: str, path: str, body: Any = None, name: str = "") -> Any:
        """A call to the server itself, at its own port."""
        process = self.process_of(user, name)
        port = process.environ()["JUPYTERHUB_SERVICE_URL"].rpartition(":")[2].partition("/")[0]
        prefix = f"/user/{user}/{name}/" if name else f"/user/{user}/"
        return self.call(method, f"http://127.0.0.1:{port}{prefix}{path}", body)

    def process_of(self, user: str, name: str = "") -> psutil.Process:
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                environ = child.environ()
                if environ.get("JUPYTERHUB_USER") == user and environ.get("JUPYTERHUB_SERVER_NAME") == name:
                    return child
        raise AssertionError("the server has no process")

    def clean_up(self) -> None:
        """End everything whose files lie in our folder, by id."""
        ours: list[int] = []
        if self.process is not None:
            # Its proxy is its child, and would outlive it.
            ours += [child.pid for child in psutil.Process(self.process.pid).children(recursive=True)]
            self.process.kill()
            self.process.wait(LIMIT)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("JUPYTER_RUNTIME_DIR") == self.facts["environment"]["JUPYTER_RUNTIME_DIR"]:
                    ours.append(process.pid)
        for pid in ours:
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                process.kill()
                process.wait(LIMIT)
