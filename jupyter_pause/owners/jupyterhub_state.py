# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What JupyterHub says about a server, and what a token may do with it. Pure: no input, no output.

Sources: JupyterHub's REST reference (server models, scopes) and `apihandlers/users.py`, `scopes.py` of JupyterHub 5
and 6. `GET /user` lists a token's scopes in their expanded form, each with its filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from jupyter_pause.owners.base import OwnerView
from jupyter_pause.states import Reason


def derive(server: Mapping[str, Any] | None) -> OwnerView:
    """The view of one server; `server` is its model, None where the Hub lists none (it is stopped and forgotten)."""
    if server is None:
        return OwnerView("paused", stateful=False)
    started = _time(server.get("started"))
    timeline = {"started": started} if started is not None else {}
    match server.get("pending"):
        case "stop":
            return OwnerView("pausing", "releasing", stateful=False, timeline=timeline)
        case "spawn":
            return OwnerView("resuming", "starting", since=started, stateful=False, timeline=timeline)
        case None | False | "":
            pass
        case other:  # "check", and whatever a later Hub may call it
            params = {"detail": str(other)}
            return OwnerView("unknown", stateful=False, error=Reason(code="hub_pending", params=params))
    if server.get("ready"):
        return OwnerView("running", since=started, stateful=False, timeline=timeline)
    return OwnerView("paused", stateful=False, timeline=timeline)


def from_inside(view: OwnerView) -> OwnerView:
    """The same, seen by the server itself: while it runs, it runs.

    The Hub says `spawn` until it has found the server, which may have looked for its owner by then; and a server that
    a token may not read is left out (both seen: JupyterHub 6).
    """
    return (
        view if view.state in ("running", "pausing") else OwnerView("running", stateful=False, timeline=view.timeline)
    )


def server_of(user: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The server called `name` ("" is the default one) in a user's model; None where it is not listed."""
    found = (user.get("servers") or {}).get(name)
    return found if isinstance(found, Mapping) else None


def allows(scopes: Iterable[str], scope: str, *, user: str, server: str) -> bool | None:
    """Whether these expanded scopes include `scope` for this server.

    None where only a group's filter could: which groups a user is in may not be readable.
    """
    unsure = False
    for granted in scopes:
        name, _, limit = granted.partition("!")
        if name != scope:
            continue
        kind, _, value = limit.partition("=")
        if not limit or (kind == "user" and value == user) or (kind == "server" and value == f"{user}/{server}"):
            return True
        unsure = unsure or kind == "group"
    return None if unsure else False


def _time(value: Any) -> datetime | None:
    """The Hub writes UTC; older ones without a zone."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
