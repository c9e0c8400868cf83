# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Kernels of other environments and Python minors, in which nothing of ours is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import HttpError, ServerProcess
from tests.kernel import pythons

STATE = """
import dataclasses, os
class Walker:
    def __init__(self): self.steps = 40
    def walk(self): self.steps += STRIDE; return self.steps
@dataclasses.dataclass
class Point:
    x: int = 1
STRIDE = 2
walker, point, shared = Walker(), Point(5), [1]
holder = {"list": shared}
token = os.urandom(8).hex()
double = lambda value: value * STRIDE
"""
LOOK = "token, walker.walk(), isinstance(walker, Walker), point, holder['list'] is shared, double(4)"


def later(first: str, steps: int) -> str:
    """What `LOOK` says after further walks, by what it said after the first. The token may hold any digits."""
    return first.replace(", 42,", f", {steps},")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path)
    interpreters = {
        "first": pythons.other(0),
        "second": pythons.other(1),
        "env": pythons.environment_with_other_packages(),
        "mine": pythons.own(),
    }
    for name, interpreter in interpreters.items():
        folder = tmp_path / "data" / "kernels" / name
        folder.mkdir(parents=True)
        argv = [interpreter, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (folder / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": name, "language": "python"}))
        probe = subprocess.run([interpreter, "-c", "import jupyter_pause"], capture_output=True, cwd="/", check=False)
        assert probe.returncode != 0 or name == "mine", "the point is that nothing of ours is installed there"
    made.start()
    yield made
    made.clean_up()


@pytest.mark.parametrize("name", ["first", "second", "env"])
def test_pause_and_resume_with_nothing_installed_in_the_kernels_environment(server: ServerProcess, name: str) -> None:
    kernel = server.notebook("a.ipynb", name)["kernel"]["id"]
    before = server.run(kernel, STATE, LOOK)
    assert server.pause(kernel)["state"] == "done"
    resumed = server.resume(kernel=kernel)
    assert resumed["state"] == "done" and resumed["outcome"] == "restored", resumed
    assert server.run(kernel, "", LOOK) == later(before, 44)
    assert server.run(kernel, "STRIDE = 3", LOOK) == later(before, 47).replace(" 8)", " 12)")


@pytest.mark.parametrize("target", ["first", "second"])
def test_a_checkpoint_loads_under_other_minors_when_the_person_agrees(server: ServerProcess, target: str) -> None:
    kernel = server.notebook("a.ipynb", "mine")["kernel"]["id"]
    before = server.run(kernel, STATE, LOOK)
    paused = server.pause(kernel)
    # The kernel specification now names another Python: what an upgraded environment looks like.
    spec = json.loads((server.base / "data" / "kernels" / target / "kernel.json").read_text())
    (server.base / "data" / "kernels" / "mine" / "kernel.json").write_text(json.dumps(spec))
    server.kill()
    server.start()
    with pytest.raises(HttpError) as caught:
        server.resume(kernel=kernel)
    assert caught.value.status == 422 and caught.value.body["code"] == "environment_differs"
    assert any(entry["name"] == "python" for entry in caught.value.body["differences"]), caught.value.body
    row = server.row(kernel)
    assert row is not None and row["state"] == "paused" and row["checkpoint"]["id"] == paused["checkpoint"]
    resumed = server.resume(kernel=kernel, on_difference="accept")
    assert resumed["state"] == "done" and resumed["outcome"] in ("restored", "partial"), resumed
    version = server.run(kernel, "import sys", "sys.version_info[:2]")
    assert version != repr(tuple(sys.version_info[:2]))
    assert server.run(kernel, "", LOOK) == later(before, 44)
