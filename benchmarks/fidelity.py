# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Writes docs/fidelity.md: what becomes of every object of the table, here and with the peers, all run now.

``python -m benchmarks.fidelity`` from the checkout; it makes its virtual environment in the cache on the first run.
"""

from __future__ import annotations

import collections
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.fidelity import environment
from tests.fidelity.case import Case
from tests.fidelity.judge import Table, Verdict
from tests.fidelity.objects import FAMILIES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "fidelity.md"
PEERS = ("cloudpickle", "dill")
#: Outcomes of peers in the order of the summary.
OUTCOMES = ("equal", "type only", "differs", "another type", "fails to load", "refuses")

HEAD = """\
# Fidelity: what becomes of which object

Made by `python -m benchmarks.fidelity`; do not edit. Each object was put into a variable of a real kernel, the kernel
was paused and its process ended, another process was resumed from the checkpoint, and the object was used there: its
type must be the same, and a check of its own must hold (a view still shares memory, an iterator goes on where it was,
a function sees a rebound global). `tests/fidelity` holds the objects, the checks and what must come out; a difference
fails the test.

* **equal**: the same as before.
* **rebuilt**: made again, with what is different about it said (last column). Files, databases and pools are of this
  kind.
* **lost**: named before the pause, with the reason. Using it afterwards raises an error that says so.

For the peers the object was saved with whatever the check needs beside it, by the pickler named, and loaded in
another process: **equal**; **type only** (the type is the same, and there is nothing more to check: often a dead
copy); **differs** (silently: the check fails); **another type** (silently); **fails to load** (the save succeeded);
**refuses**.
"""


def ours() -> dict[str, Verdict]:
    """What became of each object here."""
    found = {}
    for family, cases in FAMILIES.items():
        with tempfile.TemporaryDirectory(prefix="jpf") as folder:
            for verdict in Table(cases, Path(folder), str(environment.python_for(family))).verdicts():
                found[verdict.case.name] = verdict
    return found


def theirs(peer: str) -> dict[str, str]:
    """What became of each object with a peer; a check that needs a kernel is not asked of it."""
    found: dict[str, str] = {}
    for family, cases in FAMILIES.items():
        asked = [[c.name, c.setup, c.check, c.check != "True"] for c in cases if "get_ipython" not in c.check]
        command = [str(environment.python_for(family)), str(Path(__file__).with_name("fidelity_peer.py")), peer]
        done = subprocess.run(command, input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True)
        found.update(json.loads(line) for line in done.stdout.splitlines())
    return found


def page(mine: dict[str, Verdict], peers: dict[str, dict[str, str]]) -> str:
    """The whole page as Markdown."""
    parts = [HEAD, _versions(), "## Summary\n", _summary(mine, peers)]
    for family, cases in FAMILIES.items():
        parts.append(f"## {family}\n")
        parts.append(_table(cases, mine, peers))
    return "\n".join(parts)


def _versions() -> str:
    used = [*environment.REQUIREMENTS, environment.TORCH[-1]]
    libraries = ", ".join(requirement.replace("==", " ") for requirement in used)
    return f"Python {platform.python_version()} on {platform.system()}; {libraries}.\n"


def _summary(mine: dict[str, Verdict], peers: dict[str, dict[str, str]]) -> str:
    fates = collections.Counter(verdict.fate for verdict in mine.values())
    rows = [
        ["jupyter-pause", f"{len(mine)} objects", *(f"{fates[fate]} {fate}" for fate in ("equal", "rebuilt", "lost"))]
    ]
    rows[0].append(f"{fates['wrong']} silently wrong")
    for peer, outcomes in peers.items():
        counts = collections.Counter(outcomes.values())
        rows.append([peer, f"{len(outcomes)} objects", *(f"{counts[name]} {name}" for name in OUTCOMES)])
    return "\n".join("* **{}**: {}".format(row[0], ", ".join(row[1:])) for row in rows) + "\n"


def _table(cases: Sequence[Case], mine: dict[str, Verdict], peers: dict[str, dict[str, str]]) -> str:
    lines = ["| object | jupyter-pause | " + " | ".join(peers) + " | what is said |"]
    lines.append("| --- | --- |" + " --- |" * len(peers) + " --- |")
    for case in cases:
        verdict = mine[case.name]
        others = [outcomes.get(case.name, "-") for outcomes in peers.values()]
        lines.append(
            f"| {case.name} | **{verdict.fate}** | {' | '.join(others)} | {verdict.detail.replace('|', ' ')} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page; 1 where an object ended in a way that must never be."""
    mine = ours()
    peers = {peer: theirs(peer) for peer in PEERS}
    PAGE.write_text(page(mine, peers), encoding="utf-8")
    wrong = [f"{verdict.case.name}: {verdict.detail}" for verdict in mine.values() if verdict.fate == "wrong"]
    print("\n".join(wrong) or f"{len(mine)} objects, none silently wrong", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
