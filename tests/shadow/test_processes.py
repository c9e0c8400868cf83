# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The process of a shadow load: never outlives its server, and is the kernel's own interpreter in its environment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.harness import ServerProcess, until
from tests.kernel import pythons

from .processes import ENDLESS, trying

LIE = (
    "import helper\nclass Reset:\n    def __init__(self): self.count = 0\n"
    "    def __setstate__(self, state): self.count = helper.NUMBER\n"
    "house = {'rooms': [Reset()]}; house['rooms'][0].count = 7\n"
    "fine = helper.Fine()\nimport sys; version = sys.version_info[:2]"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path)
    for name, interpreter in (
        ("3.9", pythons.of("3.9")),
        ("3.14", pythons.of("3.14")),
        ("env", pythons.environment_with_other_packages()),
    ):
        folder = tmp_path / "data" / "kernels" / name
        folder.mkdir(parents=True)
        argv = [interpreter, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (folder / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": name, "language": "python"}))
    (made.root / "helper.py").write_text("NUMBER = 0\nclass Fine:\n    def __setstate__(self, s): self.__dict__ = s\n")
    try:
        yield made.start()
    finally:
        made.clean_up()


def question(server: ServerProcess, kernel: str) -> dict[str, Any]:
    """Begin a pause and wait until it asks."""
    operation = server.api("POST", "pause", {"kernels": [kernel]})["operation"]

    def look() -> Any:
        now = server.api("GET", f"operations/{operation['id']}")
        return now if now["state"] != "running" else None

    found: dict[str, Any] = until(look, "it asks or ends")
    return found


@pytest.mark.parametrize("name", ["3.9", "3.14", "env"])
def test_the_kernels_own_interpreter_and_modules_are_used(server: ServerProcess, name: str) -> None:
    kernel = server.notebook("a.ipynb", name)["kernel"]["id"]
    server.run(kernel, LIE)
    asked = question(server, kernel)
    assert asked["state"] == "needs_decision", asked
    assert [loss["path"] for loss in asked["question"]["losses"]] == ['house["rooms"][0].count']
    server.api("POST", f"operations/{asked['id']}", {"decision": "accept"})
    ended = server.ended(asked)
    assert (ended["state"], ended["shadow"]["state"]) == ("done", "checked")
    assert ended["shadow"]["unchecked"] == []


def test_a_killed_server_leaves_no_process_and_the_kernel_running(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, ENDLESS)
    server.api("POST", "pause", {"kernels": [kernel]})
    found = until(lambda: trying(server.checkpoints), "the checkpoint is tried out")
    server.kill()
    until(lambda: not any(psutil.pid_exists(pid) for pid in found), "no process is left")
    assert server.kernels_alive()
    server.start()
    assert (server.row(kernel) or {})["state"] == "running"
    assert server.run(kernel, "", "len(endless)") == "1"
    assert list((server.checkpoints / "staging").iterdir()) == []


def test_a_stop_of_the_server_waits_for_no_shadow_load_and_says_so(server: ServerProcess) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    other = server.notebook("b.ipynb")["kernel"]["id"]
    server.run(kernel, ENDLESS)
    server.run(other, ENDLESS)
    server.api("POST", "pause", {"kernels": [kernel]})
    until(lambda: trying(server.checkpoints), "the checkpoint is tried out")
    server.terminate()
    assert trying(server.checkpoints) == []
    server.start()
    for kernel_id in (kernel, other):
        row = server.row(kernel_id) or {}
        assert row["state"] == "paused", row
        manifest = server.api("GET", f"checkpoints/{row['checkpoint']['id']}")
        assert (manifest["shadow"]["state"], manifest["shadow"]["code"]) == ("not_checked", "stopping")
