# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The drill tries exact snapshots too, over one WebSocket that stays open from before the pause until after."""

from __future__ import annotations

from pathlib import Path

from jupyter_pause.drill.exact import PROMISES
from jupyter_pause.drill.run import MIB, Drill, DrillOptions


def verdicts(program: Path) -> tuple[dict[str, str], str]:
    """Verdict of each promise, and what is said of snapshots."""
    options = DrillOptions(size=8 * MIB, server_options=[f"--PauseApp.criu={program}"])
    report = Drill(options, lambda check: print(check.line())).run()
    assert report.ok, [check.line() for check in report.checks if check.verdict != "kept"]
    return {check.name: check.verdict for check in report.checks}, report.versions["exact snapshots"]


def test_the_drill_gets_the_same_process_back(criu: Path) -> None:
    found, said = verdicts(criu)
    assert {name: found.get(name) for name in PROMISES} == dict.fromkeys(PROMISES, "kept")
    assert said == "tried"


def test_the_drill_says_why_it_does_not_try(tmp_path: Path) -> None:
    found, said = verdicts(tmp_path / "nothing")
    assert not set(PROMISES) & set(found)
    assert said.startswith("not tried: ")
