# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause resume NAME --namespace NS --without-memory | --snapshot ID`: not from the snapshot that is next.

Nothing is deleted by either. The snapshot add-on deletes all snapshots of a Workspace once a pod that was restored is
ready.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .output import Output, duration
from .server import CliError
from .workspaces_follow import Follow
from .workspaces_resume import Back, end_of_pause, report
from .workspaces_target import KubeflowTarget, Target
from .workspaces_text import row

if TYPE_CHECKING:
    import argparse

    from jupyter_pause.owners.base import OwnerView


async def resume_otherwise(target: Target, options: argparse.Namespace, output: Output) -> int:
    """Bring it back without its memory, or with another snapshot. The target has been started."""
    if options.take_back:
        raise CliError("usage", "--take-back undoes a pause; it resumes nothing.", exit_code=2)
    if not isinstance(target, KubeflowTarget):
        raise CliError(
            "usage", f"{target.name} has no pod snapshots: it always starts without its memory.", exit_code=2
        )
    await target.require_right("resume")
    if options.without_memory:
        return await _without_memory(target, options, output)
    return await _from_snapshot(target, options, output)


async def _without_memory(target: KubeflowTarget, options: argparse.Namespace, output: Output) -> int:
    follow = Follow(target, output, verb="Starting without the memory", timeout=options.timeout)
    view = await _paused(target, output, follow)
    left_out = view.snapshot
    await target.start_cold()
    follow.asked = True
    output.say(_what_becomes_of(target, left_out))
    return await _follow(target, options, output, follow, left_out=left_out, expected=None)


async def _from_snapshot(target: KubeflowTarget, options: argparse.Namespace, output: Output) -> int:
    snapshot = str(options.snapshot)
    view = target.view()
    if view.state != "paused":
        raise CliError(
            "workspace_not_paused",
            f"{target.name} is {view.state}. A snapshot can be restored only into a paused workspace: "
            f"pause it first with `jupyter pause now {_where(target)}`.",
            body={"workspace": row(target.namespace, target.name, target.kind, view)},
        )
    known = {found.id: found for found in await target.snapshots()}
    if snapshot not in known:
        raise CliError("snapshot_not_found", f"There is no snapshot {snapshot} of {target.name}. Nothing was changed.")
    if not known[snapshot].ready or known[snapshot].deleting_since is not None:
        raise CliError("snapshot_not_usable", f"Snapshot {snapshot} is not ready, or is being deleted.")
    others = sorted(set(known) - {snapshot})
    if others and not options.accept_difference:
        listed = ", ".join(others)
        text = f"Once {snapshot} is restored, the platform deletes the other snapshots of {target.name}: {listed}."
        if not (output.can_ask and output.ask(f"{text} Go on?")):
            raise CliError(
                "would_lose_snapshots",
                f"{text} Nothing was changed. --accept-difference goes on.",
                exit_code=3,
                body={"params": {"snapshots": others}},
            )
    follow = Follow(target, output, verb="Resuming", timeout=options.timeout)
    await target.start_from(snapshot)
    follow.asked = True
    return await _follow(target, options, output, follow, left_out=None, expected=snapshot)


async def _paused(target: KubeflowTarget, output: Output, follow: Follow) -> OwnerView:
    """Its view once it is paused: what is on its way back is paused again first, unless its pod runs."""
    view = target.view()
    if view.state == "pausing":
        view = await end_of_pause(target, follow, view)
    if view.state == "paused":
        return view
    broken = await _standing_in_the_way(target, view)
    output.say(f"{target.name} is on its way back with its memory; it is paused again first.")
    if not await target.pause_again(broken=broken):
        raise _runs(target, target.view())
    return await follow.until(lambda view: view.state == "paused")


async def _standing_in_the_way(target: KubeflowTarget, view: OwnerView) -> bool:
    """Whether its container crashes again and again. Raises CliError `workspace_runs`."""
    from jupyter_pause.owners import kubeflow_cold

    pod = await target.pod()
    if view.state == "running" or kubeflow_cold.runs(pod):
        raise _runs(target, view)
    return kubeflow_cold.crashes(pod)


def _runs(target: Target, view: OwnerView) -> CliError:
    return CliError(
        "workspace_runs",
        f"A pod of {target.name} runs, so its memory is there or is being restored. Nothing was changed. "
        f"Pause it first with `jupyter pause now {_where(target)}`, then start it without its memory.",
        body={"workspace": row(target.namespace, target.name, target.kind, view)},
    )


def _what_becomes_of(target: Target, snapshot: str | None) -> str:
    """No more than what holds: who deletes the snapshot, when, and how one comes back to it until then."""
    if snapshot is None:
        return f"There is no snapshot of {target.name}: it starts fresh, with its files only."
    where = _where(target)
    return (
        f"{target.name} starts without its memory. Snapshot {snapshot} is not deleted: it stays until "
        f"a later snapshot of {target.name} has been restored, or its policy removes it. To come back to it until "
        f"then: `jupyter pause now {where}`, then `jupyter pause resume {where} --snapshot {snapshot}`."
    )


async def _follow(
    target: KubeflowTarget,
    options: argparse.Namespace,
    output: Output,
    follow: Follow,
    *,
    left_out: str | None,
    expected: str | None,
) -> int:
    if options.no_wait:
        view = target.view()
        current = row(target.namespace, target.name, target.kind, view)
        output.result(command="resume", ok=True, workspace=current, outcome=None, left_out=left_out)
        output.say(f"{target.name} was asked to come back.")
        return 0
    await follow.until(Back(target))
    outcome = await target.outcome(expected)
    if left_out is not None and outcome.code == "no_snapshot":
        outcome = replace(outcome, code="without_memory", snapshot=left_out)
    return report(target, output, outcome, expected, f"is running after {duration(follow.seconds)}", follow)


def _where(target: Target) -> str:
    return f"{target.name} --namespace {target.namespace}"
