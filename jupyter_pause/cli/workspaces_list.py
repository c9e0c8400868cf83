# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause workspaces`, and `jupyter pause status NAME --namespace NS`: looking, nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.owners import origin
from jupyter_pause.owners.kubeflow_state import derive

from .output import Output, age, moment, table
from .workspaces_keep import Keeps, what_a_pause_keeps
from .workspaces_outcome import outcome_of
from .workspaces_target import is_true, not_found, pod_template
from .workspaces_text import memory_words, outcome_words, reason_of, row, state_words

if TYPE_CHECKING:
    import argparse

    from jupyter_pause.owners.base import OwnerView

    from .workspaces_client import Cluster
    from .workspaces_target import Target

Object = Mapping[str, Any]


async def list_workspaces(cluster: Cluster, options: argparse.Namespace, output: Output) -> int:
    """Every Workspace of a namespace, or of all: name, kind, state, since, what is kept, why."""
    everywhere = bool(getattr(options, "all_namespaces", False))
    entries, unknown = await _look(cluster, everywhere=everywhere)
    rows = [_row(entry) for entry in entries]
    output.result(command=options.command, ok=True, workspaces=rows, not_readable=unknown)
    where = "in this cluster" if everywhere else f"in namespace {cluster.namespace}"
    if not rows:
        output.say(f"There are no Workspaces {where}.")
        return 0
    lines = [_line(entry, everywhere=everywhere) for entry in entries]
    header = ["NAME", "KIND", "STATE", "SINCE", "MEMORY", "REASON"]
    output.say(table(["NAMESPACE", *header] if everywhere else header, lines))
    if unknown:
        output.say(f"You may not list {', '.join(unknown)}, so some states and reasons are less exact.")
    return 0


@dataclass(frozen=True)
class Entry:
    """One Workspace as one look found it."""

    workspace: Object
    pod: Object | None
    view: OwnerView
    keeps: Keeps


async def _look(
    cluster: Cluster, *, everywhere: bool = False, name: str | None = None
) -> tuple[list[Entry], list[str]]:
    """One look: three or four lists and no watch. What may not be read is named in the second part.

    Args:
        name: only this Workspace.
    """
    from jupyter_pause.cluster.client import EVERYWHERE
    from jupyter_pause.cluster.resources import EVENTS, PODS, WORKSPACE_KINDS, WORKSPACES

    place = EVERYWHERE if everywhere else cluster.namespace
    unknown: list[str] = []
    label = origin.WORKSPACE_LABEL if name is None else f"{origin.WORKSPACE_LABEL}={name}"
    only = "" if name is None else f"metadata.name={name}"
    listed = (await cluster.client.list(WORKSPACES, place, field_selector=only)).items
    pods = await _list(cluster, PODS, place, unknown, label_selector=label) or []
    kinds = await _list(cluster, WORKSPACE_KINDS, None, unknown) if listed else []
    events: dict[str, list[Object]] = defaultdict(list)
    if not all(is_true(pod, "Ready") for pod in pods):
        for event in await _list(cluster, EVENTS, place, unknown, field_selector="involvedObject.kind=Pod") or []:
            events[str((event.get("involvedObject") or {}).get("uid"))].append(event)
    kind_of = {kind["metadata"]["name"]: kind for kind in kinds or []}
    pod_of = {_key(pod, pod["metadata"]["labels"][origin.WORKSPACE_LABEL]): pod for pod in sorted(pods, key=_created)}
    entries = []
    for workspace in sorted(listed, key=lambda item: _key(item, item["metadata"]["name"])):
        pod = pod_of.get(_key(workspace, workspace["metadata"]["name"]))
        about = events[str(pod["metadata"].get("uid"))] if pod is not None else []
        kind = kind_of.get(str(workspace.get("spec", {}).get("kind")))
        view = derive(workspace, pod, about, SYSTEM_CLOCK.now())
        entries.append(Entry(workspace, pod, view, what_a_pause_keeps(workspace, kind, pod)))
    return entries, unknown


async def _list(
    cluster: Cluster, resource: Any, place: str | None, unknown: list[str], **selectors: str
) -> list[dict[str, Any]] | None:
    """A list that may be forbidden; then its kind is added to `unknown`."""
    from jupyter_pause.cluster.errors import ClusterError

    try:
        items: list[dict[str, Any]] = (await cluster.client.list(resource, place, **selectors)).items
    except ClusterError as error:
        if error.code != "cluster_forbidden":
            raise
        unknown.append(resource.qualified)
        return None
    return items


def _key(thing: Object, name: str) -> tuple[str, str]:
    return str(thing["metadata"].get("namespace", "")), name


def _created(thing: Object) -> str:
    """For sorting: while an old pod goes and a new one comes, the new one is last."""
    return str(thing["metadata"].get("creationTimestamp"))


def _row(entry: Entry) -> dict[str, Any]:
    metadata = entry.workspace["metadata"]
    kind = entry.workspace.get("spec", {}).get("kind")
    return {
        **row(str(metadata.get("namespace")), metadata["name"], kind, entry.view),
        "memory": memory_words(entry.view, entry.keeps),
        "keeps": entry.keeps.row(),
    }


def _line(entry: Entry, *, everywhere: bool) -> list[str]:
    shown = _row(entry)
    cells = [
        shown["name"],
        shown["kind"] or "-",
        state_words(entry.view),
        age(shown["since"]) if shown["since"] else "-",
        shown["memory"],
        reason_of(entry.view),
    ]
    return [shown["namespace"], *cells] if everywhere else cells


async def show_workspace(cluster: Cluster, name: str, output: Output) -> int:
    """One Workspace with all that one look tells. Raises CliError `workspace_not_found`."""
    entries, _ = await _look(cluster, name=name)
    if not entries:
        raise not_found(cluster.namespace, name)
    [entry] = entries
    view, shown = entry.view, _row(entry)
    outcome = outcome_of(entry.pod, None) if view.state == "running" else None
    changed = None
    if view.state == "paused" and view.snapshot is not None:
        changed = origin.compare(entry.workspace, await pod_template(cluster, name))
    output.result(
        command="status",
        ok=True,
        workspace=shown,
        last_resume=None if outcome is None else outcome.row(),
        differences=None if changed is None else [difference.row() for difference in changed.differences],
    )
    facts = [
        ("workspace", f"{name} in namespace {cluster.namespace}"),
        ("state", state_words(view) + (f": {reason_of(view)}" if reason_of(view) else "")),
        ("since", f"{moment(shown['since'])} ({age(shown['since'])})" if shown["since"] else "unknown"),
        ("memory", shown["memory"] + (f" ({entry.keeps.why})" if entry.keeps.why and view.state == "running" else "")),
        ("pod", view.pod or "none"),
    ]
    if outcome is not None and outcome.code != "no_snapshot":
        facts.append(("last resume", outcome_words(outcome)))
    if changed is not None and changed.differences:
        facts.append(("changed since", ", ".join(difference.name for difference in changed.differences)))
    for label, value in facts:
        output.say(f"{label + ':':<15}{value}")
    return 0


async def show_other(target: Target, output: Output) -> int:
    """A workspace of another kind of owner, as far as the owner tells."""
    view, keeps = target.view(), await target.keeps()
    shown = {
        **row(target.namespace, target.name, target.kind, view),
        "memory": memory_words(view, keeps),
        "keeps": keeps.row(),
    }
    output.result(command="status", ok=True, workspace=shown, last_resume=None, differences=None)
    output.say(f"{target.name} is {state_words(view)}{': ' + reason_of(view) if reason_of(view) else ''}.")
    return 0
