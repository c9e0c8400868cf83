# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause workspaces`, and `jupyter pause status NAME --namespace NS`: looking, nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .cli_output import Output, age, moment, table
from .cli_workspaces_keep import Keeps, what_a_pause_keeps
from .cli_workspaces_text import memory_words, outcome_words, reason_of, row, state_words
from .clock import SYSTEM_CLOCK
from .owners import origin
from .owners.kubeflow_state import derive

if TYPE_CHECKING:
    import argparse

    from .cli_workspaces_client import Cluster
    from .cli_workspaces_target import Target
    from .owners.base import OwnerView

Object = Mapping[str, Any]


async def list_workspaces(cluster: Cluster, options: argparse.Namespace, output: Output) -> int:
    """Every Workspace of a namespace, or of all: name, kind, state, since, what is kept, why."""
    everywhere = bool(getattr(options, "all_namespaces", False))
    entries, unknown = await _look(cluster, everywhere=everywhere)
    rows = [_row(workspace, view, keeps) for workspace, view, keeps in entries]
    output.result(command=options.command, ok=True, workspaces=rows, not_readable=unknown)
    where = "in this cluster" if everywhere else f"in namespace {cluster.namespace}"
    if not rows:
        output.say(f"There are no Workspaces {where}.")
        return 0
    lines = [_line(workspace, view, keeps, everywhere=everywhere) for workspace, view, keeps in entries]
    header = ["NAME", "KIND", "STATE", "SINCE", "MEMORY", "REASON"]
    output.say(table(["NAMESPACE", *header] if everywhere else header, lines))
    if unknown:
        output.say(f"You may not list {', '.join(unknown)}, so some states and reasons are less exact.")
    return 0


async def _look(cluster: Cluster, *, everywhere: bool) -> tuple[list[tuple[Object, OwnerView, Keeps]], list[str]]:
    """One look at everything, three or four lists; what may not be read is named in the second part."""
    from .cluster.client import EVERYWHERE
    from .cluster.resources import EVENTS, PODS, WORKSPACE_KINDS, WORKSPACES

    place = EVERYWHERE if everywhere else cluster.namespace
    unknown: list[str] = []
    listed = (await cluster.client.list(WORKSPACES, place)).items
    pods = await _list(cluster, PODS, place, unknown, label_selector=origin.WORKSPACE_LABEL)
    kinds = await _list(cluster, WORKSPACE_KINDS, None, unknown) if listed else []
    kind_of = {kind["metadata"]["name"]: kind for kind in kinds or []}
    pod_of = {_key(pod, pod["metadata"]["labels"][origin.WORKSPACE_LABEL]): pod for pod in pods or []}
    events: dict[str, list[Object]] = defaultdict(list)
    if any(not _is_ready(pod) for pod in pods or []):
        for event in await _list(cluster, EVENTS, place, unknown, field_selector="involvedObject.kind=Pod") or []:
            events[str((event.get("involvedObject") or {}).get("uid"))].append(event)
    entries: list[tuple[Object, OwnerView, Keeps]] = []
    for workspace in sorted(listed, key=lambda item: _key(item, item["metadata"]["name"])):
        pod = pod_of.get(_key(workspace, workspace["metadata"]["name"]))
        about = events[str(pod["metadata"].get("uid"))] if pod is not None else []
        view = derive(workspace, pod, about, SYSTEM_CLOCK.now())
        kind = kind_of.get(str(workspace.get("spec", {}).get("kind")))
        entries.append((workspace, view, what_a_pause_keeps(workspace, kind, pod)))
    return entries, unknown


async def _list(
    cluster: Cluster, resource: Any, place: str | None, unknown: list[str], **selectors: str
) -> list[dict[str, Any]] | None:
    """A list that may be forbidden; then its kind is added to `unknown`."""
    from .cluster.errors import ClusterError

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


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


def _row(workspace: Object, view: OwnerView, keeps: Keeps) -> dict[str, Any]:
    metadata = workspace["metadata"]
    kind = workspace.get("spec", {}).get("kind")
    return {
        **row(str(metadata.get("namespace")), metadata["name"], kind, view),
        "memory": memory_words(view, keeps),
        "keeps": keeps.row(),
    }


def _line(workspace: Object, view: OwnerView, keeps: Keeps, *, everywhere: bool) -> list[str]:
    shown = _row(workspace, view, keeps)
    cells = [
        shown["name"],
        shown["kind"] or "-",
        state_words(view),
        age(shown["since"]) if shown["since"] else "-",
        shown["memory"],
        reason_of(view),
    ]
    return [shown["namespace"], *cells] if everywhere else cells


async def show_workspace(target: Target, output: Output) -> int:
    """One workspace with all that is known of it."""
    view, keeps = target.view(), await target.keeps()
    shown = {**row(target.namespace, target.name, target.kind, view), "memory": memory_words(view, keeps)}
    outcome = target.outcome(None) if view.state == "running" else None
    changed = await target.differences() if view.state == "paused" and view.snapshot else None
    output.result(
        command="status",
        ok=True,
        workspace=shown,
        keeps=keeps.row(),
        last_resume=None if outcome is None else outcome.row(),
        differences=None if changed is None else [difference.row() for difference in changed.differences],
    )
    facts = [
        ("workspace", f"{target.name} in namespace {target.namespace}"),
        ("state", state_words(view) + (f": {reason_of(view)}" if reason_of(view) else "")),
        ("since", f"{moment(shown['since'])} ({age(shown['since'])})" if shown["since"] else "unknown"),
        ("memory", shown["memory"] + (f" ({keeps.why})" if keeps.why and view.state == "running" else "")),
        ("pod", view.pod or "none"),
    ]
    if outcome is not None and outcome.code != "no_snapshot":
        facts.append(("last resume", outcome_words(outcome)))
    if changed is not None and changed.differences:
        facts.append(("changed since", ", ".join(difference.name for difference in changed.differences)))
    for name, value in facts:
        output.say(f"{name + ':':<15}{value}")
    return 0
