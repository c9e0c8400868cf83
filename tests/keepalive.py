# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""An HTTP server that keeps connections open, for programs that keep one to it (S23)."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"alive")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class KeepAliveServer:
    """Answers `alive` from now until `close`. A port that was used a moment ago can be used again."""

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        ThreadingHTTPServer.allow_reuse_address = True
        self._server = ThreadingHTTPServer((host, port), _Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> KeepAliveServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
