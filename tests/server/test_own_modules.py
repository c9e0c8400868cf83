# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Modules beside the notebook are imported again at a resume: one that was edited or removed is said first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import HttpError, ServerProcess

BEFORE = "class Recipe:\n    def __init__(self): self.steps = 3\n    def cook(self): return self.steps\n"
AFTER = BEFORE.replace("return self.steps", "return self.steps * 10")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path)
    (made.root / "kitchen.py").write_text(BEFORE)
    (made.root / "unused.py").write_text("x = 1\n")
    made.start()
    yield made
    made.clean_up()


def paused(server: ServerProcess) -> str:
    kernel: str = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "import json, kitchen, unused; recipe = kitchen.Recipe(); del unused")
    operation = server.pause(kernel)
    assert operation["state"] == "done", operation
    return kernel


def differences(server: ServerProcess, kernel: str) -> list[dict[str, Any]]:
    with pytest.raises(HttpError) as caught:
        server.resume(kernel=kernel)
    assert (caught.value.status, caught.value.body["code"]) == (422, "environment_differs")
    found: list[dict[str, Any]] = caught.value.body["differences"]
    return found


def test_an_edited_module_of_ones_own_is_said_before_anything_is_loaded(server: ServerProcess) -> None:
    kernel = paused(server)
    (server.root / "kitchen.py").write_text(AFTER)
    (server.root / "unused.py").write_text("x = 2\n")
    (row,) = differences(server, kernel)
    assert row["name"] == "kitchen" and row["saved"] != row["current"]
    assert {row["saved"][:7], row["current"][:7]} == {"sha256:"}
    kept = server.row(kernel)
    assert kept is not None and kept["state"] == "paused"
    assert server.resume(kernel=kernel, on_difference="accept")["outcome"] == "restored"
    assert server.run(kernel, "", "recipe.cook()") == "30"


def test_a_module_that_is_gone_is_said_and_its_return_makes_it_whole(server: ServerProcess) -> None:
    kernel = paused(server)
    (server.root / "kitchen.py").unlink()
    (row,) = differences(server, kernel)
    assert (row["name"], row["current"]) == ("kitchen", None)
    (server.root / "kitchen.py").write_text(BEFORE)
    assert server.resume(kernel=kernel)["outcome"] == "restored"
    assert server.run(kernel, "", "recipe.cook()") == "3"
