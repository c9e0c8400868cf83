# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause list|show|delete`: checkpoints, from a server or from their folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .commands import SHORTEST_PREFIX, find_server
from .output import Output, age, losses_table, moment, size, table
from .server import CliError, NoServerError, Server

if TYPE_CHECKING:
    import argparse

    from .offline import OfflineCheckpoints


class OnlineCheckpoints:
    """Checkpoints as a server lists them."""

    source = "server"

    def __init__(self, server: Server) -> None:
        self.server = server

    def list(self) -> list[dict[str, Any]]:
        """Rows, newest first."""
        rows: list[dict[str, Any]] = self.server.get("checkpoints")["checkpoints"]
        return rows

    def show(self, checkpoint_id: str) -> dict[str, Any]:
        """One row."""
        row: dict[str, Any] = self.server.get("checkpoints", checkpoint_id)
        return row

    def delete(self, checkpoint_id: str, *, force: bool) -> None:
        """Delete for good."""
        self.server.delete("checkpoints", checkpoint_id, force="true" if force else "false")


def _checkpoints(options: argparse.Namespace, output: Output) -> OnlineCheckpoints | OfflineCheckpoints:
    """Those of a running server, else those in the folder: no server is needed to look at the disk."""
    from .offline import OfflineCheckpoints, configured_folder

    if options.dir is not None:
        return OfflineCheckpoints(Path(options.dir).expanduser().absolute())
    named = options.url is not None or options.server is not None
    if not options.offline:
        try:
            server = find_server(options)
            server.get("state")
            return OnlineCheckpoints(server)
        except NoServerError:
            if named:
                raise
        except CliError as error:
            if named or error.code != "several_servers":
                raise
    return OfflineCheckpoints(configured_folder())


def full_id(checkpoints: OnlineCheckpoints | OfflineCheckpoints, given: str) -> str:
    """The id that `given` begins; raises CliError `not_found` or `ambiguous`."""
    if len(given) == 32:
        return given
    matches = [row["id"] for row in checkpoints.list() if len(given) >= SHORTEST_PREFIX and row["id"].startswith(given)]
    if len(matches) == 1:
        return str(matches[0])
    if matches:
        text = f"{given!r} is the beginning of {len(matches)} checkpoints. Give more of it."
        raise CliError("ambiguous", text, exit_code=2)
    raise CliError("not_found", f"There is no checkpoint {given!r}. `jupyter pause list` shows those on disk.")


def list_checkpoints(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause list`."""
    checkpoints = _checkpoints(options, output)
    rows = checkpoints.list()
    output.result(command="list", ok=True, source=checkpoints.source, checkpoints=rows)
    if not rows:
        output.say(f"There are no checkpoints{_where(checkpoints)}.")
        return 0
    output.say(table(["ID", "CREATED", "SIZE", "NOTEBOOK", "VARIABLES", "STATE"], [_list_row(row) for row in rows]))
    output.say(f"{len(rows)} checkpoints, {size(sum(row['bytes'] for row in rows))}{_where(checkpoints)}.")
    return 0


def _where(checkpoints: OnlineCheckpoints | OfflineCheckpoints) -> str:
    if isinstance(checkpoints, OnlineCheckpoints):
        return f" on the server at {checkpoints.server.info.url}"
    return f" in {checkpoints.folder}"


def _list_row(row: dict[str, Any]) -> list[str]:
    state = "in use" if row["in_use"] else "kept"
    if row["damaged"]:
        state = f"damaged ({row['damaged']})"
    elif not row["signature_ok"]:
        state = "signature wrong"
    variables = str(len(row["variables"])) + (f", {len(row['losses'])} lost" if row["losses"] else "")
    return [row["id"][:12], moment(row["created"]), size(row["bytes"]), row["path"] or "-", variables, state]


def show(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause show`."""
    checkpoints = _checkpoints(options, output)
    row = checkpoints.show(full_id(checkpoints, options.id))
    output.result(command="show", ok=True, source=checkpoints.source, checkpoint=row)
    python = row["python"].get("version", "unknown")
    facts = [
        ("checkpoint", row["id"]),
        ("notebook", row["path"] or "-"),
        ("kernel", f"{row['kernel_name'] or '-'}, Python {python}"),
        ("created", f"{moment(row['created'])} ({age(row['created'])}), because of: {row['cause'] or 'unknown'}"),
        ("size", size(row["bytes"])),
        ("signature", "right" if row["signature_ok"] else "wrong: it was changed after it was written"),
        ("in use", "yes: a paused notebook comes back from it" if row["in_use"] else "no"),
    ]
    if row["damaged"]:
        facts.append(("damaged", row["damaged"]))
    for name, value in facts:
        output.say(f"{name + ':':<12}{value}")
    _say_variables(output, row)
    return 0


def _say_variables(output: Output, row: dict[str, Any]) -> None:
    from jupyter_pause.inventory.reasons import sentence

    if row["variables"]:
        lines = [
            [v["name"], str(v.get("type") or ""), size(v.get("bytes")), v["fate"], sentence(v.get("reason"))]
            for v in row["variables"]
        ]
        output.say()
        output.say(table(["VARIABLE", "TYPE", "SIZE", "FATE", "WHY"], lines))
    if row["losses"]:
        output.say("\nNot in it:")
        output.say(losses_table(row["losses"]))
    if row["not_stored"]:
        names = ", ".join(str(item.get("name")) for item in row["not_stored"])
        output.say(f"\nEnvironment variables that look like credentials were not stored: {names}.")


def delete(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause delete`."""
    checkpoints = _checkpoints(options, output)
    names = [full_id(checkpoints, given) for given in options.id]
    for name in names:
        checkpoints.delete(name, force=options.force)
        output.say(f"Deleted checkpoint {name}.")
    output.result(command="delete", ok=True, source=checkpoints.source, deleted=names)
    return 0
