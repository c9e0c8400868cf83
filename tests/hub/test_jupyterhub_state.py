# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Tables: what the Hub says of a server, and what a token's scopes allow."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_pause.owners.jupyterhub_state import allows, derive, from_inside, server_of

STARTED = "2026-05-01T08:00:00.000000Z"


@pytest.mark.parametrize(
    ("server", "state", "phase"),
    [
        (None, "paused", None),
        ({"ready": True, "pending": None, "stopped": False, "started": STARTED}, "running", None),
        ({"ready": True, "pending": "stop", "stopped": False, "started": STARTED}, "pausing", "releasing"),
        ({"ready": False, "pending": "spawn", "stopped": False, "started": STARTED}, "resuming", "starting"),
        ({"ready": False, "pending": None, "stopped": True, "started": None}, "paused", None),
        ({"ready": True, "pending": "check", "stopped": False, "started": STARTED}, "unknown", None),
    ],
)
def test_state_of_a_server(server: dict[str, Any] | None, state: str, phase: str | None) -> None:
    view = derive(server)
    assert (view.state, view.phase, view.stateful) == (state, phase, False)


@pytest.mark.parametrize(
    ("server", "state"),
    [
        (None, "running"),
        ({"ready": False, "pending": "spawn", "started": STARTED}, "running"),
        ({"ready": True, "pending": "stop", "started": STARTED}, "pausing"),
        ({"ready": True, "pending": None, "started": STARTED}, "running"),
    ],
)
def test_the_server_itself_knows_that_it_runs(server: dict[str, Any] | None, state: str) -> None:
    assert from_inside(derive(server)).state == state


def test_a_time_without_a_zone_is_utc() -> None:
    view = derive({"ready": True, "started": "2026-05-01T08:00:00"})
    assert view.since is not None and view.since.isoformat() == "2026-05-01T08:00:00+00:00"


def test_default_and_named_servers() -> None:
    user = {"servers": {"": {"ready": True}, "gpu": {"ready": False}}}
    assert server_of(user, "") == {"ready": True} and server_of(user, "gpu") == {"ready": False}
    assert server_of(user, "other") is None and server_of({}, "") is None


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        (["users:activity!user=alice", "access:servers!server=alice/gpu"], False),
        (["delete:servers"], True),
        (["delete:servers!user=alice"], True),
        (["delete:servers!user=bob"], False),
        (["delete:servers!server=alice/gpu"], True),
        (["delete:servers!server=alice/"], False),
        (["delete:servers!group=staff"], None),
        (["read:servers!user=alice"], False),
        ([], False),
    ],
)
def test_scopes(scopes: list[str], allowed: bool | None) -> None:
    assert allows(scopes, "delete:servers", user="alice", server="gpu") is allowed
