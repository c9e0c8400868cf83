# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A container's program for tests of the stand-in itself: a token that lives in its memory only, told to who asks.

`GET <anything>` answers JSON. The path's last word may be an order: `count` counts up, `connect` opens a connection to
the API server and keeps it, `scratch` writes to /tmp, `fail` ends the process.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOKEN = secrets.token_hex(16)
SCRATCH = Path("/tmp/scratch")
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
kept: list[object] = []


class Answers(BaseHTTPRequestHandler):
    """Tells about the process."""

    def do_GET(self) -> None:
        order = self.path.rstrip("/").rsplit("/", 1)[-1]
        if order == "connect":
            address = (os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"]))
            kept.append(socket.create_connection(address))
        elif order == "scratch":
            SCRATCH.write_text("written", encoding="utf-8")
        elif order == "count":
            kept.append(None)
        elif order == "fail":
            os._exit(3)
        body = json.dumps(self.about()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def about(self) -> dict[str, object]:
        return {
            "token": TOKEN,
            "count": len(kept),
            "pid": os.getpid(),
            "hostname": socket.gethostname(),
            "path": self.path,
            "env": dict(os.environ),
            "account": (ACCOUNT / "token").read_text(encoding="utf-8"),
            "namespace": (ACCOUNT / "namespace").read_text(encoding="utf-8"),
            "scratch": SCRATCH.exists(),
            "last_activity": os.environ.get("LAST_ACTIVITY", ""),
            "home": sorted(path.name for path in Path.home().iterdir()),
        }

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("started", TOKEN, flush=True)
    ThreadingHTTPServer((os.environ["POD_IP"], 8888), Answers).serve_forever()
