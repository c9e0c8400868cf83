# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Run by a fresh environment's interpreter: `present` checks an installed wheel, `absent` that it is gone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PREFIX = Path(sys.prefix)
EXTENSION = PREFIX / "share" / "jupyter" / "labextensions" / "jupyter-pause"


def present() -> list[str]:
    """What is wrong with the installation, in sentences."""
    wrong = []
    if shutil.which("node"):
        wrong.append("Node.js is on PATH: this proves nothing about installing without it.")
    for path in (EXTENSION / "package.json", EXTENSION / "install.json", EXTENSION / "static" / "style.js"):
        if not path.is_file():
            wrong.append(f"{path.relative_to(PREFIX)} is missing.")
    server = _output("jupyter", "server", "extension", "list")
    if not any("jupyter_pause" in line and "enabled" in line for line in server.splitlines()):
        wrong.append(f"The server extension is not enabled:\n{server}")
    if not any("jupyter_pause" in line and "OK" in line for line in server.splitlines()):
        wrong.append(f"The server extension does not validate:\n{server}")
    lab = _output("jupyter", "labextension", "list")
    if not any("jupyter-pause" in line and "enabled" in line and "OK" in line for line in lab.splitlines()):
        wrong.append(f"The labextension is not enabled:\n{lab}")
    return wrong


def absent() -> list[str]:
    """What an uninstall left behind."""
    ours = ("jupyter-pause", "jupyter_pause")
    return [f"{path.relative_to(PREFIX)} was left behind." for path in PREFIX.rglob("*") if path.name.startswith(ours)]


def _output(*command: str) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.stdout


if __name__ == "__main__":
    complaints = {"present": present, "absent": absent}[sys.argv[1]]()
    print("\n".join(complaints) or "as it should be")
    sys.exit(bool(complaints))
