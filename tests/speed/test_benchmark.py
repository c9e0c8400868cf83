# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The benchmark itself works, at tiny sizes; no time that it measures decides anything here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.full
def test_a_smoke_run_measures_everything_and_finds_every_value_right(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "speed"),
        "--smoke",
        "--page",
        str(page),
        "--work",
        str(tmp_path),
    ]
    tools = ["--tools", "jupyter-pause,cloudpickle", "--server", sys.executable]
    done = subprocess.run([*command, *tools], capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    text = page.read_text()
    for workload, right in (
        ("W1", "4/4 | 2/2"),
        ("W2", "3/3 | 2/2"),
        ("W3", "5/5 | 4/4"),
        ("W5", "37/37 | 3/3"),
        ("L", "3/3"),
    ):
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {workload} | jupyter-pause |")]
        assert right in line
    for target in ("second pause, 1 % changed: bytes", "first touch of all", "small resume : fresh kernel"):
        assert target in text
    assert str(tmp_path) not in text
