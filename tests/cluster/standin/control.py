# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A loopback endpoint through which a test in another process switches faults and looks at the cluster.

| call | does |
| --- | --- |
| `GET /control` | `{"faults": {...}, "workspace": {...}, "pod": {...} or null, "process": pid or null}` |
| `POST /control` `{"no_capacity": true, ...}` | switches faults; `{}` and unknown names change nothing and are told |
| `POST /control/clear` | switches all faults off |
| `POST /control/cut` | cuts the pods' connections to the API server, once |
| `POST /control/pause` `{"paused": true}` | patches `spec.paused` as an administrator |
| `POST /control/kill` | kill -9 of process 1 of the pod, as when a node runs out of memory |
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from .cluster import StandIn
from .http_server import Answer, Head, port_of, serve


class Control:
    """The endpoint for one workspace of a running stand-in."""

    def __init__(self, standin: StandIn, workspace: str) -> None:
        self._standin = standin
        self._workspace = workspace
        self._server: asyncio.Server | None = None

    def start(self, port: int = 0) -> str:
        """Listen. Returns the address."""
        self._server = self._standin.run(serve(self._handle, port=port))
        return f"http://127.0.0.1:{port_of(self._server)}/control"

    def stop(self) -> None:
        """Listen no more."""
        self._standin.run(self._close())

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _handle(self, head: Head, body: bytes) -> Answer:
        try:
            document = json.loads(body) if body else {}
            # What asks the API server waits for it: not in the stand-in's own loop.
            return Answer(200, await asyncio.to_thread(self._do, head, document))
        except (ValueError, AttributeError, TypeError, KeyError) as error:
            return Answer(400, {"message": str(error)})

    def _do(self, head: Head, document: dict[str, Any]) -> object:
        standin = self._standin
        if head.method == "POST" and head.path == "/control":
            known = standin.faults.as_dict()
            for name, value in document.items():
                if name not in known or type(value) is not type(known[name]):
                    raise ValueError(f"no such fault or value: {name}")
            for name, value in document.items():
                setattr(standin.faults, name, value)
        elif head.method == "POST":
            orders = {
                "/control/clear": standin.faults.clear,
                "/control/cut": standin.cut_watches,
                "/control/pause": lambda: standin.pause(self._workspace, bool(document["paused"])),
                "/control/kill": self._kill,
            }
            orders[head.path]()
        return self._look()

    def _look(self) -> object:
        pod = self._standin.pod(self._workspace)
        process = pod and self._standin.pod_process(pod["metadata"]["name"])
        return {
            "faults": self._standin.faults.as_dict(),
            "workspace": self._standin.workspace(self._workspace),
            "pod": pod,
            "process": process.pid if process else None,
        }

    def _kill(self) -> None:
        pod = self._standin.pod(self._workspace)
        process = pod and self._standin.pod_process(pod["metadata"]["name"])
        if process:
            process.kill()
