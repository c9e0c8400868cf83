# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The Unix socket between kernels and the server."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

from jupyter_pause.kernel_link import FOLDER_PREFIX, remove_stale_folders


def test_folders_of_killed_servers_go_and_others_stay() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        base = Path(name)
        for folder in ("dead", "alive", "new"):
            (base / (FOLDER_PREFIX + folder)).mkdir(mode=0o700)
        (base / "other").mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
            dead.bind(str(base / (FOLDER_PREFIX + "dead") / "s"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as alive:
            alive.bind(str(base / (FOLDER_PREFIX + "alive") / "s"))
            alive.listen()
            remove_stale_folders(base)
            left = sorted(path.name for path in base.iterdir())
        assert left == [FOLDER_PREFIX + "alive", FOLDER_PREFIX + "new", "other"]
