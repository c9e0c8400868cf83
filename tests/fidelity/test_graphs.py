# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Random graphs of objects, with sharing, cycles and views, are the same after a round trip through a checkpoint."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.checkpoint.engine import Process
from tests.kernel import pythons

KINDS = (
    "list dict node slotted upper loud deque objects array large view tagged masked bytes numbers over memory tuple "
    "closure method weak error iterator plain"
).split()
NODES = st.tuples(st.sampled_from(KINDS), st.lists(st.integers(0, 30), max_size=3), st.integers(0, 200))
PLANS = st.lists(NODES, min_size=1, max_size=14)
#: Two processes serve all examples: a checkpoint is a new one each time.
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Process, Process]]:
    """A process that saves and one that loads."""
    base, secret = tmp_path_factory.mktemp("graphs"), secrets.token_hex(64)
    (base / "work").mkdir()
    made = [Process(pythons.own(), base / "store", secret, base / "work") for _ in range(2)]
    made[0].cells(Path(__file__).with_name("graphs.py").read_text(encoding="utf-8"))
    made[1].cells("import numpy")
    yield made[0], made[1]
    for process in made:
        process.end()


@QUICK
@given(plan=PLANS)
def test_a_graph_is_the_same_after_a_round_trip(two: tuple[Process, Process], plan: list[object]) -> None:
    saver, loader = two
    saver.cells(f"plan = {plan!r}\nroot = build(plan)")
    before = saver.value("describe(root)")
    checkpoint = saver.save()
    result = loader.load(checkpoint)
    assert result["status"] == "ok" and result["losses"] == [] and result["mismatched"] == [], result
    assert loader.value("describe(root)") == before
    # What shared memory or was one object before does so now: the same changes show in the same places.
    for process in (saver, loader):
        process.cells("touch(root)")
    assert loader.value("describe(root)") == saver.value("describe(root)")
    # And once more, from mapped arrays.
    again = loader.save()
    changed = loader.value("describe(root)")
    assert saver.load(again)["losses"] == []
    assert saver.value("describe(root)") == changed
