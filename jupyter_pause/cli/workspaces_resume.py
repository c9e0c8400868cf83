# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause resume|wait NAME --namespace NS`: back to running, and how: restored, fresh or unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .output import Output, differences_table, duration
from .server import CliError
from .workspaces_follow import Follow
from .workspaces_text import (
    SNAPSHOT_PROBLEMS,
    UNKNOWN_DIFFERENCES,
    outcome_words,
    reason_of,
    row,
    state_words,
)

if TYPE_CHECKING:
    import argparse

    from jupyter_pause.owners.base import OwnerView

    from .workspaces_outcome import Outcome
    from .workspaces_target import Target


async def resume(target: Target, options: argparse.Namespace, output: Output) -> int:
    """Bring it back. The target has been started."""
    if options.without_memory or options.snapshot is not None:
        from .workspaces_cold import resume_otherwise

        return await resume_otherwise(target, options, output)
    view = target.view()
    if view.state == "running":
        return report(target, output, await target.outcome(None), expected=None, words="is running already")
    follow = Follow(target, output, verb="Resuming", timeout=options.timeout)
    if view.state == "pausing":
        if options.take_back:
            return await _take_back(target, output, follow)
        view = await end_of_pause(target, follow, view)
    expected = view.snapshot
    if view.state == "paused":
        await target.require_right("resume")
        await _agree(target, options, output, view)
        await target.resume()
    else:
        output.complain("It is on its way back already; following it.")
    if options.no_wait:
        output.result(command="resume", ok=True, workspace=_row(target, target.view()), outcome=None)
        output.say(f"{target.name} was asked to come back.")
        return 0
    follow.asked = True
    await follow.until(Back(target))
    words = f"is running after {duration(follow.seconds)}"
    if follow.waited_for_capacity >= 1:
        words += f" ({duration(follow.waited_for_capacity)} of it waiting for capacity)"
    return report(target, output, await target.outcome(expected), expected, words, follow)


async def end_of_pause(target: Target, follow: Follow, view: OwnerView) -> OwnerView:
    """A pod on its way out is waited for; a snapshot in the making is not cut short unasked."""
    if view.phase == "releasing":
        return await follow.until(lambda view: view.state != "pausing")
    where = f"{target.name} --namespace {target.namespace}"
    raise CliError(
        "operation_in_progress",
        f"{target.name} is {state_words(view)}. Wait for that with `jupyter pause wait {where} --for paused`, "
        f"or have it taken back with `jupyter pause resume {where} --take-back`.",
        body={"workspace": _row(target, view)},
    )


async def _take_back(target: Target, output: Output, follow: Follow) -> int:
    """Undo a pause that is under way."""
    uid = await target.pod_uid()
    await target.require_right("take back the pause of")
    if not await target.take_back():
        raise CliError(
            "too_late", f"It is too late to take the pause of {target.name} back: its pod is gone. Resume it instead."
        )
    follow.asked = True
    view = await follow.until(Back(target))
    same = uid is not None and await target.pod_uid() == uid
    output.result(command="resume", ok=same, workspace=_row(target, view), outcome=None, taken_back=True, same_pod=same)
    output.say(
        f"The pause of {target.name} was taken back. "
        + ("Its pod never ended; its memory is as it was." if same else "But its pod is a new one: it is fresh.")
    )
    return 0 if same else 1


async def _agree(target: Target, options: argparse.Namespace, output: Output, view: OwnerView) -> None:
    """Whatever stands between the snapshot and the pod-to-be is said first. Raises `workspace_differs` (3)."""
    if view.snapshot is None:
        output.say(f"There is no snapshot of {target.name}: it comes back fresh, with its files only.")
        return
    compared = await target.differences()
    problem = await target.snapshot_problem()
    rows = [difference.row() for difference in compared.differences]
    if problem is not None:
        rows.insert(0, {"name": "snapshot", "saved": view.snapshot, "current": SNAPSHOT_PROBLEMS[problem]})
    if compared.unknown is not None:
        output.say(f"Whether all is as it was is not known: {UNKNOWN_DIFFERENCES[compared.unknown]}.")
    if not rows or options.accept_difference or options.on_difference == "accept":
        return
    text = f"Snapshot {view.snapshot} may not fit any more, and then {target.name} comes back fresh."
    body = {"differences": rows, "params": {"snapshot": view.snapshot}}
    if output.can_ask and options.on_difference is None:
        output.complain(differences_table(rows))
        if output.ask(f"{text} Resume anyway?"):
            return
        raise CliError("workspace_differs", "Nothing was changed; the snapshot is kept.", exit_code=3)
    raise CliError(
        "workspace_differs",
        f"{text} Nothing was changed; the snapshot is kept. Undo the changes, or accept them: --accept-difference.",
        exit_code=3,
        body=body,
    )


class Back:
    """Is it running again? Raises CliError when it cannot come back by itself.

    Some owners' word is old for a moment after the request (cases.md S15): only a resume that was seen under way can
    have been taken back.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._under_way = False

    def __call__(self, view: OwnerView) -> bool:
        """One look."""
        name, body = self._target.name, {"workspace": _row(self._target, view)}
        if view.error is not None and view.error.code in ("workspace_missing", "workspace_deleted"):
            raise CliError("workspace_not_found", f"{name} was deleted meanwhile.", body=body)
        if view.state == "failed":
            raise CliError(
                "resume_failed",
                f"{name} does not come back: {reason_of(view)}. Its files are kept"
                + (f"; snapshot {view.snapshot} is not used up yet" if view.snapshot else "")
                + ". Once the cause is gone it goes on by itself; `jupyter pause resume` follows it again.",
                body=body,
            )
        if view.state == "paused" and self._under_way:
            raise CliError("resume_taken_back", f"{name} was paused again meanwhile.", body=body)
        self._under_way = self._under_way or view.state in ("resuming", "waiting")
        return view.state == "running"


def report(
    target: Target,
    output: Output,
    outcome: Outcome,
    expected: str | None,
    words: str,
    follow: Follow | None = None,
) -> int:
    """Exit code 1 when a snapshot was to be restored and nobody confirms that it was."""
    ok = expected is None or outcome.outcome == "restored"
    output.result(
        command="resume",
        ok=ok,
        workspace=_row(target, target.view()),
        seconds=None if follow is None else round(follow.seconds, 3),
        waited_for_capacity=None if follow is None else round(follow.waited_for_capacity, 3),
        **outcome.row(),
    )
    output.say(f"{target.name} {words}; {outcome_words(outcome)}.")
    if outcome.outcome == "restored":
        output.say("That is the cluster's word; the notebook compares its own marks and says so in its panel.")
    return 0 if ok else 1


async def wait(target: Target, options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause wait NAME --for ...`. Nothing is asked of anybody."""
    wanted = options.wanted
    expected = target.view().snapshot
    follow = Follow(target, output, verb=f"Waiting for {wanted}", timeout=options.timeout)
    state = "paused" if wanted == "paused" else "running"
    view = await follow.until(lambda view: _reached(target, view, state))
    outcome = await target.outcome(expected) if state == "running" else None
    ok = wanted != "restored" or (outcome is not None and outcome.outcome == "restored")
    output.result(
        command="wait",
        ok=ok,
        workspace=_row(target, view),
        seconds=round(follow.seconds, 3),
        **({} if outcome is None else outcome.row()),
    )
    output.say(f"{target.name} is {state}{'; ' + outcome_words(outcome) if outcome is not None else ''}.")
    return 0 if ok else 1


def _reached(target: Target, view: OwnerView, state: str) -> bool:
    if view.error is not None and view.error.code in ("workspace_missing", "workspace_deleted"):
        raise CliError("workspace_not_found", f"{target.name} was deleted meanwhile.")
    if view.state == "failed":
        raise CliError("workspace_failed", f"{target.name} has failed: {reason_of(view)}.")
    return view.state == state


def _row(target: Target, view: OwnerView) -> dict[str, Any]:
    return row(target.namespace, target.name, target.kind, view)
