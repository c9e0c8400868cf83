# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which Jupyter servers run here, and calls of their REST interface.

Only the standard library and jupyter_core: the command line must answer quickly, and `jupyter_server` takes a second
to import. The files that servers leave in Jupyter's runtime folder are read directly; stale ones are left alone.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

#: Seconds for one call. A pause is answered once the kernel was scanned for what would be lost.
CALL_TIMEOUT = 120.0


class CliError(Exception):
    """Something to tell the person: one sentence, what to do next, a stable code, an exit code."""

    def __init__(self, code: str, message: str, *, exit_code: int = 1, body: dict[str, Any] | None = None) -> None:
        self.code = code
        self.exit_code = exit_code
        self.body = body or {}
        super().__init__(message)


class NoServerError(CliError):
    """No Jupyter server can be reached (exit code 4)."""

    def __init__(self, message: str, code: str = "no_server") -> None:
        super().__init__(code, message, exit_code=4)


class ApiCallError(CliError):
    """The server answered with an error: `status` is the HTTP status, `body` an `ApiError`."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status = status
        message = str(body.get("message") or f"The server answered with HTTP status {status}.")
        code = str(body.get("code") or f"http_{status}")
        super().__init__(code, message, exit_code=3 if status == 422 else 1, body=body)


@dataclass(frozen=True)
class ServerInfo:
    """A running server: `url` with the base URL and a slash at its end; `token` may be empty."""

    url: str
    token: str
    root_dir: str | None = None
    pid: int | None = None
    password: bool = False

    def public(self) -> dict[str, Any]:
        """What may be printed: no token."""
        return {"url": self.url, "root_dir": self.root_dir, "pid": self.pid}


def running_servers(runtime_dir: Path) -> list[ServerInfo]:
    """Servers of this user whose process still exists, newest first."""
    found: list[tuple[float, ServerInfo]] = []
    for path in runtime_dir.glob("jpserver-*.json"):
        try:
            written, content = path.stat().st_mtime, json.loads(path.read_bytes())
            server = _server(content)
        except (OSError, ValueError, TypeError, KeyError):
            continue
        if server.pid is not None and _exists(server.pid):
            found.append((written, server))
    return [server for _, server in sorted(found, key=lambda pair: pair[0], reverse=True)]


def _server(content: dict[str, Any]) -> ServerInfo:
    url = str(content["url"])
    return ServerInfo(
        url=url if url.endswith("/") else url + "/",
        token=str(content.get("token") or ""),
        root_dir=content.get("root_dir"),
        pid=int(content["pid"]),
        password=bool(content.get("password")),
    )


def _exists(pid: int) -> bool:
    if os.name == "nt":
        import psutil

        return bool(psutil.pid_exists(pid))
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def choose_server(servers: list[ServerInfo], wanted: str | None, directory: Path) -> ServerInfo:
    """The server that is meant.

    `wanted`: a port, a URL, a pid or a root folder. Without it: the only one, else the one whose root folder holds
    `directory` most closely. Raises CliError `several_servers` (exit code 2) when that is not one.
    """
    if not servers:
        raise NoServerError(
            "No Jupyter server is running for this user. "
            "Start one with `jupyter lab`, or name one with --url and --token."
        )
    if wanted is not None:
        matches = [server for server in servers if _is_meant(server, wanted)]
    elif len(servers) == 1:
        matches = servers
    else:
        matches = _closest(servers, directory)
    if len(matches) == 1:
        return matches[0]
    if not matches and wanted is not None:
        raise NoServerError(f"No running Jupyter server fits {wanted!r}. There are: {_describe(servers)}.")
    raise CliError(
        "several_servers",
        f"Several Jupyter servers are running; choose one with --server PORT: {_describe(matches or servers)}.",
        exit_code=2,
        body={"servers": [server.public() for server in matches or servers]},
    )


def _is_meant(server: ServerInfo, wanted: str) -> bool:
    if wanted.isdigit():
        return urlsplit(server.url).port == int(wanted) or server.pid == int(wanted)
    if "://" in wanted:
        return server.url.rstrip("/") == wanted.rstrip("/")
    return server.root_dir is not None and os.path.realpath(server.root_dir) == os.path.realpath(wanted)


def _closest(servers: list[ServerInfo], directory: Path) -> list[ServerInfo]:
    here = Path(os.path.realpath(directory))
    depths = {}
    for server in servers:
        root = Path(os.path.realpath(server.root_dir)) if server.root_dir else None
        if root is not None and here.is_relative_to(root):
            depths[server] = len(root.parts)
    deepest = max(depths.values(), default=0)
    return [server for server, depth in depths.items() if depth == deepest]


def _describe(servers: list[ServerInfo]) -> str:
    return "; ".join(f"{server.url} (folder {server.root_dir or 'unknown'})" for server in servers)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket, for servers started with `--ServerApp.sock`."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Server:
    """Calls of one server's REST interface."""

    def __init__(self, info: ServerInfo) -> None:
        self.info = info

    def get(self, *path: str, **query: str) -> Any:
        """The answer of `GET <path>` below our prefix."""
        return self.call("GET", path, query=query)

    def post(self, *path: str, body: dict[str, Any]) -> Any:
        """The answer of `POST <path>`."""
        return self.call("POST", path, body=body)

    def delete(self, *path: str, **query: str) -> Any:
        """The answer of `DELETE <path>`; None when it is empty."""
        return self.call("DELETE", path, query=query)

    def call(self, method: str, path: tuple[str, ...], *, query: dict[str, str] | None = None, body: Any = None) -> Any:
        """One call; raises ApiCallError, or NoServerError when nobody answers."""
        parts = urlsplit(self.info.url)
        target = parts.path.rstrip("/") + "/jupyter-pause/api/" + "/".join(quote(part, safe="") for part in path)
        if query:
            target += "?" + "&".join(f"{key}={quote(value, safe='')}" for key, value in query.items())
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.info.token:
            headers["Authorization"] = f"token {self.info.token}"
        connection = _connect(self.info.url)
        try:
            connection.request(method, target, body=None if body is None else json.dumps(body), headers=headers)
            response = connection.getresponse()
            status, raw = response.status, response.read()
        except ssl.SSLError as error:
            raise NoServerError(
                f"The certificate of {self.info.url} is not trusted ({error.reason}). "
                "Name its authority in SSL_CERT_FILE.",
                "certificate",
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise NoServerError(
                f"The Jupyter server at {self.info.url} does not answer ({str(error) or type(error).__name__}). "
                "Is it running?"
            ) from error
        finally:
            connection.close()
        return self._judge(status, raw)

    def _judge(self, status: int, raw: bytes) -> Any:
        body: Any = None
        with contextlib.suppress(ValueError):
            body = json.loads(raw) if raw else None
        if 200 <= status < 300 and (body is not None or not raw):
            return body
        if isinstance(body, dict) and body.get("code") not in (None, "forbidden", "no_such_call"):
            raise ApiCallError(status, body)
        if status in (301, 302, 401, 403):
            hint = "Give its token with --token or JUPYTER_TOKEN."
            if self.info.token:
                hint = "Is the token right, and may it pause kernels?"
            raise CliError("forbidden", f"The Jupyter server at {self.info.url} refuses this. {hint}")
        raise NoServerError(
            f"The Jupyter server at {self.info.url} runs without jupyter-pause. "
            "Install it in the server's environment and restart the server.",
            "not_installed",
        )


def _connect(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme == "http+unix":
        return _UnixConnection(unquote(parts.netloc), CALL_TIMEOUT)
    host = parts.hostname or "localhost"
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, parts.port, timeout=CALL_TIMEOUT, context=ssl.create_default_context())
    if parts.scheme != "http":
        raise CliError("usage", f"{url!r} is not the URL of a Jupyter server.", exit_code=2)
    return http.client.HTTPConnection(host, parts.port, timeout=CALL_TIMEOUT)
