# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A throw-away Jupyter server: its own folders, token and port, none of the person's configuration."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil
from jupyter_core.paths import jupyter_data_dir

from jupyter_pause.cli.server import ApiCallError, NoServerError, Server, ServerInfo

#: Seconds that a server may take to start or to stop.
START_LIMIT = 60.0
#: Lines of the server's log that are shown when it does not start.
LOG_TAIL = 15


class DrillServerError(Exception):
    """The throw-away server does not do what it should; the text says what it said."""


class DrillServer:
    """Starts, kills and starts again; knows every process that belongs to it."""

    def __init__(self, options: list[str]) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="jupyter-pause-drill-")).resolve()
        self.root, self.data, self.runtime = (self.base / name for name in ("root", "data", "runtime"))
        for folder in (self.root, self.data, self.runtime, self.base / "config", self.base / "t"):
            folder.mkdir(mode=0o700)
        self._options = options
        #: The checkpoint is what the drill is about; its last part asks for exact snapshots.
        self.snapshots = "off"
        self._token = secrets.token_urlsafe(32)
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._known: dict[int, psutil.Process] = {}

    # --- folders ------------------------------------------------------------------------------------------------

    @property
    def checkpoints(self) -> Path:
        """Where this server keeps checkpoints."""
        return self.data / "jupyter_pause" / "checkpoints"

    @property
    def log(self) -> Path:
        """What the server (and its kernels) printed."""
        return self.base / "server.log"

    def _environment(self) -> dict[str, str]:
        """The person's environment without what would lead the server, or its kernels, out of its folders."""
        drop = ("JUPYTER", "JPY_", "IPYTHON")
        return {
            **{key: value for key, value in os.environ.items() if not key.startswith(drop)},
            "JUPYTER_CONFIG_DIR": str(self.base / "config"),
            "JUPYTER_DATA_DIR": str(self.data),
            "JUPYTER_RUNTIME_DIR": str(self.runtime),
            "JUPYTER_NO_CONFIG": "1",
            # Kernels that the person installed are still found.
            "JUPYTER_PATH": os.pathsep.join(filter(None, (os.environ.get("JUPYTER_PATH"), jupyter_data_dir()))),
            "IPYTHONDIR": str(self.base / "ipython"),
            # Both because a killed server cannot remove what it made there; we do.
            "TMPDIR": str(self.base / "t"),
            "XDG_RUNTIME_DIR": str(self.base / "t"),
            "JUPYTER_TOKEN": self._token,
        }

    # --- life ---------------------------------------------------------------------------------------------------

    def start(self) -> int:
        """Start it and wait until it answers; returns its pid. Raises DrillServerError."""
        self._port = _free_port()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "jupyter_server",
                    "--no-browser",
                    "--allow-root",
                    "--ServerApp.ip=127.0.0.1",
                    f"--ServerApp.port={self._port}",
                    "--ServerApp.port_retries=0",
                    f"--ServerApp.root_dir={self.root}",
                    "--ServerApp.jpserver_extensions={'jupyter_pause': True}",
                    f"--PauseApp.snapshots={self.snapshots}",
                    *self._options,
                ],
                env=self._environment(),
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the drill, which then cleans up
            )
        self._remember(self._process.pid)
        self._wait_for_answer()
        return self._process.pid

    def _wait_for_answer(self) -> None:
        end = time.monotonic() + START_LIMIT
        while time.monotonic() < end:
            assert self._process is not None
            if self._process.poll() is not None:
                raise DrillServerError(
                    f"the server ended with exit code {self._process.returncode}:\n{self._log_tail()}"
                )
            try:
                self.api.get("state")
            except NoServerError as error:
                if error.code != "no_server":
                    raise DrillServerError(f"{error}\n{self._log_tail()}") from error
            else:
                return
            time.sleep(0.05)
        raise DrillServerError(f"the server did not answer within {START_LIMIT:.0f} s:\n{self._log_tail()}")

    def _log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_TAIL:]
        return "\n".join(lines).replace(self._token, "…")

    def kill(self) -> int:
        """SIGKILL, as a crash or the system's out-of-memory killer would; returns the pid that is gone."""
        assert self._process is not None
        pid = self._process.pid
        self._process.kill()
        self._process.wait(START_LIMIT)
        self._process = None
        return pid

    def stop(self) -> None:
        """Stop it the friendly way, and the hard way when it does not listen."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(START_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(START_LIMIT)
        self._process = None

    # --- calls --------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Its address with a slash at the end."""
        return f"http://127.0.0.1:{self._port}/"

    @property
    def token(self) -> str:
        """Its token; made for this drill and gone with it."""
        return self._token

    @property
    def api(self) -> Server:
        """Our REST interface."""
        return Server(ServerInfo(self.url, self._token))

    def jupyter(self, method: str, path: str, body: Any = None) -> Any:
        """A call of Jupyter's own REST interface. Raises DrillServerError."""
        request = urllib.request.Request(  # noqa: S310  (our own loopback address)
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self._token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=START_LIMIT) as response:  # noqa: S310
                raw = response.read()
        except urllib.error.HTTPError as error:
            raise DrillServerError(f"{method} {path} was answered with HTTP status {error.code}") from error
        except OSError as error:
            raise DrillServerError(f"{method} {path} was not answered ({type(error).__name__})") from error
        return json.loads(raw) if raw else None

    def open_notebook(self, name: str, kernel: str) -> dict[str, Any]:
        """A notebook file with a session and a kernel, as JupyterLab opens one; returns the session."""
        notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (self.root / name).write_text(json.dumps(notebook), encoding="utf-8")
        body = {"path": name, "name": name, "type": "notebook", "kernel": {"name": kernel}}
        session: dict[str, Any] = self.jupyter("POST", "api/sessions", body)
        return session

    def ended(self, operation: dict[str, Any], limit: float = 300.0) -> dict[str, Any]:
        """Wait for the end of an operation and return its last record. Raises DrillServerError after `limit` s."""
        end = time.monotonic() + limit
        while operation["state"] == "running":
            if time.monotonic() > end:
                raise DrillServerError(f"the {operation['kind']} did not end within {limit:.0f} s")
            time.sleep(0.05)
            operation = self.api.get("operations", operation["id"])
        return operation

    # --- processes ----------------------------------------------------------------------------------------------

    def _remember(self, pid: int) -> None:
        with contextlib.suppress(psutil.Error):
            self._known[pid] = psutil.Process(pid)

    def remember_tree(self, pid: int) -> list[psutil.Process]:
        """The process and everything below it; they are looked for in the end."""
        self._remember(pid)
        with contextlib.suppress(psutil.Error):
            for child in self._known[pid].children(recursive=True):
                self._known[child.pid] = child
        return [process for process in self._known.values() if process.pid == pid or _is_below(process, pid)]

    def processes(self) -> list[psutil.Process]:
        """Every live process that belongs to this drill: those we know, and those that name our folder."""
        found = {process.pid: process for process in self._known.values() if is_alive(process)}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.pid != os.getpid() and any(str(self.base) in word for word in process.cmdline()):
                    found.setdefault(process.pid, process)
        return [process for process in found.values() if is_alive(process)]

    def clean_up(self, *, keep: bool) -> list[str]:
        """Stop the server, end what is left, remove the folder; returns what had to be forced or stayed."""
        trouble = []
        try:
            self.stop()
        except (OSError, subprocess.SubprocessError) as error:
            trouble.append(f"the server did not stop ({type(error).__name__})")
        left = self.processes()
        if left:
            trouble.append(f"processes were left: {', '.join(str(process.pid) for process in left)}")
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(left, timeout=10)
        if not keep:
            shutil.rmtree(self.base, ignore_errors=True)
            if self.base.exists():
                trouble.append(f"the folder {self.base} could not be removed")
        return trouble


def is_alive(process: psutil.Process) -> bool:
    """Does it still run? A zombie holds no memory and does not count."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _is_below(process: psutil.Process, pid: int) -> bool:
    try:
        return any(parent.pid == pid for parent in process.parents())
    except psutil.Error:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


__all__ = ["ApiCallError", "DrillServer", "DrillServerError", "is_alive"]
