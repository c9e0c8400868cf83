# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause now NAME --namespace NS`: says what will be kept, asks, follows to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .output import Output, duration
from .server import CliError
from .workspaces_follow import Follow
from .workspaces_text import promise, reason_of, row

if TYPE_CHECKING:
    import argparse

    from jupyter_pause.owners.base import OwnerView

    from .workspaces_keep import Keeps
    from .workspaces_target import Target


async def pause(target: Target, options: argparse.Namespace, output: Output) -> int:
    """Pause it. The target has been started."""
    view = target.view()
    if view.state == "paused":
        return _done(target, output, view, None, "was paused already")
    if view.state == "pausing":
        output.complain("A pause is under way already; following it.")
        keeps = None
    else:
        keeps = await target.keeps()
        if options.preview:
            return _preview(target, output, keeps)
        await target.require_right("pause")
        if keeps.memory == "snapshot":
            await target.require_store()
        _agree(target, options, output, keeps)
        await _ask(target, keeps, accepted=_accepted(options))
    if options.no_wait:
        return _done(target, output, target.view(), keeps, "was asked to pause")
    follow = Follow(target, output, verb="Pausing", timeout=options.timeout)
    follow.asked = True
    view = await follow.until(_Paused(target))
    words = f"is paused after {duration(follow.seconds)}: {_kept(view)}"
    code = _done(target, output, view, keeps, words, seconds=round(follow.seconds, 3))
    output.say(f"Bring it back with: jupyter pause resume {target.name} --namespace {target.namespace}")
    return code


def _preview(target: Target, output: Output, keeps: Keeps) -> int:
    output.result(command="now", ok=True, preview=keeps.row(), workspace=_row(target, target.view()))
    output.say(promise(target.name, keeps))
    return 0


def _accepted(options: argparse.Namespace) -> bool:
    return bool(options.yes) or options.on_loss == "accept"


def _agree(target: Target, options: argparse.Namespace, output: Output, keeps: Keeps) -> None:
    """Say what will be kept; without a snapshot somebody has to accept that first. Raises `files_only` (3)."""
    text = promise(target.name, keeps)
    if keeps.memory == "snapshot" or _accepted(options):
        output.say(text)
        return
    if output.can_ask and options.on_loss is None:
        output.complain(text)
        if output.ask("Pause anyway?"):
            return
        raise CliError("files_only", "Nothing was changed.", exit_code=3, body={"params": keeps.row()})
    raise CliError(
        "files_only", f"{text} Nothing was changed. To accept that: --yes.", exit_code=3, body={"params": keeps.row()}
    )


async def _ask(target: Target, keeps: Keeps, *, accepted: bool) -> None:
    """Send the request. A snapshot that was promised but is not made (the add-on is down: its webhook is
    `failurePolicy: Ignore`) is no reason to lose the memory: the request is taken back at once."""
    uid = await target.pod_uid()
    if await target.pause() == "held" or keeps.memory != "snapshot" or accepted:
        return
    await target.take_back()
    gone = await target.pod_uid() != uid
    raise CliError(
        "snapshot_not_made",
        f"The cluster began to pause {target.name} without the snapshot that was to be made: the snapshot add-on does "
        "not answer. The request was taken back at once"
        + (", but its pod had begun to end already: its memory may be lost." if gone else ", and its pod runs on.")
        + " To pause with files only: --yes.",
        body={"workspace": _row(target, target.view())},
    )


class _Paused:
    """Has it come to `paused`? Raises CliError when it ended in another way.

    Some owners' word is old for a moment after the request (cases.md S15): only a pause that was seen under way can
    have been taken back.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._under_way = False

    def __call__(self, view: OwnerView) -> bool:
        """One look."""
        name, body = self._target.name, {"workspace": _row(self._target, view)}
        if view.state == "paused":
            return True
        if view.error is not None and view.error.code in ("workspace_missing", "workspace_deleted"):
            raise CliError("workspace_not_found", f"{name} was deleted meanwhile.", body=body)
        if view.state == "failed":
            raise CliError("pause_failed", f"{name} cannot be paused: {reason_of(view)}.", body=body)
        if view.state in ("running", "ready", "waiting", "resuming") and self._under_way:
            raise CliError(
                "pause_taken_back",
                f"The pause of {name} was taken back, by itself because no snapshot could be made in time, or by "
                f"somebody else. It is {view.state}; its memory is as it was if its pod never ended.",
                body=body,
            )
        self._under_way = self._under_way or view.state == "pausing"
        return False


def _kept(view: OwnerView) -> str:
    if view.snapshot:
        return f"its memory is in snapshot {view.snapshot}, its files are on its volumes"
    return "files only"


def _row(target: Target, view: OwnerView) -> dict[str, Any]:
    return row(target.namespace, target.name, target.kind, view)


def _done(
    target: Target, output: Output, view: OwnerView, keeps: Keeps | None, words: str, *, seconds: float | None = None
) -> int:
    output.result(
        command="now",
        ok=True,
        workspace=_row(target, view),
        keeps=None if keeps is None else keeps.row(),
        seconds=seconds,
    )
    output.say(f"{target.name} {words}.")
    return 0
