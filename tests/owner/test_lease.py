# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""When another server's lease counts as given up: pods of a StatefulSet keep their names and share nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jupyter_pause.owners.lease import Holder

NOW = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
ME = replace(Holder.this_process(NOW), host="ws-w-0", pod="uid-2", namespace="pid:[2]", boot="b", machine="")


@pytest.mark.parametrize(
    ("what", "other", "age", "gone"),
    [
        ("the pod of before the pause", {"pod": "uid-1"}, 1, True),
        ("... on another node", {"pod": "uid-1", "boot": "c"}, 1, True),
        ("a pod of another name", {"pod": "uid-1", "host": "ws-v-0"}, 1, False),
        ("a pod whose name has no number: there may be two", {"pod": "uid-1", "host": "web"}, 1, False),
        ("not known to be a pod", {"pod": ""}, 1, False),
        ("another container of this pod, alive", {"pod": "uid-2"}, 12, False),
        ("the container of this pod that was killed", {"pod": "uid-2"}, 26, True),
        ("another machine, alive", {"pod": "", "host": "x"}, 50, False),
        ("another machine, silent", {"pod": "", "host": "x"}, 61, True),
    ],
)
def test_when_a_lease_counts_as_given_up(what: str, other: dict[str, str], age: int, gone: bool) -> None:
    me = replace(ME, host=other["host"]) if other.get("host") == "web" else ME
    heartbeat = (NOW - timedelta(seconds=age)).isoformat()
    holder = replace(ME, id="other", namespace="pid:[1]", pid=1, heartbeat=heartbeat, **other)  # type: ignore[arg-type]
    assert holder.is_gone(me, NOW) is gone


def test_a_lease_of_an_older_version_is_understood() -> None:
    content = dict(vars(ME))
    del content["pod"]
    holder = Holder.parse(content)
    assert holder is not None and holder.pod == "" and holder.host == ME.host
