# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause snapshots [NAME | delete ID ...] --namespace NS`: pod snapshots over a kubeconfig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.cluster.podsnapshots import TRIGGER_LABEL, belongs_to, delete_snapshot, next_snapshot, row_of

from .output import Output
from .server import CliError
from .snapshots import ids_to_delete, say_deleted, show

if TYPE_CHECKING:
    import argparse

    from .workspaces_client import Cluster

Object = Mapping[str, Any]


async def snapshots(cluster: Cluster, options: argparse.Namespace, output: Output) -> int:
    """List the snapshots of a namespace or of one workspace, or delete some."""
    wanted = ids_to_delete(options.words)
    if wanted is not None:
        return await _delete(cluster, wanted, output, force=options.force)
    if len(options.words) > 1:
        raise CliError("usage", "Give one workspace, or `delete` and ids.", exit_code=2)
    name = options.words[0] if options.words else None
    used, found, now = await _in_use(cluster), await _snapshots(cluster), SYSTEM_CLOCK.now()
    rows = [
        row_of(snapshot, _name(snapshot) if _name(snapshot) in used else None, now)
        for snapshot in found
        if name is None or belongs_to(snapshot, name)
    ]
    rows.sort(key=lambda row: (row.created, row.id), reverse=True)
    whose = f"{name} in namespace {cluster.namespace}" if name else f"namespace {cluster.namespace}"
    return show([row.model_dump(mode="json") for row in rows], whose, output)


async def _snapshots(cluster: Cluster) -> list[dict[str, Any]]:
    """All of the namespace; none where the cluster has no such kind."""
    from jupyter_pause.cluster.errors import ClusterError
    from jupyter_pause.cluster.resources import POD_SNAPSHOTS

    try:
        return (await cluster.client.list(POD_SNAPSHOTS, cluster.namespace)).items
    except ClusterError as error:
        if error.code != "cluster_not_found":
            raise
        return []


async def _in_use(cluster: Cluster) -> set[str]:
    """Snapshots that the next resume of some Workspace would use."""
    from jupyter_pause.cluster.resources import WORKSPACES

    found = (await cluster.client.list(WORKSPACES, cluster.namespace)).items
    return {name for name in map(next_snapshot, found) if name is not None}


async def _delete(cluster: Cluster, names: list[str], output: Output, *, force: bool) -> int:
    """What a paused workspace needs is deleted only with `force`; what is going already is left alone (S28)."""
    from jupyter_pause.cluster.access import Right
    from jupyter_pause.cluster.resources import POD_SNAPSHOTS

    rights = [Right("delete", POD_SNAPSHOTS, cluster.namespace, name) for name in names]
    await cluster.require(rights, "delete snapshots")
    there = {_name(snapshot): snapshot for snapshot in await _snapshots(cluster)}
    used = await _in_use(cluster)
    for name in names:
        _refuse(name, there, set() if force else used, cluster.namespace)
    for name in names:
        workspace = _workspace_of(there[name])
        next_name = name if name in used else None
        await delete_snapshot(cluster.client, cluster.namespace, workspace, name, next_name=next_name, force=force)
    return say_deleted(names, output)


def _refuse(name: str, there: Mapping[str, Object], used: set[str], namespace: str) -> None:
    """All or nothing: raises CliError before the first one is deleted."""
    if name not in there or not _workspace_of(there[name]):
        text = f"There is no snapshot {name} of a Workspace in namespace {namespace}; nothing was deleted."
        raise CliError("snapshot_not_found", text)
    if name in used:
        raise CliError(
            "snapshot_in_use",
            f"The next resume would use {name}. Resume first, or delete it with --force; nothing was deleted.",
            body={"params": {"name": name}},
        )


def _name(snapshot: Object) -> str:
    return str(snapshot["metadata"]["name"])


def _workspace_of(snapshot: Object) -> str:
    """The Workspace that it was made of, by its trigger or policy; empty when it is not one of the add-on's."""
    trigger = str((snapshot["metadata"].get("labels") or {}).get(TRIGGER_LABEL) or "")
    policy = str((snapshot.get("spec") or {}).get("policyName") or "")
    for text, ending in ((trigger, "-trigger"), (policy, "-policy")):
        if text.startswith("ws-") and text.endswith(ending):
            return text.removeprefix("ws-").removesuffix(ending)
    return ""
