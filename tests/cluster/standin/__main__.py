# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A cluster with one workspace that runs JupyterLab, for tests in other languages and for trying things by hand.

`python -m tests.cluster.standin --work FOLDER [--port PORT]` prints one line of JSON once the workspace runs:
`{"origin", "url", "namespace", "workspace", "kubeconfig", "control", "home", "api_server", "pid"}`, and goes on until
its standard input ends, or SIGTERM or SIGINT comes. Then everything that it started is ended.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.cluster import binaries, resources
from tests.cluster.apiserver import ApiServer

from .cluster import StandIn
from .control import Control
from .notebook import command

WORKSPACE = "notebook"


def main() -> None:
    """Run until told to end."""
    options = _options()
    ends = _told_to_end()
    options.work.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=options.work / "standin.log", level=logging.INFO)
    criu = None if options.stateless else binaries.criu()
    with _api_server() as server, _standin(server, options, criu) as standin:
        image = command(*options.option, pause=not options.without_extension)
        standin.create_workspace(WORKSPACE, image, stateful=not options.stateless)
        control = Control(standin, WORKSPACE)
        address = control.start(options.control_port)
        standin.wait_for_state(WORKSPACE, "Running", limit=180)
        told = {
            "origin": standin.origin,
            "url": standin.url(WORKSPACE),
            "namespace": standin.namespace,
            "workspace": WORKSPACE,
            "kubeconfig": str(server.kubeconfig(server.admin_token, standin.namespace)),
            "control": address,
            "home": str(standin.home(WORKSPACE)),
            "api_server": server.url,
            "pid": os.getpid(),
        }
        print(json.dumps(told), flush=True)
        select.select([ends, *([] if options.detached else [sys.stdin])], [], [])
        control.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.standin", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder for volumes, snapshots and logs")
    parser.add_argument("--port", type=int, default=0, help="of the origin that a browser opens; 0: a free one")
    parser.add_argument("--control-port", type=int, default=0, help="of the control endpoint; 0: a free one")
    parser.add_argument("--settle", type=float, default=1.0, help="seconds between closed gate and snapshot")
    parser.add_argument("--stateless", action="store_true", help="a workspace without the snapshot annotation")
    parser.add_argument("--without-extension", action="store_true", help="jupyter-pause's server extension is off")
    parser.add_argument("--detached", action="store_true", help="do not end when standard input does")
    parser.add_argument("--option", action="append", default=[], help="one more option for the Jupyter server")
    parsed: argparse.Namespace = parser.parse_args()
    return parsed


def _told_to_end() -> socket.socket:
    """Readable once SIGTERM or SIGINT came."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer.fileno())
    writer.detach()
    return reader


@contextlib.contextmanager
def _api_server() -> Iterator[ApiServer]:
    server = ApiServer(binaries.api_server())
    try:
        server.start()
        resources.install(server)
        yield server
    finally:
        server.stop()


def _standin(server: ApiServer, options: argparse.Namespace, criu: Path | None) -> StandIn:
    return StandIn(server, options.work, criu=criu, settle=options.settle, gateway_port=options.port)


if __name__ == "__main__":
    main()
