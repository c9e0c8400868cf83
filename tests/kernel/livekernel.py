# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A real kernel started through our bootstrap, with the files that a server would have written, and no server."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

import cloudpickle
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

import jupyter_pause.kernel
from jupyter_pause.kernel import layout, processes
from jupyter_pause.kernel.interpreter import DEFAULT_SKIP_ENV
from tests.waiting import LIMIT, until

__all__ = ["KERNEL_FOLDER", "LIMIT", "Answer", "Door", "LiveKernel", "sleeper", "until"]

KERNEL_FOLDER = Path(jupyter_pause.kernel.__file__).parent


class Answer:
    """What came back for one cell: the reply's content, what was printed, and results as plain text."""

    def __init__(self, reply: dict[str, Any], messages: list[dict[str, Any]]) -> None:
        self.status = reply["status"]
        self.count = reply.get("execution_count")
        self.error = reply.get("evalue", "")
        self.printed = "".join(m["content"]["text"] for m in messages if m["msg_type"] == "stream")
        shown = [m["content"]["data"] for m in messages if "data" in m["content"]]
        self.text = "\n".join(data.get("text/plain", "") for data in shown)
        self.html = "\n".join(data.get("text/html", "") for data in shown)
        self.states = [m["content"]["execution_state"] for m in messages if m["msg_type"] == "status"]


class LiveKernel:
    """One kernel id in its own folders; its process may be ended and started again."""

    def __init__(
        self,
        base: Path,
        python: str,
        *,
        command: list[str] | None = None,
        env: dict[str, str] | None = None,
        transport: str = "tcp",
    ) -> None:
        self._transport = transport
        self.id = str(uuid.uuid4())
        self.python = python
        self.root = base / "pause"
        self.runtime = base / "run"
        for folder in (
            self.root / "staging",
            self.root / "checkpoints",
            self.root / "sessions" / self.id,
            self.runtime,
        ):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.secret_file = self.root / "secret"
        if not self.secret_file.exists():
            self._write(self.secret_file, secrets.token_hex(64).encode())
        self.session_file = self.root / "sessions" / self.id / "session.json"
        # With a record a kernel whose test run was killed ends by itself, as an orphan.
        self._write(self.session_file, json.dumps({"kernel_id": self.id, "state": "running"}).encode())
        self._command = command or [str(KERNEL_FOLDER / "bootstrap.py")]
        self._env = env or {}
        self.manager: Any = None
        self.client: BlockingKernelClient
        self._replies: dict[str, dict[str, Any]] = {}
        self._messages: dict[str, list[dict[str, Any]]] = {}

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)

    @property
    def secret(self) -> bytes:
        return bytes.fromhex(self.secret_file.read_text())

    @property
    def load_file(self) -> Path:
        return self.runtime / f"jupyter-pause-load-{self.id}.json"

    def write_kernel_file(self, *, server: int | None = None, link: str | None = None, **more: Any) -> None:
        """What a server writes before a launch; `server` is the pid of the process that stands for it."""
        pid = server or os.getpid()
        facts = {
            "version": 1,
            "kernel_id": self.id,
            "server": {"pid": pid, "start_time": processes.start_time(pid), "socket": link},
            "cloudpickle": str(Path(cloudpickle.__file__).parent),
            "checkpoint_dir": str(self.root),
            "secret_file": str(self.secret_file),
            "orphan_timeout": 300.0,
            "session": {"kernel_name": "python3", "path": "a.ipynb"},
            "skip_env": list(DEFAULT_SKIP_ENV),
            **more,
        }
        self._write(self.runtime / f"jupyter-pause-{self.id}.json", json.dumps(facts).encode())

    def write_load_file(self, checkpoint: str | Path) -> Path:
        """Ask the next start to load a checkpoint; returns where the result will be."""
        result = self.runtime / f"result-{uuid.uuid4().hex}.json"
        request = {
            "version": 1,
            "checkpoint": str(self.root / "checkpoints" / checkpoint),
            "secret_file": str(self.secret_file),
            "result": str(result),
        }
        self._write(self.load_file, json.dumps(request).encode())
        return result

    # --- the process --------------------------------------------------------------------------------------------

    def start(self, *, wait: bool = True) -> LiveKernel:
        """Start the process and connect; with `wait` until it answers."""
        if self.manager is None:
            self.manager = KernelManager(
                connection_file=str(self.runtime / f"kernel-{self.id}.json"), transport=self._transport
            )
            argv = [self.python, *self._command, "-f", "{connection_file}"]
            self.manager._kernel_spec = KernelSpec(argv=argv, language="python", display_name="test")
        env = {**os.environ, "IPYTHONDIR": str(self.runtime / "ipython"), **self._env}
        env.pop("JPY_PARENT_PID", None)
        self.manager.start_kernel(independent=True, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = self.manager.client()
        self.client.start_channels(hb=False)
        if wait:
            self.client.wait_for_ready(timeout=LIMIT)
        return self

    @property
    def pid(self) -> int:
        pid: int = self.manager.provisioner.pid
        return pid

    @property
    def running(self) -> bool:
        return bool(self.manager is not None and self.manager.is_alive())

    def end(self) -> None:
        """End the process at once; the connection file stays for the next start."""
        if self.manager is None or not self.manager.has_kernel:
            return
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True, restart=True)
        self._replies.clear()
        self._messages.clear()

    def close(self) -> None:
        """End everything."""
        self.end()
        if self.manager is not None:
            self.manager.cleanup_resources()

    # --- messages -----------------------------------------------------------------------------------------------

    def send(self, code: str, **options: Any) -> str:
        """Queue a cell; returns the message's id."""
        return str(self.client.execute(code, **options))

    def answer(self, message: str, limit: float = LIMIT) -> Answer:
        """Reply and idle of a cell that was sent: what a notebook waits for before it takes the [*] away."""

        def complete() -> bool:
            self._drain()
            states = [m["content"].get("execution_state") for m in self._messages.get(message, [])]
            return message in self._replies and "idle" in states

        until(complete, "reply and idle of a cell", limit)
        return Answer(self._replies[message]["content"], self._messages[message])

    def execute(self, code: str, limit: float = LIMIT) -> Answer:
        """Run a cell and wait for reply and idle."""
        return self.answer(self.send(code), limit)

    def value(self, expression: str) -> str:
        """repr of an expression in the kernel; fails the test if it raises."""
        message = self.send("", silent=True, user_expressions={"value": expression})
        self.answer(message)
        value = self._replies[message]["content"]["user_expressions"]["value"]
        assert value["status"] == "ok", value
        return str(value["data"]["text/plain"])

    def _drain(self) -> None:
        for get in (self.client.get_shell_msg, self.client.get_iopub_msg):
            while True:
                try:
                    message = get(timeout=0)
                except Empty:
                    break
                parent = message["parent_header"].get("msg_id")
                if get == self.client.get_shell_msg:
                    self._replies[parent] = message
                else:
                    self._messages.setdefault(parent, []).append(message)

    def replied(self, message: str) -> bool:
        """Whether the reply of a cell has come."""
        self._drain()
        return message in self._replies

    def begin(self, code: str) -> str:
        """Queue a cell and wait until its code runs (an interrupt before that would hit ipykernel, not the cell)."""
        message = self.send("print('running', flush=True)\n" + code)

        def runs() -> bool:
            self._drain()
            return any(m["msg_type"] == "stream" for m in self._messages.get(message, []))

        until(runs, "the cell runs")
        return message

    def interrupt(self, message: str) -> None:
        """Interrupt the running cell until it has ended."""

        def ended() -> bool:
            if not self.replied(message):
                self.manager.interrupt_kernel()
                time.sleep(0.2)
            return self.replied(message)

        until(ended, "the cell was interrupted")
        self.answer(message)

    def control(self, limit: float = LIMIT, **content: Any) -> dict[str, Any]:
        """Ask our code on the control channel; the reply's content."""
        message = self.client.session.msg("jupyter_pause_control", content)
        self.client.control_channel.send(message)
        end = time.monotonic() + limit
        while True:
            reply = self.client.get_control_msg(timeout=max(end - time.monotonic(), 0.01))
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                body: dict[str, Any] = reply["content"]
                return body

    # --- capture and commit, as the server does it --------------------------------------------------------------

    def new_staging(self) -> Path:
        """A staging folder with its request.json."""
        checkpoint = secrets.token_hex(16)
        staging = self.root / "staging" / checkpoint
        staging.mkdir(mode=0o700)
        request = {
            "version": 1,
            "checkpoint_id": checkpoint,
            "kernel_id": self.id,
            "operation_id": "op",
            "kernel_name": "python3",
            "path": "a.ipynb",
            "cause": "user",
            "created": "2026-01-01T00:00:00.000Z",
            "skip_env": list(DEFAULT_SKIP_ENV),
        }
        self._write(staging / "request.json", json.dumps(request).encode())
        return staging

    def request_capture(self, staging: Path) -> None:
        """Send the message that queues behind the cells."""
        self.client.shell_channel.send(
            self.client.session.msg("jupyter_pause_request", {"op": "capture", "staging": str(staging)})
        )

    def result(self, staging: Path) -> dict[str, Any]:
        """Wait for result.json."""
        path = staging / "result.json"
        until(path.exists, "result.json")
        value: dict[str, Any] = json.loads(path.read_bytes())
        return value

    def capture(self) -> tuple[Path, dict[str, Any]]:
        """Capture now; the staging folder and the result."""
        staging = self.new_staging()
        self.request_capture(staging)
        return staging, self.result(staging)

    def commit(self, staging: Path) -> str:
        """Verify, sign and put in its place; the checkpoint's id."""
        layout.commit(str(staging), str(self.root / "checkpoints" / staging.name), self.secret)
        return staging.name

    def manifest(self, checkpoint: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.root / "checkpoints" / checkpoint / "manifest.json").read_bytes())
        return value

    def save(self) -> str:
        """Capture, commit, end the process; the checkpoint's id."""
        staging, result = self.capture()
        assert result["status"] == "ok", result
        checkpoint = self.commit(staging)
        self.end()
        return checkpoint

    def resume(self, checkpoint: str) -> dict[str, Any]:
        """Start a new process from a checkpoint; the load result."""
        path = self.write_load_file(checkpoint)
        self.start()
        until(path.exists, "the load result")
        value: dict[str, Any] = json.loads(path.read_bytes())
        return value


class Door:
    """Stands where the server's socket would be: notes what the kernel asks and gives prepared answers."""

    def __init__(self) -> None:
        folder = Path(os.environ.get("TMPDIR") or "/tmp")
        self.path = str(folder / f"jpt-{uuid.uuid4().hex[:12]}")
        self.requests: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            self._listener.bind(self.path)
        finally:
            os.umask(before)
        self._listener.listen(8)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb") as stream:
                request = json.loads(stream.readline())
                self.requests.append(request)
                answer = self.answers.get(request["op"], {"ok": True})
                stream.write(json.dumps(answer).encode() + b"\n")

    def close(self) -> None:
        """Stop, and leave no socket behind."""
        if self._listener.fileno() >= 0:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._thread.join(10)
            os.unlink(self.path)


def sleeper() -> subprocess.Popen[bytes]:
    """A process that stands for a server: it lives until it is killed."""
    return subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(60)"])


def digest(data: bytes) -> str:
    """Hex SHA-256."""
    return hashlib.sha256(data).hexdigest()
