# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""One of everything: back, or named; never a crash, never silence, never another type."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from . import zoo
from .engine import Process, python

Start = Callable[..., Process]


@pytest.mark.parametrize(
    ("saved", "loaded"), [("3.11", "3.11"), ("3.11", "3.9"), ("3.9", "3.13"), ("3.13", "3.12"), ("3.12", "3.11")]
)
def test_every_object_is_back_or_named(start: Start, again: Start, saved: str, loaded: str) -> None:
    process = start(python(saved)).cells(zoo.CELL)
    scanned = process.scan()
    back = again(process, python(loaded))
    result = back.loaded  # type: ignore[attr-defined]
    lost = {loss["path"] for loss in result["losses"]}
    # Before Python 3.10 an asyncio lock holds its event loop, and a key of `cmp_to_key` does not tell its function.
    assert lost == zoo.LOST | ({"lk._loop", "cmpk"} if saved == "3.9" else set())
    assert {loss["path"] for loss in scanned["losses"]} == lost, "what is said before the click is what happens"
    assert result["mismatched"] == [] and result["compared"] > 120
    fates = {variable["name"]: variable["fate"] for variable in scanned["variables"]}
    assert fates == {variable["name"]: variable["fate"] for variable in result["variables"]}
    back.true(*zoo.CHECKS)
