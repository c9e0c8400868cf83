# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The owner under Kubeflow Workspaces (Notebooks v2), with or without GKE's snapshot add-on.

One watch on our own Workspace; the pod and its events are followed only while something is under way. The contract with
controller and add-on is that of gke-labs/workspaces and kubeflow/notebooks (branch notebooks-v2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_pause.cluster import podsnapshots
from jupyter_pause.cluster.client import FIRST_PAUSE, TRIES
from jupyter_pause.cluster.errors import ClusterError
from jupyter_pause.cluster.resources import EVENTS, POD_SNAPSHOT_TRIGGERS, PODS, STATEFULSETS, WORKSPACES
from jupyter_pause.owners import origin
from jupyter_pause.owners.base import Check, OwnerContext, OwnerView, ReleaseAnswer, ResumedFrom
from jupyter_pause.owners.kubeflow_cold import annotation_path
from jupyter_pause.owners.kubeflow_state import (
    CHECKPOINT_STARTED_AT,
    CHECKPOINT_STATE,
    PodFacts,
    derive,
    newest_time,
    origin_of,
    parse_time,
)
from jupyter_pause.states import OwnerKind, PodSnapshotRow, Reason, ResumeDoor

if TYPE_CHECKING:
    from jupyter_pause.clock import Clock
    from jupyter_pause.cluster.client import ClusterClient
    from jupyter_pause.cluster.watch import Follower

Object = Mapping[str, Any]
Operations = list[dict[str, Any]]

#: An unconfirmed view is the last known one for so long, then it is unknown (cases.md S48).
STALE_AFTER = timedelta(seconds=120)
#: While the Workspace is in one of these, its pod and events say why.
_LOOK_AT_POD = ("waiting", "resuming", "failed", "unknown")


class KubeflowOwner:
    """See `WorkspaceOwner`. `pod_name`: our own pod, None when this is not the pod (command line)."""

    kind: OwnerKind = "kubeflow"

    def __init__(
        self,
        client: ClusterClient,
        *,
        namespace: str,
        name: str,
        clock: Clock,
        pod_name: str | None = None,
        places: Sequence[Path] = (),
        workspaces_path: str = "/workspaces/",
    ) -> None:
        """`places`: folders that must outlive the pod (home, checkpoints). `workspaces_path`: see `door`."""
        self.namespace: str | None = namespace
        self.name = name
        self._space = namespace
        self._client = client
        self._clock = clock
        self._pod_name = pod_name
        self._places = places
        self._page = f"/{workspaces_path.strip('/')}/".replace("//", "/")
        self._workspace: Follower = client.follow(WORKSPACES, namespace=namespace, name=name)
        self._pods: Follower | None = None
        self._events: Follower | None = None
        self._listeners: list[Callable[[], None]] = []
        self._own_write: Object | None = None
        self._pod_seen: Object | None = None
        self._following = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- looking ------------------------------------------------------------------------------------------------

    def door(self) -> ResumeDoor:
        """Kubeflow's own backend on the origin of the notebook's tab.

        Its routes serve the page at `/workspaces/` (kubeflow/notebooks, workspaces/frontend/manifests); a gateway may
        serve it elsewhere.
        """
        return ResumeDoor(
            kind="kubeflow",
            api=f"{self._page}api/v1/workspaces/{self._space}/{self.name}",
            page=self._page,
            command=f"jupyter pause resume {self.name} --namespace {self._space}",
        )

    def view(self) -> OwnerView:
        """The last known state, `unknown` once nobody has confirmed it for two minutes."""
        now = self._clock.now()
        workspace, confirmed = self._newest(), self._workspace.synced_at
        error = _reason(self._workspace.error)
        if workspace is None and (confirmed is None or error is not None):
            return OwnerView("unknown", observed_at=confirmed, error=error or Reason(code="not_looked_yet"))
        view = self._derive(workspace, now)
        if error is not None and (confirmed is None or now - confirmed > STALE_AFTER):
            return replace(view, state="unknown", phase=None, since=confirmed, observed_at=confirmed, error=error)
        return replace(view, observed_at=confirmed, error=view.error or error)

    def _derive(self, workspace: Object | None, now: datetime) -> OwnerView:
        followed = self._followed_pod()
        view = derive(workspace, followed, self._pod_events(followed), now)
        if followed is None and self._pod_seen is not None:
            # Not followed while all is well; what never changes in a pod's life is known from the last look.
            facts = PodFacts.of(self._pod_seen)
            assert facts is not None
            uid = str(self._pod_seen["metadata"].get("uid") or "") or None
            stateful = facts.has_gate if view.stateful is None else view.stateful
            view = replace(view, pod_uid=uid, stateful=stateful, pod=view.pod or self._pod_name)
        return view

    def _newest(self) -> Object | None:
        """The Workspace: as followed, unless our own write is newer than what the watch has brought (S15)."""
        followed = self._workspace.objects.get(self.name)
        own = self._own_write
        if own is None:
            return followed
        if followed is None or _version(followed) < _version(own):
            return own
        self._own_write = None
        return followed

    def _followed_pod(self) -> Object | None:
        if self._pods is None or self._pods.error is not None:
            return None
        listed = list(self._pods.objects.values())
        # Two for a moment, when the old one is still going.
        return max(listed, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or ""), default=None)

    def _pod_events(self, pod: Object | None) -> list[Object]:
        if pod is None or self._events is None:
            return []
        uid = pod["metadata"].get("uid")
        return [e for e in self._events.objects.values() if (e.get("involvedObject") or {}).get("uid") == uid]

    def listen(self, callback: Callable[[], None]) -> None:
        """After every change of the Workspace, its pod or events, or of what keeps us from seeing them."""
        self._listeners.append(callback)

    async def start(self) -> None:
        """Follow the Workspace; look at our own pod once."""
        self._workspace.listen(self._changed)
        await self._workspace.start()
        await self._look_at_own_pod()
        self._changed()

    async def stop(self) -> None:
        """Close everything."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    def _changed(self) -> None:
        task = asyncio.get_running_loop().create_task(self._follow_what_is_needed())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._tell()

    def _tell(self) -> None:
        for callback in list(self._listeners):
            callback()

    async def _follow_what_is_needed(self) -> None:
        """The pod and its events while something is under way; nothing but the Workspace while all is well."""
        async with self._following:
            workspace = self._newest()
            if workspace is None or not self._client.is_connected:
                return
            needed = derive(workspace, None, [], self._clock.now()).state in _LOOK_AT_POD
            if needed and self._pods is None:
                await self._follow_pod()
            elif not needed and self._pods is not None:
                self._pod_seen = self._followed_pod() or self._pod_seen
                await self._leave_pod()

    async def _follow_pod(self) -> None:
        label = f"{origin.WORKSPACE_LABEL}={self.name}"
        if self._pod_name is not None:
            self._pods = self._client.follow(PODS, namespace=self._space, name=self._pod_name)
        else:
            self._pods = self._client.follow(PODS, namespace=self._space, label_selector=label)
        self._events = self._client.follow(EVENTS, namespace=self._space, field_selector="involvedObject.kind=Pod")
        for follower in (self._pods, self._events):
            follower.listen(self._tell)
            await follower.start()
        self._tell()

    async def _leave_pod(self) -> None:
        followers, self._pods, self._events = (self._pods, self._events), None, None
        for follower in followers:
            if follower is not None:
                await follower.stop()

    async def _look_at_own_pod(self) -> None:
        if self._pod_name is None:
            return
        try:
            self._pod_seen = await self._client.get(PODS, self._pod_name, self._space)
        except ClusterError:
            self._pod_seen = None  # a check names the missing right; an unreachable server is said by the watch

    async def checks(self) -> list[Check]:
        """Look again at the pod, then at everything that decides whether and how a pause works."""
        from jupyter_pause.owners.kubeflow_checks import Surroundings, look

        await self._look_at_own_pod()
        here = Surroundings(self._space, self.name, self._pod_name, self._newest(), self._pod_seen, tuple(self._places))
        return await look(self._client, here)

    # --- asking -------------------------------------------------------------------------------------------------

    async def release(self) -> ReleaseAnswer:
        """Ask for `paused: true`. The add-on rewrites that to false and answers so: the pause is held, not refused."""
        async with self._client.briefly():
            template = await self._pod_template()
            for attempt in range(TRIES):
                if attempt:
                    await self._clock.sleep(FIRST_PAUSE * 2 ** (attempt - 1))
                workspace = await self._client.get(WORKSPACES, self.name, self._space)
                under_way = _answer(workspace)
                if under_way is not None:
                    return under_way
                try:
                    written = await self._patch(_pause_operations(workspace, origin.note(workspace, template)))
                except ClusterError as error:
                    if error.code not in ("cluster_invalid", "cluster_conflict") or attempt == TRIES - 1:
                        raise
                    continue  # somebody else wrote it meanwhile
                self._own_write = written
                return _answer(written) or ReleaseAnswer("held", _started(written))
        raise AssertionError("unreachable")

    async def _patch(self, operations: Operations) -> dict[str, Any]:
        return await self._client.patch(WORKSPACES, self.name, operations, self._space)

    async def _pod_template(self) -> Object | None:
        """What the next pod is made of, for the note about this pause; None where it may not be read."""
        try:
            listed = await self._client.list(
                STATEFULSETS, self._space, label_selector=f"{origin.WORKSPACE_LABEL}={self.name}"
            )
        except ClusterError:
            return None
        template: Object | None = (listed.items[0].get("spec") or {}).get("template") if listed.items else None
        return template

    async def take_back(self) -> bool:
        """Give the person the pod again: without `checkpoint-state` the add-on opens its readiness gate."""
        async with self._client.briefly():
            try:
                self._own_write = await self._patch(_take_back_operations(held=True))
                return True
            except ClusterError as error:
                if error.code != "cluster_invalid":
                    raise
            workspace = await self._client.get(WORKSPACES, self.name, self._space)
            self._own_write = workspace
            annotations = workspace["metadata"].get("annotations") or {}
            if not workspace["spec"].get("paused"):
                return annotations.get(CHECKPOINT_STATE) != "Restoring"
            if annotations.get(CHECKPOINT_STATE):
                return False  # the snapshot is there, and the pod goes: it comes back by a resume
            try:
                self._own_write = await self._patch(_take_back_operations(held=False))
            except ClusterError as error:
                if error.code != "cluster_invalid":
                    raise
                return False
            return True

    async def snapshot_failure(self) -> Reason | None:
        """What the cluster says about a snapshot that did not come; None when it says nothing or may not be asked."""
        try:
            trigger = await self._client.get(POD_SNAPSHOT_TRIGGERS, podsnapshots.trigger_of(self.name), self._space)
        except ClusterError:
            return None
        for condition in (trigger.get("status") or {}).get("conditions") or []:
            if condition.get("type") == "Triggered" and str(condition.get("status")) == "False":
                detail = str(condition.get("message") or condition.get("reason") or "")[:240]
                return Reason(code="snapshot_failed", params={"detail": detail} if detail else {})
        return None

    async def quiet(self) -> None:
        """No connection leaves this pod from here on: an open one can make a gVisor checkpoint fail."""
        await self._client.disconnect()

    async def wake(self) -> None:
        """Follow again; what was followed lists anew."""
        await self._client.reconnect()
        self._changed()

    async def resumed_from(self) -> ResumedFrom:
        """The pod that we are in now and what the cluster says about its start. Raises ClusterError."""
        workspace = await self._client.get(WORKSPACES, self.name, self._space)
        view = derive(workspace, None, [], self._clock.now())
        name = self._pod_name or view.pod
        pod = None
        if name is not None:
            try:
                pod = await self._client.get(PODS, name, self._space)
            except ClusterError as error:
                if error.code not in ("cluster_forbidden", "cluster_not_found"):
                    raise
        self._pod_seen = pod or self._pod_seen
        found = origin_of(workspace, pod)
        now, at_least = self._clock.now(), newest_time(workspace, pod)
        behind = (now - at_least).total_seconds() if at_least is not None else 0.0
        full = derive(workspace, pod, [], now)
        return ResumedFrom(
            pod=full.pod,
            pod_uid=full.pod_uid,
            restored=found.restored,
            snapshot=found.snapshot,
            reason=Reason(code=found.code, params={"why": found.why} if found.why else {}) if found.code else None,
            # Only a clock that is behind shows: the cluster's own now is not earlier than what it wrote.
            clock_drift=round(behind, 3) if behind < -1.0 else None,
            timeline=full.timeline,
        )

    async def reclaim(self) -> None:
        """Ask for `paused: false`; nothing to do when somebody did already."""

        def unpause(workspace: dict[str, Any]) -> Operations | None:
            if not workspace["spec"].get("paused"):
                return None
            return [{"op": "replace", "path": "/spec/paused", "value": False}]

        await self.change(unpause)

    async def change(self, make: Callable[[dict[str, Any]], Operations | None]) -> dict[str, Any]:
        """Change it as it is now, and only that (see `ClusterClient.change`); what was written counts at once."""
        self._own_write = written = await self._client.change(WORKSPACES, self.name, make, self._space)
        return written

    # --- snapshots ----------------------------------------------------------------------------------------------

    async def snapshots(self) -> list[PodSnapshotRow]:
        """The pod snapshots of this Workspace, newest first. Raises ClusterError."""
        next_name, now = self.view().snapshot, self._clock.now()
        return await podsnapshots.list_snapshots(self._client, self._space, self.name, next_name=next_name, now=now)

    async def delete_snapshot(self, snapshot_id: str, *, force: bool = False) -> None:
        """Ask the cluster to delete one. Raises ClusterError: snapshot_not_found, snapshot_in_use, or the API's own."""
        next_name = self.view().snapshot
        await podsnapshots.delete_snapshot(
            self._client, self._space, self.name, snapshot_id, next_name=next_name, force=force
        )


def open_owner(context: OwnerContext) -> KubeflowOwner:
    """The owner of this server's own pod. Raises ClusterError where nothing says how to reach the cluster."""
    if context.client is None or context.namespace is None:
        raise ClusterError("cluster_not_here")
    return KubeflowOwner(
        context.client,
        namespace=context.namespace,
        name=context.name,
        clock=context.clock,
        pod_name=context.pod,
        places=context.places,
        workspaces_path=context.workspaces_path,
    )


def _version(workspace: Object) -> int:
    """Resource versions of one API server grow; they compare as numbers (Kubernetes KEP-5504)."""
    try:
        return int(workspace["metadata"].get("resourceVersion") or 0)
    except ValueError:
        return 0


def _started(workspace: Object) -> datetime | None:
    return parse_time((workspace["metadata"].get("annotations") or {}).get(CHECKPOINT_STARTED_AT))


def _answer(workspace: Object) -> ReleaseAnswer | None:
    """How far a pause is; None when none was asked for."""
    if (workspace["metadata"].get("annotations") or {}).get(CHECKPOINT_STATE) == "Checkpointing":
        return ReleaseAnswer("held", _started(workspace))
    return ReleaseAnswer("released") if workspace["spec"].get("paused") else None


def _pause_operations(workspace: Object, note: str) -> Operations:
    """`paused: true` and the note, only if the Workspace is as it was read."""
    metadata = workspace["metadata"]
    operations: Operations = [{"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}]
    if "paused" in workspace["spec"]:
        operations.append({"op": "test", "path": "/spec/paused", "value": False})
    if not metadata.get("annotations"):
        operations.append({"op": "add", "path": "/metadata/annotations", "value": {}})
    operations.append({"op": "add", "path": annotation_path(origin.ANNOTATION), "value": note})
    operations.append({"op": "add", "path": "/spec/paused", "value": True})
    return operations


def _take_back_operations(*, held: bool) -> Operations:
    if held:
        path = annotation_path(CHECKPOINT_STATE)
        return [{"op": "test", "path": path, "value": "Checkpointing"}, {"op": "remove", "path": path}]
    return [
        {"op": "test", "path": "/spec/paused", "value": True},
        {"op": "replace", "path": "/spec/paused", "value": False},
    ]


def _reason(error: ClusterError | None) -> Reason | None:
    return None if error is None else Reason(code=error.code, message=str(error), params=dict(error.params))
