# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Pod snapshots of a workspace: list them, delete them in the order that their finalizers need.

Names, labels and conditions are those of GKE's `podsnapshot.gke.io/v1` and of gke-labs/workspaces' snapshot add-on
(trigger `ws-NAME-trigger`, policy `ws-NAME-policy`). GKE documents no size of a snapshot, so `bytes` is None.
A snapshot's finalizer needs its policy to find the bucket: snapshots go first, then the policy. A deletion that hangs
is reported, never repeated, and no finalizer is ever stripped (cases.md S28).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from jupyter_pause.states import PodSnapshotRow, Reason

from .errors import ClusterError
from .resources import POD_SNAPSHOT_POLICIES, POD_SNAPSHOT_TRIGGERS, POD_SNAPSHOTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jupyter_pause.clock import Clock

    from .client import ClusterClient

TRIGGER_LABEL = "gke-pod-snapshot-triggered-by"
#: The add-on's annotation on the Workspace with the snapshot that the next resume uses.
LAST_CHECKPOINT = "podsnapshot.gke.kubeflow.org/last-checkpoint-name"
#: A deletion that takes longer hangs.
STUCK_AFTER = timedelta(minutes=10)


def trigger_of(workspace: str) -> str:
    """The name of a workspace's trigger."""
    return f"ws-{workspace}-trigger"


def policy_of(workspace: str) -> str:
    """The name of a workspace's policy."""
    return f"ws-{workspace}-policy"


def next_snapshot(workspace: Mapping[str, Any]) -> str | None:
    """The snapshot that the next resume of this Workspace object would use."""
    annotations = workspace["metadata"].get("annotations") or {}
    return annotations.get(LAST_CHECKPOINT) or None


def belongs_to(snapshot: Mapping[str, Any], workspace: str) -> bool:
    """Whether a PodSnapshot was made of this workspace: by its trigger, else by its policy."""
    trigger = (snapshot["metadata"].get("labels") or {}).get(TRIGGER_LABEL)
    if trigger is not None:
        return bool(trigger == trigger_of(workspace))
    return bool(snapshot["spec"].get("policyName") == policy_of(workspace))


def row_of(snapshot: Mapping[str, Any], next_name: str | None, now: datetime) -> PodSnapshotRow:
    """One line of the list."""
    metadata = snapshot["metadata"]
    deleting = _time(metadata.get("deletionTimestamp"))
    condition = _condition(snapshot, "Ready")
    reason = None
    if deleting is not None and now - deleting >= STUCK_AFTER:
        minutes = int((now - deleting).total_seconds() // 60)
        policy = snapshot["spec"].get("policyName")
        reason = Reason(
            code="stuck_deleting",
            message=f"It is being deleted for {minutes} minutes; its finalizer needs the policy {policy}.",
            params={"minutes": minutes, "policy": policy, "finalizers": metadata.get("finalizers") or []},
        )
    elif condition is not None and condition["status"] == "False":
        why = condition.get("reason") or "unknown"
        reason = Reason(
            code="snapshot_not_ready", message=f"The snapshot is not usable ({why}).", params={"reason": why}
        )
    created = _time(metadata["creationTimestamp"])
    assert created is not None
    return PodSnapshotRow(
        id=metadata["name"],
        created=created,
        ready=None if condition is None else {"True": True, "False": False}.get(condition["status"]),
        next=metadata["name"] == next_name and deleting is None,
        deleting_since=deleting,
        reason=reason,
    )


def rows_of(
    snapshots: Iterable[Mapping[str, Any]], workspace: str, next_name: str | None, now: datetime
) -> list[PodSnapshotRow]:
    """The workspace's snapshots among all of a namespace, newest first."""
    mine = [row_of(one, next_name, now) for one in snapshots if belongs_to(one, workspace)]
    return sorted(mine, key=lambda row: (row.created, row.id), reverse=True)


async def list_snapshots(
    client: ClusterClient, namespace: str, workspace: str, *, next_name: str | None, now: datetime
) -> list[PodSnapshotRow]:
    """The workspace's snapshots, newest first; none where the cluster has no such kind. Raises ClusterError."""
    try:
        found = await client.list(POD_SNAPSHOTS, namespace)
    except ClusterError as error:
        if error.code == "cluster_not_found":
            return []
        raise
    return rows_of(found.items, workspace, next_name, now)


async def delete_snapshot(
    client: ClusterClient,
    namespace: str,
    workspace: str,
    snapshot: str,
    *,
    next_name: str | None,
    force: bool = False,
) -> None:
    """Ask for the deletion of one snapshot of this workspace, once: one that is being deleted is left alone.

    Raises:
        ClusterError: snapshot_not_found, snapshot_in_use (the next resume needs it and `force` is not set), or what the
            API server says.
    """
    try:
        found = await client.get(POD_SNAPSHOTS, snapshot, namespace)
    except ClusterError as error:
        if error.code != "cluster_not_found":
            raise
        raise ClusterError("snapshot_not_found", name=snapshot) from None
    if not belongs_to(found, workspace):  # another workspace's: here there is no such snapshot
        raise ClusterError("snapshot_not_found", name=snapshot)
    if snapshot == next_name and not force:
        raise ClusterError("snapshot_in_use", name=snapshot)
    if not found["metadata"].get("deletionTimestamp"):
        await _delete(client, found, namespace)


@dataclass
class Cleaned:
    """How a clean-up ended. `left`: snapshots that are still there, which count as not freed."""

    gone: list[str] = field(default_factory=list)
    left: list[PodSnapshotRow] = field(default_factory=list)
    policy_deleted: bool = False


async def delete_all(
    client: ClusterClient, namespace: str, workspace: str, *, clock: Clock, limit: float = 600.0
) -> Cleaned:
    """Delete everything that snapshots of this workspace left: snapshots, and when they are gone trigger and policy.

    Args:
        limit: seconds to wait for the finalizers. After them the policy stays, since they still need it.

    Raises:
        ClusterError: the API server refused or could not be reached.
    """
    before = [one for one in (await client.list(POD_SNAPSHOTS, namespace)).items if belongs_to(one, workspace)]
    for one in before:
        if not one["metadata"].get("deletionTimestamp"):
            await _delete(client, one, namespace)
    left = await _wait_until_gone(client, namespace, {_uid(one) for one in before}, clock, limit) if before else []
    remaining = {one["metadata"]["name"] for one in left}
    names = [one["metadata"]["name"] for one in before]
    cleaned = Cleaned(
        gone=[name for name in names if name not in remaining], left=rows_of(left, workspace, None, clock.now())
    )
    if not left:
        await _delete_if_there(client, POD_SNAPSHOT_TRIGGERS, trigger_of(workspace), namespace)
        cleaned.policy_deleted = await _delete_if_there(client, POD_SNAPSHOT_POLICIES, policy_of(workspace), namespace)
    return cleaned


async def _wait_until_gone(
    client: ClusterClient, namespace: str, uids: set[str], clock: Clock, limit: float
) -> list[dict[str, Any]]:
    """Follow the snapshots until those with these uids are gone, or the limit has passed. Returns what is left."""
    follower = client.follow(POD_SNAPSHOTS, namespace=namespace)
    changed = asyncio.Event()
    follower.listen(changed.set)
    timer = asyncio.ensure_future(clock.sleep(limit))
    try:
        await follower.start()
        while True:
            changed.clear()
            known = follower.synced_at is not None
            left = [one for one in follower.objects.values() if _uid(one) in uids]
            if (known and not left) or timer.done():
                return left if known else await _left_of(client, namespace, uids)
            waiter = asyncio.ensure_future(changed.wait())
            await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
            waiter.cancel()
    finally:
        timer.cancel()
        await follower.stop()


async def _left_of(client: ClusterClient, namespace: str, uids: set[str]) -> list[dict[str, Any]]:
    return [one for one in (await client.list(POD_SNAPSHOTS, namespace)).items if _uid(one) in uids]


async def _delete(client: ClusterClient, snapshot: Mapping[str, Any], namespace: str) -> None:
    await _delete_if_there(client, POD_SNAPSHOTS, snapshot["metadata"]["name"], namespace)


async def _delete_if_there(client: ClusterClient, resource: Any, name: str, namespace: str) -> bool:
    try:
        await client.delete(resource, name, namespace)
    except ClusterError as error:
        if error.code != "cluster_not_found":
            raise
        return False
    return True


def _uid(thing: Mapping[str, Any]) -> str:
    return str(thing["metadata"]["uid"])


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _condition(thing: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    conditions = (thing.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one.get("type") == kind), None)
