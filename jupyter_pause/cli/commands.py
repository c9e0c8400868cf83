# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause status|now|resume`. Each returns its exit code; errors are raised as CliError."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .follow import Follower, question_text, show_question
from .interrupt import HeldInterrupt
from .output import Output, age, differences_table, duration, losses_table, moment, size, table
from .server import ApiCallError, CliError, Server, ServerInfo, choose_server, running_servers
from .workspace_here import means_workspace, say_workspace

if TYPE_CHECKING:
    import argparse

#: The shortest beginning of an id that is taken for it.
SHORTEST_PREFIX = 4


# --- the server ----------------------------------------------------------------------------------------------------


def find_server(options: argparse.Namespace) -> Server:
    """The server that is meant by --url, --server or the current folder. Raises NoServerError (exit code 4)."""
    token = options.token if options.token is not None else os.environ.get("JUPYTER_TOKEN")
    if options.url is not None:
        url = options.url if options.url.endswith("/") else options.url + "/"
        return Server(ServerInfo(url=url, token=token or _known_token(url)))
    info = choose_server(_running(), options.server, Path.cwd())
    if token:
        info = ServerInfo(info.url, token, info.root_dir, info.pid, info.password)
    return Server(info)


def _running() -> list[ServerInfo]:
    from jupyter_core.paths import jupyter_runtime_dir

    return running_servers(Path(jupyter_runtime_dir()))


def _known_token(url: str) -> str:
    """The token of a server of this user that was given by its URL."""
    return next((info.token for info in _running() if info.url.rstrip("/") == url.rstrip("/")), "")


def find_kernel(rows: list[dict[str, Any]], target: str, server: Server) -> dict[str, Any]:
    """The kernel row that `target` means: an id (or its beginning), or a notebook's path.

    Raises CliError `kernel_not_found` (exit code 1) or `ambiguous` (2).
    """
    exact = [row for row in rows if row["id"] == target]
    if exact:
        return exact[0]
    paths = _possible_paths(target, server)
    matches = [row for row in rows if row.get("path") in paths]
    if not matches and len(target) >= SHORTEST_PREFIX:
        matches = [row for row in rows if row["id"].startswith(target)]
    if not matches:
        matches = [row for row in rows if os.path.basename(row.get("path") or "") == target]
    if len(matches) == 1:
        return matches[0]
    known = ", ".join(_label(row) for row in matches or rows) or "none"
    if matches:
        raise CliError("ambiguous", f"{target!r} fits several kernels: {known}. Give the kernel's id.", exit_code=2)
    raise CliError("kernel_not_found", f"There is no notebook or kernel {target!r} on this server. There are: {known}.")


def _possible_paths(target: str, server: Server) -> set[str]:
    """`target` as the server names it: below its root folder, also when it was typed relative to this folder."""
    paths = {target.strip("/")}
    if server.info.root_dir:
        root = os.path.realpath(server.info.root_dir)
        relative = os.path.relpath(os.path.realpath(target), root)
        if not relative.startswith(".."):
            paths.add(relative.replace(os.sep, "/"))
    return paths


def _label(row: dict[str, Any]) -> str:
    return f"{row['path']} ({row['id'][:8]})" if row.get("path") else str(row["id"])


def _short(row: dict[str, Any]) -> str:
    return str(row.get("path") or f"kernel {row['id'][:8]}")


# --- status --------------------------------------------------------------------------------------------------------


def status(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause status`."""
    server = find_server(options)
    state = server.get("state")
    output.result(command="status", ok=True, server=server.info.public(), state=state)
    folder = f", folder {server.info.root_dir}" if server.info.root_dir else ""
    output.say(f"Jupyter server at {server.info.url}{folder}")
    say_workspace(output, state)
    _say_last_stop(output, state)
    _say_snapshots(output, state)
    if not state["kernels"]:
        output.say("No kernel is running and none is paused.")
        return 0
    rows = [_status_row(row) for row in state["kernels"]]
    output.say(table(["NOTEBOOK", "KERNEL", "STATE", "SINCE", "CHECKPOINT", ""], rows))
    for row in state["kernels"]:
        if row.get("aborted_cells"):
            output.say(f"{_short(row)}: {len(row['aborted_cells'])} cells did not run because the pause came first.")
        if row.get("missed_output"):
            output.say(f"{_short(row)}: {_missed_output(row['missed_output'])}")
    for reason in state["blocked_by"]:
        if reason["code"] not in {(row.get("reason") or {}).get("code") for row in state["kernels"]}:
            output.say(f"Pausing is not possible now: {_reason(reason)}.")
    if state.get("operation"):
        from .follow import progress_line

        output.say(progress_line(state["operation"]))
    return 0


def _say_last_stop(output: Output, state: dict[str, Any]) -> None:
    """What the last stop of the server did not keep; nothing when it kept everything."""
    stop = state.get("last_stop") or {}
    lost = [kernel for kernel in stop.get("kernels") or [] if not kernel["saved"]]
    if lost:
        names = ", ".join(kernel.get("path") or f"kernel {kernel['kernel'][:8]}" for kernel in lost)
        output.say(f"When the server was stopped ({moment(stop['at'])}), the state of these was not saved: {names}.")


def _say_snapshots(output: Output, state: dict[str, Any]) -> None:
    """The one sentence on exact snapshots, once it is known whether they can be had; none where they are off."""
    snapshots = state.get("process_snapshots") or {}
    if snapshots.get("usable"):
        output.say("Exact snapshots work here (criu): threads, generators and children come back too.")
    elif snapshots.get("reason") and snapshots["reason"]["code"] != "snapshots_off":
        output.say(_reason(snapshots["reason"]))


def _status_row(row: dict[str, Any]) -> list[str]:
    checkpoint = row.get("checkpoint")
    state = row["state"] + (f" ({row['phase']})" if row.get("phase") else "")
    note = row.get("outcome") or ""
    if row.get("reason"):
        note = _reason(row["reason"])
    saved = f"{checkpoint['id'][:8]}, {size(checkpoint['bytes'])}, {age(checkpoint['created'])}" if checkpoint else "-"
    return [row.get("path") or "-", row["id"][:8], state, age(row["since"]), saved, note]


def _missed_output(missed: dict[str, Any]) -> str:
    """Why the notebook may lack output."""
    when = f"between {moment(missed['since'])} and {moment(missed['until'])}"
    if missed["cause"] == "no_server":
        return f"the kernel went on without a server; what it printed {when} is not in the notebook."
    count = f"{missed['messages']} outputs" if missed["messages"] is not None else "output"
    return f"{count} came {when} while no page was connected; the notebook may lack them."


def _reason(reason: dict[str, Any]) -> str:
    return str(reason.get("message") or reason["code"].replace("_", " "))


# --- now -----------------------------------------------------------------------------------------------------------


def now(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause now`."""
    server = find_server(options)
    state = server.get("state")
    rows = state["kernels"]
    if means_workspace(options, state):
        return _workspace_now(options, output, server)
    wanted = _chosen(options, rows, server)
    if options.preview:
        return _preview(server, output, wanted)
    body = {
        "kernels": None if options.all else [row["id"] for row in wanted],
        "on_loss": options.on_loss or "refuse",
        "when_busy": options.when_busy,
    }
    held = HeldInterrupt(output)
    operation = _begin(server, held, output, "pause", body, "on_loss", told=options.on_loss is not None)
    accept = None if options.on_loss is None else options.on_loss == "accept"
    ended = Follower(server, output, accept=accept, held=held).follow(operation)
    after = [row for row in server.get("state")["kernels"] if row["id"] in ended["kernels"]]
    if ended["state"] != "done":
        raise _failure(ended, after)
    output.result(command="now", ok=True, server=server.info.public(), operation=ended, kernels=after)
    for row in after:
        output.say(_paused_sentence(row))
    for row in after:
        output.say(f"Bring it back with: jupyter pause resume {row['path'] or row['id']}")
    return 0


def _workspace_now(options: argparse.Namespace, output: Output, server: Server) -> int:
    """The whole pod. With a snapshot this very command is in it, and goes on when the pod is back."""
    body = {"scope": "workspace", "on_loss": options.on_loss or "refuse", "when_busy": options.when_busy}
    output.say("Pausing the whole workspace (name notebooks to pause only those).")
    held = HeldInterrupt(output)
    operation = _begin(server, held, output, "pause", body, "on_loss", told=options.on_loss is not None)
    accept = None if options.on_loss is None else options.on_loss == "accept"
    ended = Follower(server, output, accept=accept, held=held).follow(operation)
    if ended["state"] != "done":
        raise _failure(ended, [])
    state = server.get("state")
    output.result(command="now", ok=True, server=server.info.public(), operation=ended, workspace=state["workspace"])
    say_workspace(output, state)
    return 0


def _chosen(options: argparse.Namespace, rows: list[dict[str, Any]], server: Server) -> list[dict[str, Any]]:
    """The kernels that are meant; without a target there must be exactly one that can be paused."""
    if options.target and options.all:
        raise CliError("usage", "Give notebooks or --all, not both.", exit_code=2)
    if options.target:
        return [find_kernel(rows, target, server) for target in options.target]
    possible = [row for row in rows if row["pausable"] and row["state"] in ("running", "ready")]
    if options.all and possible:
        return possible
    if not possible:
        why = next((_reason(row["reason"]) for row in rows if row.get("reason")), "")
        raise CliError("nothing_to_pause", f"No kernel can be paused now{': ' + why if why else ''}.")
    if len(possible) > 1:
        names = ", ".join(_label(row) for row in possible)
        raise CliError("usage", f"Which one? Name it, or use --all. Running: {names}.", exit_code=2)
    return possible


def _begin(
    server: Server, held: HeldInterrupt, output: Output, call: str, body: dict[str, Any], consent: str, *, told: bool
) -> dict[str, Any]:
    """Start an operation, or join the one of the same kind that runs already. Asks once when consent is needed.

    Ctrl-C is held from here until the follower knows the operation.
    """
    held.hold()
    try:
        operation: dict[str, Any] = server.post(call, body=body)["operation"]
        return operation
    except ApiCallError as error:
        held.release()
        if error.code == "operation_in_progress" and error.body.get("operation"):
            running: dict[str, Any] = server.get("operations", error.body["operation"])
            if running["kind"] == call:
                output.complain("This is under way already; following it.")
                return running
        if error.status != 422 or told or not output.can_ask:
            raise
        show_question(output, error.body)
        if not output.ask(question_text(error.code)):
            raise CliError(error.code, "Nothing was changed.", exit_code=3, body=error.body) from None
        return _begin(server, held, output, call, {**body, consent: "accept"}, consent, told=True)


def _failure(operation: dict[str, Any], rows: list[dict[str, Any]]) -> CliError:
    """A failed or cancelled operation as an error; exit code 3 when only a decision was missing."""
    names = ", ".join(f"{_short(row)} is {row['state']}" for row in rows)
    if operation["state"] == "cancelled":
        return CliError("cancelled", f"Cancelled: {names or 'nothing was changed'}.", body={"operation": operation})
    error = operation.get("error") or {}
    code = str(error.get("code") or "failed")
    message = f"{error.get('message') or 'The operation failed.'}{f' ({names}.)' if names else ''}"
    exit_code = 3 if code in ("would_lose", "environment_differs") else 1
    return CliError(code, message, exit_code=exit_code, body={**error, "operation": operation})


def _paused_sentence(row: dict[str, Any]) -> str:
    text = f"{_short(row)} is {row['state']}"
    report = row.get("last_pause")
    if report:
        text += f": {size(report['bytes'])} saved in {duration(report['seconds'])}"
        text += f" (checkpoint {report['checkpoint'][:8]})" if report["checkpoint"] else ""
        if report.get("snapshot"):
            text += f", and an exact snapshot of {size(report['snapshot_bytes'])}"
        if report.get("process_gone"):
            text += f"; the process has ended and {size(report.get('rss_before'))} of memory are free"
        text += "".join(_device_clause(device) for device in report.get("vram") or [])
        text += _shadow_clause(report.get("shadow") or {})
    return text + "."


#: Why a checkpoint was not tried out before the process ended.
_NOT_TRIED = {
    "off": "PauseApp.shadow_load is off",
    "time": "it took longer than PauseApp.shadow_load_timeout",
    "memory": "there was not enough memory for it",
    "stopping": "the server was being stopped",
}


def _shadow_clause(report: dict[str, Any]) -> str:
    """What was not checked is said; that all was well needs no words."""
    if report.get("state") == "not_checked":
        why = _NOT_TRIED.get(str(report.get("code")), "the process for it could not be used")
        return f"; the checkpoint was not tried out: {why}"
    names = [loss["path"] for loss in report.get("unchecked") or []]
    return f"; not tried out: {', '.join(names)}" if names else ""


def _device_clause(device: dict[str, Any]) -> str:
    """S43: both numbers, and in words where the second is not lower."""
    before, after = device["before"], device["after"]
    text = f"; {device['device']}: {size(before)} in use before, {'unknown' if after is None else size(after)} after"
    return text + (", not less" if after is not None and after >= before > 0 else "")


def _preview(server: Server, output: Output, rows: list[dict[str, Any]]) -> int:
    """What would be restored, without pausing anything."""
    found = [server.get("inventory", kernel=row["id"], wait="10") for row in rows]
    output.result(command="now", ok=True, server=server.info.public(), preview=found)
    for row, inventory in zip(rows, found, strict=True):
        _say_inventory(output, row, inventory)
    return 0


def _say_inventory(output: Output, row: dict[str, Any], inventory: dict[str, Any]) -> None:
    from jupyter_pause.inventory.reasons import sentence

    output.say(f"What will be restored of {_short(row)} (as of {age(inventory['taken_at'])}):")
    exact = inventory.get("snapshot") or {}
    items = [
        [section, item["name"], _item_size(item), *_fates(item, exact), sentence(item.get("reason"))]
        for section in ("files", "documents", "ram", "vram", "processes", "connections")
        for item in inventory[section]
    ]
    fates = ["WITH SNAPSHOT", "BY CHECKPOINT"] if exact.get("usable") else ["FATE"]
    output.say(table(["", "NAME", "SIZE", *fates, "WHY"], items))
    for reason in exact.get("reasons") or []:
        if reason["code"] != "snapshots_off":
            output.say(f"No exact snapshot: {_reason(reason)}")
    if not inventory["complete"]:
        output.say("The list is not complete: the kernel is busy or has not been looked through yet.")
    if inventory["losses"]:
        where = " if only the checkpoint can be used" if exact.get("usable") else ""
        output.say(f"These would not come back{where}:")
        output.say(losses_table(inventory["losses"]))
    estimate = inventory["estimate"]
    output.say(
        f"For {size(estimate['bytes'])}, pausing takes about {duration(estimate['pause_seconds'])} "
        f"and resuming {duration(estimate['resume_seconds'])} ({estimate['basis']})."
    )


def _fates(item: dict[str, Any], exact: dict[str, Any]) -> list[str]:
    """By the snapshot and by the checkpoint; only the latter where no snapshot can be had."""
    return [item.get("with_snapshot") or "", item["fate"]] if exact.get("usable") else [item["fate"]]


def _item_size(item: dict[str, Any]) -> str:
    return size(item["bytes"], complete=item["complete"]) if item["bytes"] is not None else ""


# --- resume --------------------------------------------------------------------------------------------------------


def resume(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause resume`."""
    server = find_server(options)
    rows = server.get("state")["kernels"]
    body = _what_to_resume(options, rows, server)
    _refuse_restarted(next((row for row in rows if row["id"] == body.get("kernel")), None))
    if options.on_difference is not None:
        body["on_difference"] = options.on_difference
    if options.source is not None:
        body["from"] = options.source
    held = HeldInterrupt(output)
    operation = _begin(server, held, output, "resume", body, "on_difference", told=options.on_difference is not None)
    accept = None if options.on_difference is None else options.on_difference == "accept"
    ended = Follower(server, output, accept=accept, held=held).follow(operation)
    after = [row for row in server.get("state")["kernels"] if row["id"] in ended["kernels"]]
    if ended["state"] != "done":
        raise _failure(ended, after)
    fresh = ended.get("outcome") == "fresh"
    output.result(command="resume", ok=not fresh, server=server.info.public(), operation=ended, kernels=after)
    for row in after:
        _say_resumed(output, row)
    return 1 if fresh else 0


def _refuse_restarted(row: dict[str, Any] | None) -> None:
    """A kernel that was restarted while it was paused runs and is empty: say where its variables are."""
    if row is None or not row.get("checkpoint") or (row.get("reason") or {}).get("code") != "restarted_while_paused":
        return
    checkpoint = row["checkpoint"]["id"][:8]
    raise CliError(
        "not_paused",
        f"{_short(row)} was restarted while it was paused, so its kernel runs and is empty. Its variables are in "
        f"checkpoint {checkpoint}: jupyter pause resume --checkpoint {checkpoint}",
    )


def _what_to_resume(options: argparse.Namespace, rows: list[dict[str, Any]], server: Server) -> dict[str, Any]:
    """The body of `POST resume`: a paused kernel, else a checkpoint by its id."""
    from .checkpoints import OnlineCheckpoints, full_id

    if options.checkpoint is not None:
        body = {"checkpoint": full_id(OnlineCheckpoints(server), options.checkpoint)}
        if options.target is not None:
            body["path"] = options.target
        return body
    paused = [row for row in rows if row["state"] == "paused"]
    if options.target is not None:
        return {"kernel": find_kernel(rows, options.target, server)["id"]}
    if len(paused) == 1:
        return {"kernel": paused[0]["id"]}
    if not paused:
        raise CliError(
            "nothing_to_resume", "Nothing is paused here. `jupyter pause list` shows the checkpoints on disk."
        )
    names = ", ".join(_label(row) for row in paused)
    raise CliError("usage", f"Which one? Paused: {names}.", exit_code=2)


def _say_resumed(output: Output, row: dict[str, Any]) -> None:
    report = row.get("last_resume")
    if report is None:
        output.say(f"{_short(row)} is {row['state']}.")
        return
    when = f"from the {report['via']} of {moment(report['checkpoint_created'])}"
    words = {
        "restored": f"is back, restored {when}",
        "partial": f"is back in part, {when}",
        "fresh": "was started fresh: nothing was brought back",
    }
    proof = report["proof"]
    checked = (
        "it is the same process, with everything in it."
        if report["via"] == "snapshot"
        else f"{proof['compared']} values were compared, {len(proof['mismatched'])} differ."
    )
    if report.get("fallback"):
        output.say(f"The exact snapshot could not be used: {_reason(report['fallback'])}")
    output.say(f"{_short(row)} {words[report['outcome']]}, in {duration(report['seconds'])}; {checked}")
    if report.get("differences"):
        output.say("The machine is not the one that it was saved on:")
        output.say(differences_table(report["differences"]))
    if proof["mismatched"]:
        output.say("Not as they were saved: " + ", ".join(proof["mismatched"]) + ".")
    if report["losses"]:
        output.say("These did not come back:")
        output.say(losses_table(report["losses"]))
    if report["ports_changed"]:
        output.say("Its network ports had to change; open notebooks reconnect by themselves.")
