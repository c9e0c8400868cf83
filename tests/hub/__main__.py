# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A JupyterHub behind its proxy, for tests in other languages and for trying things by hand.

`python -m tests.hub --work FOLDER --proxy PROGRAM [--option OPTION]` prints one line of JSON once the Hub answers:
`{"origin", "api", "token", "homes"}`, and goes on until its standard input ends. Any name and password signs in.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .hub import SCOPES, Hub


def main() -> None:
    """Run until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.hub", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder for homes, database and logs")
    parser.add_argument("--proxy", required=True, help="configurable-http-proxy")
    parser.add_argument("--option", action="append", default=[], help="one more option for the servers")
    options = parser.parse_args()
    hub = Hub(
        options.work / "hub",
        SCOPES,
        proxy=[options.proxy],
        options=options.option,
        extensions=("jupyter_pause", "jupyterlab"),
    )
    try:
        hub.start()
        homes = str(hub.base / "homes")
        print(json.dumps({"origin": hub.origin, "api": hub.api_url, "token": hub.token, "homes": homes}), flush=True)
        sys.stdin.read()
    finally:
        hub.clean_up()


if __name__ == "__main__":
    main()
