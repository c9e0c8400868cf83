# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A real Jupyter server in its own process and folders, which a test may kill and start again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from jupyter_client import BlockingKernelClient

from tests.waiting import LIMIT, until

__all__ = ["LIMIT", "TOKEN", "HttpError", "ServerProcess", "call", "free_port", "take_ctrl_c", "until"]

TOKEN = "test-token"


def free_port() -> int:
    """A TCP port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def take_ctrl_c() -> None:
    """For `preexec_fn`: Ctrl-C works, also where the tests were started with `&` by a shell without job control."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class HttpError(Exception):
    """An HTTP answer that is not a success."""

    def __init__(self, status: int, body: Any) -> None:
        self.status = status
        self.body = body
        super().__init__(f"{status}: {body}")


def call(method: str, url: str, token: str, body: Any = None) -> Any:
    """One HTTP call with a token; returns the JSON body (None when empty). Raises HttpError."""
    request = urllib.request.Request(
        url,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"token {token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=LIMIT) as response:
            raw = response.read()
    except urllib.error.HTTPError as error:
        raw = error.read()
        with contextlib.suppress(ValueError):
            raw = json.loads(raw)
        raise HttpError(error.code, raw) from None
    return json.loads(raw) if raw else None


class ServerProcess:
    """One server over the folders below `base`; several may share them."""

    def __init__(
        self,
        base: Path,
        *,
        options: list[str] | None = None,
        base_url: str = "/",
        extensions: dict[str, bool] | None = None,
    ) -> None:
        self.base = base
        self.root = base / "root"
        self.checkpoints = base / "data" / "jupyter_pause"
        self.runtime = base / "runtime"
        self._options = options or []
        self._base_url = base_url
        self._extensions = extensions or {"jupyter_pause": True}
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None
        #: Where its output goes; None: to server.log.
        self.output: int | None = None
        #: Command that the server's own is handed to, as arguments.
        self.through: list[str] = []
        #: Where its input comes from: a terminal's file descriptor, or nothing.
        self.input: int = subprocess.DEVNULL
        for folder in (self.root, base / "config", base / "data", self.runtime):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def env(self) -> dict[str, str]:
        """The environment that keeps the server inside its folders."""
        return {
            **{k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "JPY_"))},
            "JUPYTER_CONFIG_DIR": str(self.base / "config"),
            "JUPYTER_DATA_DIR": str(self.base / "data"),
            "JUPYTER_RUNTIME_DIR": str(self.runtime),
            "IPYTHONDIR": str(self.base / "ipython"),
        }

    def start(self) -> ServerProcess:
        """Start it and wait until it answers."""
        self.port = free_port()
        log = (self.base / "server.log").open("ab")
        self.process = subprocess.Popen(
            [
                *self.through,
                sys.executable,
                "-m",
                "jupyter_server",
                "--no-browser",
                "--allow-root",
                "--ServerApp.ip=127.0.0.1",
                f"--ServerApp.port={self.port}",
                "--ServerApp.port_retries=0",
                f"--ServerApp.root_dir={self.root}",
                f"--ServerApp.base_url={self._base_url}",
                f"--IdentityProvider.token={TOKEN}",
                f"--ServerApp.jpserver_extensions={self._extensions}",
                "--PauseApp.save_timeout=0.5",
                *self._options,
            ],
            env=self.env,
            stdin=self.input,
            stdout=log if self.output is None else self.output,
            stderr=log if self.output is None else self.output,
            preexec_fn=take_ctrl_c,
        )
        log.close()
        until(self._answers, "the server answers")
        return self

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.base / "server.log").read_text()[-3000:]
        with contextlib.suppress(OSError, HttpError):
            self.get("api/status")
            return True
        return False

    def kill(self) -> None:
        """SIGKILL, as the kernel's out-of-memory killer would."""
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM and wait."""
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(LIMIT)
            self.process = None

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """One HTTP call with the token; returns the JSON body (None when empty)."""
        return call(method, f"http://127.0.0.1:{self.port}{self._base_url}{path}", TOKEN, body)

    def get(self, path: str) -> Any:
        """GET below the base URL."""
        return self.request("GET", path)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """A call of our REST interface."""
        return self.request(method, f"jupyter-pause/api/{path}", body)

    def notebook(self, path: str, kernel: str = "python3") -> dict[str, Any]:
        """A notebook session with a new kernel; returns the session."""
        body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": kernel}}
        session: dict[str, Any] = self.request("POST", "api/sessions", body)
        return session

    def row(self, kernel_id: str) -> dict[str, Any] | None:
        """The kernel's row of `GET state`."""
        rows = self.api("GET", "state")["kernels"]
        return next((row for row in rows if row["id"] == kernel_id), None)

    def ended(self, operation: dict[str, Any]) -> dict[str, Any]:
        """Wait until the operation ended."""

        def look() -> Any:
            now = self.api("GET", f"operations/{operation['id']}")
            return now if now["state"] not in ("running", "needs_decision") else None

        record: dict[str, Any] = until(look, "the operation ends")
        return record

    def pause(self, kernel_id: str, **options: Any) -> dict[str, Any]:
        """Pause and wait."""
        return self.ended(self.api("POST", "pause", {"kernels": [kernel_id], **options})["operation"])

    def resume(self, **body: Any) -> dict[str, Any]:
        """Resume and wait."""
        return self.ended(self.api("POST", "resume", body)["operation"])

    @contextlib.contextmanager
    def client(self, kernel_id: str) -> Iterator[BlockingKernelClient]:
        """A ZMQ client of the kernel, from its connection file."""
        client = BlockingKernelClient()
        client.load_connection_file(str(self.runtime / f"kernel-{kernel_id}.json"))
        client.start_channels(hb=False)
        try:
            yield client
        finally:
            client.stop_channels()

    def run(self, kernel_id: str, code: str, expression: str = "None") -> str:
        """Run a cell; returns repr of `expression` evaluated after it."""
        with self.client(kernel_id) as client:
            message = client.execute(code, user_expressions={"value": expression})
            end = time.monotonic() + LIMIT
            while time.monotonic() < end:
                reply = client.get_shell_msg(timeout=LIMIT)
                if reply["parent_header"].get("msg_id") == message:
                    break
            content = reply["content"]
            assert content["status"] == "ok", content
            value = content["user_expressions"]["value"]
            assert value["status"] == "ok", value
            text: str = value["data"]["text/plain"]
            return text

    def kernels_alive(self) -> list[psutil.Process]:
        """Processes of kernels whose connection file lies in our runtime folder."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            if any(str(self.runtime) in part for part in process.info["cmdline"] or []):
                found.append(process)
        return found

    def clean_up(self) -> None:
        """End what this test started, by id."""
        self._end(signal.SIGKILL)
        for found in self.kernels_alive():
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(found.pid)  # one that was restored is a stranger to what psutil remembers
                process.kill()
                process.wait(LIMIT)
