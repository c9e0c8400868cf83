# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause snapshots` of a running Jupyter server's own workspace, and how snapshots are shown anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .commands import find_server
from .output import Output, age, moment, size, table
from .server import CliError

if TYPE_CHECKING:
    import argparse


def snapshots(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause snapshots` without a namespace: those of the workspace that the running server is in."""
    server = find_server(options)
    wanted = ids_to_delete(options.words)
    if wanted is None:
        if options.words:
            raise CliError("usage", "To see a workspace in a cluster, name its --namespace.", exit_code=2)
        rows: list[dict[str, Any]] = server.get("snapshots")["snapshots"]
        return show(rows, "this workspace", output)
    for snapshot in wanted:
        server.delete("snapshots", snapshot, force="true" if options.force else "false")
    return say_deleted(wanted, output)


def ids_to_delete(words: list[str]) -> list[str] | None:
    """The ids of `snapshots delete ID ...`; None when it is not that. Raises CliError `usage`."""
    if words[:1] != ["delete"]:
        return None
    if len(words) == 1:
        raise CliError("usage", "Which snapshots? `jupyter pause snapshots delete ID ...`.", exit_code=2)
    return words[1:]


def show(rows: list[dict[str, Any]], whose: str, output: Output) -> int:
    """Snapshots as the REST interface lists them, newest first."""
    output.result(command="snapshots", ok=True, snapshots=rows)
    if not rows:
        output.say(f"There are no pod snapshots of {whose}.")
        return 0
    output.say(table(["SNAPSHOT", "CREATED", "SIZE", "STATE", ""], [_line(row) for row in rows]))
    return 0


def _line(row: dict[str, Any]) -> list[str]:
    state = {True: "ready", False: "not ready", None: "unknown"}[row["ready"]]
    if row["deleting_since"]:
        state = f"deleting since {moment(row['deleting_since'])} ({age(row['deleting_since'])})"
    reason = row.get("reason") or {}
    note = "the next resume uses it" if row["next"] else str(reason.get("message") or reason.get("code") or "")
    return [row["id"], f"{moment(row['created'])} ({age(row['created'])})", size(row["bytes"]), state, note]


def say_deleted(names: list[str], output: Output) -> int:
    """The cluster was asked; deleting takes its time."""
    output.result(command="snapshots", ok=True, deleted=names)
    output.say(f"The cluster was asked to delete {', '.join(names)}. `jupyter pause snapshots` shows when it is done.")
    return 0
