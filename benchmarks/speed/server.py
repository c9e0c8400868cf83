# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What a real server adds: a small notebook is paused and resumed, beside fresh kernels with the same imports.

``python server.py FOLDER ROUNDS`` prints one JSON object: seconds, one entry per round. Runs under a Python that has
jupyter-pause installed.
"""

from __future__ import annotations

import compileall
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import jupyter_pause
from tests.harness import ServerProcess

IMPORTS = "import numpy, json, asyncio"


def fresh(server: ServerProcess) -> float:
    """Start a kernel, import, first answer."""
    began = time.perf_counter()
    kernel = server.request("POST", "api/kernels", {"name": "python3"})["id"]
    server.run(kernel, IMPORTS)
    seconds = time.perf_counter() - began
    server.request("DELETE", f"api/kernels/{kernel}")
    return seconds


def around(server: ServerProcess, kernel: str) -> dict[str, float]:
    """One pause and one resume, until the first answer."""
    began = time.perf_counter()
    done = server.pause(kernel)
    paused = time.perf_counter()
    assert done["state"] == "done", done
    done = server.resume(kernel=kernel)
    assert done["state"] == "done", done
    assert server.run(kernel, "", "x[7]") == "7"
    return {"pause": paused - began, "resume": time.perf_counter() - paused}


def main() -> None:
    """Interleaved rounds."""
    # As an installation by pip leaves it; a checkout under PYTHONDONTWRITEBYTECODE would compile at every start.
    compileall.compile_dir(str(Path(jupyter_pause.__file__).parent), quiet=2)
    server = ServerProcess(Path(sys.argv[1])).start()
    rounds: list[dict[str, Any]] = []
    try:
        kernel = server.notebook("a.ipynb")["kernel"]["id"]
        server.run(kernel, f"{IMPORTS}\nx = list(range(1000))")
        fresh(server)
        for _ in range(int(sys.argv[2])):
            rounds.append({"fresh": fresh(server), **around(server, kernel)})
    finally:
        server.clean_up()
    print(json.dumps(rounds))


main()
