# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause snapshots [NAME | delete ID ...] --namespace NS`: pod snapshots over a kubeconfig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .cli_output import Output
from .cli_server import CliError
from .cli_snapshots import ids_to_delete, say_deleted, show
from .cli_workspaces_keep import annotations_of
from .owners.kubeflow_state import LAST_CHECKPOINT
from .states import PodSnapshotRow

if TYPE_CHECKING:
    import argparse

    from .cli_workspaces_client import Cluster

Object = Mapping[str, Any]
#: GKE's label on a snapshot: the trigger that made it. The add-on names it after the Workspace.
TRIGGERED_BY = "gke-pod-snapshot-triggered-by"


async def snapshots(cluster: Cluster, options: argparse.Namespace, output: Output) -> int:
    """List the snapshots of a namespace or of one workspace, or delete some."""
    wanted = ids_to_delete(options.words)
    if wanted is not None:
        return await _delete(cluster, wanted, output, force=options.force)
    if len(options.words) > 1:
        raise CliError("usage", "Give one workspace, or `delete` and ids.", exit_code=2)
    name = options.words[0] if options.words else None
    found = await _snapshots(cluster, name)
    used = await _in_use(cluster)
    rows = [_row(snapshot, next_one=snapshot["metadata"]["name"] in used) for snapshot in found]
    whose = f"{name} in namespace {cluster.namespace}" if name else f"namespace {cluster.namespace}"
    return show(sorted(rows, key=lambda row: str(row["created"]), reverse=True), whose, output)


async def _snapshots(cluster: Cluster, name: str | None) -> list[dict[str, Any]]:
    from .cluster.resources import POD_SNAPSHOTS

    label = f"{TRIGGERED_BY}=ws-{name}-trigger" if name else ""
    return (await cluster.client.list(POD_SNAPSHOTS, cluster.namespace, label_selector=label)).items


async def _in_use(cluster: Cluster) -> set[str]:
    """Snapshots that the next resume of some Workspace would use."""
    from .cluster.resources import WORKSPACES

    found = (await cluster.client.list(WORKSPACES, cluster.namespace)).items
    return {name for name in (annotations_of(item).get(LAST_CHECKPOINT) for item in found) if name}


async def _delete(cluster: Cluster, names: list[str], output: Output, *, force: bool) -> int:
    """What a paused workspace needs is deleted only with `force`; what is going already is left alone (S28)."""
    from .cluster.access import Right
    from .cluster.resources import POD_SNAPSHOTS

    rights = [Right("delete", POD_SNAPSHOTS, cluster.namespace, name) for name in names]
    await cluster.require(rights, "delete snapshots")
    used = [] if force else sorted(await _in_use(cluster) & set(names))
    if used:
        raise CliError(
            "snapshot_in_use",
            f"The next resume would use {', '.join(used)}. Resume first, or delete with --force; nothing was deleted.",
            body={"params": {"snapshots": used}},
        )
    for name in names:
        current = await cluster.client.get(POD_SNAPSHOTS, name, cluster.namespace)
        if not current["metadata"].get("deletionTimestamp"):
            await cluster.client.delete(POD_SNAPSHOTS, name, cluster.namespace)
    return say_deleted(names, output)


def _row(snapshot: Object, *, next_one: bool) -> dict[str, Any]:
    """As `GET snapshots` shows it."""
    metadata = snapshot["metadata"]
    conditions = (snapshot.get("status") or {}).get("conditions") or []
    ready = next((c.get("status") == "True" for c in conditions if c.get("type") == "Ready"), None)
    row = PodSnapshotRow(
        id=metadata["name"],
        created=metadata["creationTimestamp"],
        ready=ready,
        next=next_one,
        deleting_since=metadata.get("deletionTimestamp"),
    )
    return row.model_dump(mode="json")
