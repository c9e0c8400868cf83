# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Two servers over one data folder, whose checkpoints each other's paused notebooks need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness import HttpError, ServerProcess

Start = Callable[[str], ServerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made: list[ServerProcess] = []

    def start(root: str) -> ServerProcess:
        server = ServerProcess(tmp_path / "base")
        server.root = tmp_path / root
        server.root.mkdir(exist_ok=True)
        made.append(server)
        return server.start()

    yield start
    for server in made:
        server.clean_up()


@pytest.mark.parametrize("other", ["same", "another"], ids=["the same root folder", "another root folder"])
def test_a_checkpoint_that_another_servers_notebook_needs_is_not_deleted(start: Start, other: str) -> None:
    first, second = start("same"), start(other)
    kernel = first.notebook("a.ipynb")["kernel"]["id"]
    token = first.run(kernel, "import os; token = os.urandom(8).hex()", "token")
    checkpoint = first.pause(kernel)["checkpoint"]

    rows = {row["id"]: row for row in second.api("GET", "checkpoints")["checkpoints"]}
    assert rows[checkpoint]["in_use"]
    assert second.api("GET", f"checkpoints/{checkpoint}")["in_use"]
    with pytest.raises(HttpError) as refused:
        second.api("DELETE", f"checkpoints/{checkpoint}")
    assert refused.value.status == 409 and refused.value.body["code"] == "checkpoint_in_use"
    assert first.resume(kernel=kernel)["outcome"] == "restored"
    assert first.run(kernel, "", "token") == token

    # Nobody needs it any more: then it goes.
    second.api("DELETE", f"checkpoints/{checkpoint}")
    assert checkpoint not in {row["id"] for row in first.api("GET", "checkpoints")["checkpoints"]}


def test_a_kernel_and_its_checkpoint_are_not_resumed_beside_each_other(start: Start) -> None:
    server = start("same")
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "big = bytearray(64 << 20)")
    checkpoint = server.pause(kernel)["checkpoint"]
    operation = server.api("POST", "resume", {"kernel": kernel})["operation"]
    with pytest.raises(HttpError) as refused:
        server.api("POST", "resume", {"checkpoint": checkpoint})
    assert refused.value.body["code"] == "operation_in_progress"
    assert server.ended(operation)["outcome"] == "restored"
    assert [row["id"] for row in server.api("GET", "state")["kernels"]] == [kernel]
