# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Measures this engine beside the disk, the memory and its peers, in one run; prints one table.

    python benchmarks/speed [--quick | --smoke] [--workloads W1,W2] [--tools jupyter-pause,dill] [--page FILE]

The full run wants 15 GB of disk, 15 GB of memory and about an hour; `--quick` a tenth of it. Tools that are not
installed are named as such. Run it under the Python that has the peers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import page
import running
from methods import METHODS
from workloads import WORKLOADS

#: name -> (size, tries, seconds that one save or load may take)
MODES = {"full": (1.0, 5, 600.0), "quick": (0.1, 3, 200.0), "smoke": (0.002, 1, 60.0)}


def main() -> int:
    """Parse, measure, print. Ends with 1 when our own engine failed at something or brought back a wrong value."""
    parser = argparse.ArgumentParser(prog="python benchmarks/speed", description=__doc__.splitlines()[0])
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quick", dest="mode", action="store_const", const="quick", help="a tenth of the bytes")
    group.add_argument("--smoke", dest="mode", action="store_const", const="smoke", help="whether it works at all")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="default: %(default)s")
    parser.add_argument("--tools", default=",".join(METHODS), help="default: all that are installed")
    parser.add_argument("--tries", type=int, help="default: 5, quick 3, smoke 1")
    parser.add_argument(
        "--limit", type=float, help="seconds that one save or load may take; default: 600, less if quick"
    )
    parser.add_argument("--server", metavar="PYTHON", help="a Python with jupyter-pause: measure a real server too")
    parser.add_argument("--work", help="a folder on the disk to be measured; default: the temporary one")
    parser.add_argument("--page", type=Path, help="write the results to this Markdown page too")
    options = parser.parse_args()
    mode = options.mode or "full"
    size, tries, limit = MODES[mode]
    tools = options.tools.split(",")
    here = [tool for tool in tools if running.installed(tool)]
    with tempfile.TemporaryDirectory(prefix="jupyter-pause-bench-", dir=options.work) as folder:
        limit = options.limit or limit
        runner = running.Runner(Path(folder), size, options.tries or tries, limit, lambda line: print(line, flush=True))
        rows = runner.run(options.workloads.split(","), here)
        if options.server:
            rows["server", "server"] = runner.server(options.server)
        report = page.Report(rows, runner, mode, [tool for tool in tools if tool not in here])
    print("\n" + report.tables())
    if options.page:
        options.page.write_text(report.page(), encoding="utf-8")
    return 1 if report.failures() else 0


if __name__ == "__main__":
    sys.exit(main())
